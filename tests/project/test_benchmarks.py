"""Most benchmarks work, with sizes so small that their numbers mean nothing.

Those that need data, the authors' code or hours are not run.
"""

import numpy as np
import pytest
from commands import python

import leaf_data

pytestmark = pytest.mark.slow

TINY = ("--clients=2", "--epochs=1", "--turns=1")
# What is run, and what its output says.
CASES = {
    "cluster of clients": (
        ("cluster.py", "--small", "--turns=1"),
        "per round: measured",
    ),
    "cluster of a store": (
        ("cluster.py", "--small", "--turns=1", "--store"),
        "MB per round: measured",
    ),
    "cluster of runs": (
        ("cluster.py", "--small", "--turns=1", "--spread=runs"),
        "two workers are",
    ),
    "counterfactuals": (("counterfactuals.py", "--turns=1", "--rounds=4"), ""),
    "loading": (
        ("femnist_loading.py", "--files=1", "--writers=4", "--images=12"),
        "4 writers",
    ),
    "a round": (
        ("round.py", "--shape=femnist", *TINY, "--only=one sum", "--only=bare loop"),
        "| bare loop |",
    ),
    "a round of text": (
        ("round.py", "--shape=shakespeare", *TINY, "--clients=1", "--only=bare loop"),
        "| bare loop |",
    ),
    "this package among its peers": (
        ("peers.py", "--shape=femnist", *TINY, "--rounds=2", "--only=ours"),
        "| ours |",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_benchmark_measures(name):
    (script, *flags), says = CASES[name]
    done = python(f"benchmarks/{script}", *flags)
    assert done.returncode == 0, done.stderr
    assert says in done.stdout


def test_the_run_of_a_federation_is_measured(tmp_path):
    """Its own federations have up to a million clients; this one has a cohort."""
    images, labels = np.ones((2, 16), np.float32), np.arange(2)
    clients = ((str(k), images, labels, images, labels) for k in range(100))
    leaf_data.write_store(clients, tmp_path / "store")
    store = tmp_path / "store"
    done = python("benchmarks/federation.py", f"--one={store}", "--stores=.")
    assert done.returncode == 0, done.stderr
    assert '"memory"' in done.stdout


def test_the_least_objective_of_qffl_is_measured(tmp_path):
    """Four clients; with q = 1 no client's accuracy is far from the others'."""
    out = tmp_path / "optimum.csv"
    flags = ("--seeds=3", "--size_spreads=2", "--clients=4", "--iterations=30")
    done = python("benchmarks/qffl_objective.py", str(out), *flags)
    assert done.returncode == 0, done.stderr
    head, *rows = out.read_text().splitlines()
    assert head == "size_spread,seed,q,average,worst,best,variance"
    assert [row.split(",")[:3] for row in rows] == [["2", "3", "0"], ["2", "3", "1"]]
    for row in rows:
        average, worst, best, _ = map(float, row.split(",")[3:])
        assert 50 < worst <= average <= best <= 100


def test_what_a_lying_client_gains_is_computed_from_a_run(tmp_path):
    command = ("run_experiments.py", "--experiment=quickstart", "--rounds=1")
    done = python(*command, "--priority=DS", f"--output_dir={tmp_path / 'run'}")
    assert done.returncode == 0, done.stderr
    done = python("benchmarks/lying_client.py", str(tmp_path / "run" / "DS"))
    assert done.returncode == 0, done.stderr
    assert "DS,LD,MD" in done.stdout
