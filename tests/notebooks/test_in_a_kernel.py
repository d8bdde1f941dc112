"""What is otherwise in a notebook than in a script: a loop, a backend, a reader."""

import pytest

SETUP = """
import numpy as np, tensorflow as tf, tensorflow_federated as tff
import leaf_data, tff_pmc

data = leaf_data.load("digits5k", partition="noniid")
tff_pmc.Runtime().install()
process = tff_pmc.build_prioritized_fed_avg(
    tff_pmc.models.mnist_cnn(),
    client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
    local_epochs=1,
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
PROGRAM = """
releases = tff.program.MemoryReleaseManager()
await tff.learning.programs.train_model(
    train_process=process,
    train_data_source=tff_pmc.data_source(data.train_examples),
    train_per_round_clients=2,
    train_total_rounds=2,
    program_state_manager=tff.program.FileProgramStateManager({folder!r}),
    model_output_manager=tff.program.MemoryReleaseManager(),
    train_metrics_manager=releases,
    evaluation_manager=None,
    evaluation_periodicity=1,
)
first = process.initialize()
print("rounds", sorted(releases.values()), int(first.client_work["round"]))
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


@pytest.mark.slow
def test_in_a_kernel(run_cells, tmp_path):
    """One kernel for all of it: it takes TensorFlow's import to start one."""
    program = PROGRAM.replace("{folder!r}", repr(str(tmp_path)))
    setup, reports, wrong, loop, awaited = run_cells(
        SETUP, REPORTS, WRONG_DATA, LOOP, program
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
    # What the guide says of TFF's own loop, in a kernel whose loop runs.
    assert (
        "loop is already running"
        in [out for out in loop if "evalue" in out][0]["evalue"]
    )
    # A program is awaited; the cell that does it gets values and not references.
    assert "rounds [1, 2] 0" in text_of(awaited), awaited
