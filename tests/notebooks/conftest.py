"""A Jupyter kernel of this environment, as the tests of notebooks use it."""

import os
import pathlib

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def execute(monkeypatch, tmp_path):
    """Runs a notebook in a real kernel, the quick setting on; gives it back."""
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    # The kernel of this environment, and not one that the user named as TFF's; and
    # nothing of the run in the user's history.
    for name in ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("ROUNDS", "2")
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "1")  # Warnings are shown.
    monkeypatch.delenv("MPLBACKEND", raising=False)

    def run(notebook, **options):
        resources = {"metadata": {"path": str(ROOT / "notebooks")}}
        client = nbclient.NotebookClient(
            notebook, timeout=600, kernel_name="python3", resources=resources, **options
        )
        return client.execute(env=dict(os.environ))

    return run
