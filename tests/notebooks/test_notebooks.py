"""The notebooks of the repository: each runs in a kernel, and none keeps outputs."""

import importlib.util
import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
assert len(NOTEBOOKS) == 6

# Of each figure that is shown, the ticks and the first value of an axis of rounds.
WATCH = """
from matplotlib.backend_bases import FigureCanvasBase as _Canvas
_axes = []
def _shown(canvas, *arguments, _print=_Canvas.print_figure, **options):
    shown = _print(canvas, *arguments, **options)
    for axes in canvas.figure.axes:
        if axes.get_xlabel() in ("round", "communication round"):
            low, high = axes.get_xlim()
            ticks = [tick for tick in axes.get_xticks() if low <= tick <= high]
            drawn = [line.get_xdata() for a in canvas.figure.axes for line in a.lines]
            _axes.append((ticks, min(part[0] for part in drawn if len(part))))
    return shown
_Canvas.print_figure = _shown
"""
ROUNDS_ARE_WHOLE = """
for ticks, first in _axes:
    assert first == 1 and ticks and all(tick == int(tick) >= 1 for tick in ticks), _axes
"""


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
    notebook = nbformat.read(path, as_version=4)
    added = [nbformat.v4.new_code_cell(code) for code in (WATCH, ROUNDS_ARE_WHOLE)]
    notebook.cells = [added[0], *notebook.cells, added[1]]
    done = execute(notebook)
    outputs = [out for cell in done.cells for out in cell.get("outputs", ())]
    drawn = [out for out in outputs if "image/png" in out.get("data", ())]
    assert drawn
    # What a reader would take for a fault of his own.
    said = "".join(out["text"] for out in outputs if out["output_type"] == "stream")
    for word in ("Traceback", "WARNING", "Warning", "CANCELLED", "INFO:"):
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
