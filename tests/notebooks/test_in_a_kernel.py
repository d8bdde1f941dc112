"""What is otherwise in a notebook than in a script: a loop, a backend, a reader."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

SETUP = """
import numpy as np, tensorflow as tf, tensorflow_federated as tff
import leaf_data, tff_pmc

data = leaf_data.load("digits5k", partition="noniid")
tff_pmc.Runtime().install()
process = tff_pmc.build_prioritized_fed_avg(
    tff_pmc.models.mnist_cnn(),
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
)
state = process.initialize()
"""
LOOP = """
state = tff.simulation.run_training_process(
    training_process=process,
    training_selection_fn=lambda n: tff_pmc.pack(data.train_examples, [n, n + 1]),
    total_rounds=2,
    metrics_managers=[tff.program.MemoryReleaseManager()],
)
print("rounds", int(state.client_work["round"]))
"""
REPORTS = """
import matplotlib, pkgutil, importlib, tff_pmc.reports
for module in pkgutil.walk_packages(tff_pmc.reports.__path__, "tff_pmc.reports."):
    importlib.import_module(module.name)
print(matplotlib.get_backend())
"""
WRONG_DATA = "process.next(state, [data.train_examples.x[:3]])"


@pytest.fixture
def run_cells(execute):
    """Runs sources as the cells of one notebook; gives each cell's outputs."""
    nbformat = pytest.importorskip("nbformat")

    def run(*sources):
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        done = execute(nbformat.v4.new_notebook(cells=cells), allow_errors=True)
        return [cell["outputs"] for cell in done.cells]

    return run


def text_of(outputs):
    return "".join(out.get("text", "") for out in outputs)


def test_in_a_kernel(run_cells):
    """One kernel for all of it: it takes TensorFlow's import to start one."""
    page = (ROOT / "docs" / "own_code.md").read_text()
    (line,) = re.findall(r"`(import nest_asyncio; .*?)`", page)
    setup, reports, wrong, loop, line_, again = run_cells(
        SETUP, REPORTS, WRONG_DATA, LOOP, line, LOOP
    )
    assert not [out for out in setup if out["output_type"] == "error"]
    # The reports left the notebook's plots where they were.
    assert "inline" in text_of(reports)
    # A mistake is one line in a traceback that can be taken in at a glance.
    (error,) = wrong
    assert error["ename"] == "WrongDataError"
    assert error["evalue"].startswith("client_data[0] must be a tf.data.Dataset")
    assert "\n" not in error["evalue"]
    assert len("\n".join(error["traceback"]).splitlines()) < 50
    # TFF's own loop, in a kernel whose loop runs: not without the README's line.
    assert (
        "loop is already running"
        in [out for out in loop if "evalue" in out][0]["evalue"]
    )
    assert not line_
    assert "rounds 2" in text_of(again)
