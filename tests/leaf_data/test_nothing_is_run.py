"""What reads data runs none of it, and opens files by one function."""

import ast

import pytest

from leaf_data.dataset import DATASETS

MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "subprocess"}
# What reads files by itself, and what runs what it is given.
CALLS = {
    *("eval", "exec", "compile", "np.load", "numpy.load", "os.system", "os.popen"),
    *("tf.saved_model.load", "tf.keras.models.load_model", "yaml.load", "open"),
    *("io.open", "gzip.open", "lzma.open", "codecs.open", "np.fromfile", "os.open"),
}
ALLOWED = {
    ("formats/places.py", "os.open"),  # The one function.
    ("datasets/cifar10.py", "pickle"),  # Files of known checksums alone.
    # These write.
    ("formats/cache.py", "open"),
    ("formats/tff_sqlite.py", "open"),
    ("datasets/drawn_faces.py", "open"),
}


def _uses(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)
            for keyword in node.keywords:
                # np.lib.format.read_array(..., allow_pickle=False) is all there may be.
                if keyword.arg == "allow_pickle":
                    assert ast.unparse(keyword.value) == "False"
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").split(".")[0]


def test_no_module_of_the_package_can_run_what_it_reads(root):
    assert len(DATASETS) > 5
    found = {
        (str(path.relative_to(root / "leaf_data")), use)
        for path in (root / "leaf_data").rglob("*.py")
        for use in _uses(ast.parse(path.read_text()))
        if use in CALLS | MODULES
    }
    assert found == ALLOWED


@pytest.mark.parametrize(
    "code", ["import pickle", "from pickle import load", "np.load(f)", "open('f')"]
)
def test_the_search_finds_them(code):
    assert set(_uses(ast.parse(code))) & (CALLS | MODULES)
