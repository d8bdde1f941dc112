"""Reading data runs no code: no pickle, no SavedModel, no code from a data file.

`np.load` is allowed where it is told to load no pickles (`allow_pickle=False`).
"""

import ast

import pytest
from commands import ROOT

FORBIDDEN = {
    *("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "runpy"),
    *("eval", "exec", "compile", "__import__", "tf.saved_model.load", "np.load"),
    *("tf.keras.models.load_model", "pd.read_pickle", "os.system", "os.popen"),
    "tff.program.FileProgramStateManager",
    *("numpy.load", "yaml.load", "allow_pickle=True"),
}
ALLOWED = {
    (
        "leaf_data/datasets/cifar10.py",
        "pickle",
    ),  # Only files with the published checksums.
    ("tff_pmc/cluster/pack_encoding.py", "pickle"),  # Written, for sizes and digests.
}


def words(text):
    """Yields the names used in a module, and the modules that it imports."""
    tree = ast.parse(text)
    plain = {
        node.func
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and any(
            keyword.arg == "allow_pickle" and ast.unparse(keyword.value) == "False"
            for keyword in node.keywords
        )
    }
    for node in ast.walk(tree):
        if node in plain:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module).partition(".")[0]
        elif isinstance(node, (ast.Attribute, ast.Name)):
            yield ast.unparse(node)
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            if ast.unparse(node.value) != "False":
                yield "allow_pickle=True"


@pytest.mark.parametrize(
    "text",
    [
        *("import pickle.x", "from marshal import load", "tf.saved_model.load(p)"),
        *("eval(x)", "np.load(f)", "read(f, allow_pickle=1)"),
    ],
)
def test_the_search_finds_what_it_looks_for(text):
    assert set(words(text)) & FORBIDDEN
    harmless = (
        "re.compile(x)\nevaluate(x)\nself.np.loaded\nnp.load(f, allow_pickle=False)"
    )
    assert not set(words(harmless)) & FORBIDDEN


def test_no_module_loads_code_from_a_file():
    paths = [ROOT / "run_experiments.py", *ROOT.glob("tff_pmc/**/*.py")]
    paths += ROOT.glob("leaf_data/**/*.py")
    names = {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}
    assert len(names) > 150
    forbidden = {
        (name, word)
        for name, text in names.items()
        for word in words(text)
        if word in FORBIDDEN
    }
    assert forbidden == ALLOWED
