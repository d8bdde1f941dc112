"""The notebooks of the repository: each runs in a kernel."""

import importlib.util
import json
import pathlib
import re
import subprocess
import sys
import types

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
assert len(NOTEBOOKS) == 8
QUICK = "own_model_and_data"  # The others are slow.

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


def test_the_notebook_server_is_compatible_with_the_pins():
    """A release of it asked for a newer packaging than TFF's pins, when it started."""
    pytest.importorskip("jupyter_server")
    command = [sys.executable, "-m", "jupyterlab", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=() if path.stem == QUICK else pytest.mark.slow)
        for path in NOTEBOOKS
    ],
    ids=lambda path: path.stem,
)
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


@pytest.mark.parametrize(
    "minor, spec, ends",
    [
        (11, "found", []),
        (9, None, ["{CHECKOUT}/requirements.txt", "{CHECKOUT}"]),
        (11, None, ["{CHECKOUT}/requirements.txt", "{CHECKOUT}"]),
        (12, None, "3.9 to 3.11: docs/install.md"),
        (8, None, "3.9 to 3.11: docs/install.md"),
    ],
)
def test_a_cell_installs_what_is_missing(monkeypatch, minor, spec, ends):
    """Pins first, since they build the package; the other tests run it installed."""
    transformer = pytest.importorskip("IPython.core.inputtransformer2")
    path = ROOT / "notebooks" / "own_model_and_data.ipynb"
    cells = {cell["id"]: cell for cell in json.loads(path.read_text())["cells"]}
    source = "".join(cells["install"]["source"])
    code = transformer.TransformerManager().transform_cell(source)
    magics = []
    shell = types.SimpleNamespace(run_line_magic=lambda *magic: magics.append(magic))
    with monkeypatch.context() as patch:
        patch.setattr(sys, "version_info", (3, minor, 0, "final", 0))
        patch.setattr(importlib.util, "find_spec", lambda name: spec)
        try:
            exec(code, {"get_ipython": lambda: shell})
            said = [line.split()[-1] for name, line in magics if name == "pip"]
        except SystemExit as end:
            said = str(end)
    assert (ends in said) if isinstance(ends, str) else (said == ends), said


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_says_what_it_shows(path):
    text = path.read_text(encoding="utf-8")
    cells = json.loads(text)["cells"]
    ids = [cell["id"] for cell in cells]
    assert len(set(ids)) == len(ids)
    first = "".join(cells[0]["source"])  # What it shows, and how long it takes.
    assert first.startswith("# ") and re.search(r"\b(minutes?|seconds?)\b", first)
