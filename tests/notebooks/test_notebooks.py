"""The notebooks of the repository: each runs in a kernel, and none keeps outputs."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
assert len(NOTEBOOKS) == 5


@pytest.fixture(scope="module")
def clear_notebooks():
    path = ROOT / "tools" / "clear_notebooks.py"
    spec = importlib.util.spec_from_file_location("clear_notebooks", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_what_make_notebooks_starts_goes_with_the_other_pins():
    """A release of it asked for a newer packaging than TFF's pins, when it started."""
    pytest.importorskip("jupyter_server")
    command = [sys.executable, "-m", "jupyterlab", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_draws(path, execute):
    nbformat = pytest.importorskip("nbformat")
    done = execute(nbformat.read(path, as_version=4))
    outputs = [out for cell in done.cells for out in cell.get("outputs", ())]
    drawn = [out for out in outputs if "image/png" in out.get("data", ())]
    assert drawn
    # What a reader would take for a fault of his own.
    said = "".join(out["text"] for out in outputs if out["output_type"] == "stream")
    for word in ("Traceback", "WARNING", "Warning"):
        assert word not in said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(path, clear_notebooks):
    text = path.read_text(encoding="utf-8")
    assert clear_notebooks.cleared(text) == text, "run tools/clear_notebooks.py"
    ids = [cell["id"] for cell in json.loads(text)["cells"]]
    assert len(set(ids)) == len(ids)


def test_what_a_kernel_leaves_is_cleared(clear_notebooks):
    notebook = json.loads(NOTEBOOKS[0].read_text(encoding="utf-8"))
    before = clear_notebooks.cleared(json.dumps(notebook))
    code = next(cell for cell in notebook["cells"] if cell["cell_type"] == "code")
    code["outputs"].append({"output_type": "stream", "name": "stdout", "text": ["1"]})
    code["execution_count"] = 7
    notebook["metadata"]["language_info"]["version"] = "3.10.12"
    assert clear_notebooks.cleared(json.dumps(notebook)) == before
