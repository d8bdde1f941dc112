"""Nothing that is read runs: no pickle, no SavedModel, no code from a file of data."""

import ast
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "runpy"}
CALLS = {
    *("eval", "exec", "compile", "__import__", "tf.saved_model.load", "np.load"),
    *("tf.keras.models.load_model", "pd.read_pickle"),
    "tff.program.FileProgramStateManager",
}


def found(text):
    """The forbidden words of a module, wherever they stand."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ({a.name.partition(".")[0] for a in node.names} & MODULES)
        elif isinstance(node, ast.ImportFrom):
            yield from {str(node.module).partition(".")[0]} & MODULES
        elif isinstance(node, (ast.Attribute, ast.Name)):
            name = ast.unparse(node)
            yield from {name} & CALLS


def test_the_search_finds_what_it_looks_for():
    text = "import pickle.x\nfrom marshal import load\ntf.saved_model.load(p)\neval(x)"
    assert {"pickle", "marshal", "tf.saved_model.load", "eval"} <= {*found(text)}
    assert not {*found("re.compile(x)\nevaluate(x)\nself.np.loaded")}


@pytest.mark.parametrize(
    "path",
    [ROOT / "run_experiments.py", *sorted((ROOT / "tff_pmc").rglob("*.py"))],
    ids=lambda path: path.name,
)
def test_no_module_loads_code_from_a_file(path):
    assert {*found(path.read_text())} == set()
