"""Runs with stragglers, and the loss over all training examples on record."""

import numpy as np
import pytest
from cli import records, table

from tff_pmc.experiments.experiment import settings
from tff_pmc.selections import draw_local_epochs

SMALL = {
    "algorithm": "fedavg",
    "dataset": "synthetic",
    "model": "softmax_regression",
    "num_clients": 7,
    "synthetic_size_spread": 0.0,
    "rounds": 3,
    "clients_per_round": 4,
    "local_epochs": 3,
    "batch_size": 10,
    "learning_rate": 0.05,
    "cohort_seed": 2,
    "stragglers": 0.5,
    "global_train_loss": True,
}


@pytest.fixture(scope="module")
def data():
    return settings("quickstart", SMALL).data.load()


@pytest.fixture
def run(data, runtime, tmp_path):
    """Runs some changes of the settings; returns the folder."""
    from tff_pmc.experiments.running import loop

    def run_settings(name, resume=False, **changes):
        config = settings("quickstart", {**SMALL, **changes})
        loop.run(config, data, str(tmp_path / name), resume=resume, title=None)
        return tmp_path / name

    return run_settings


def test_a_resumed_run_has_the_same_stragglers_and_all_rows_do(run):
    """Excluded are those that the draw of seed and round drops, in their places."""
    whole = run("whole")
    run("resumed", rounds=1)
    resumed = run("resumed", resume=True)
    assert records(whole, states=True) == records(resumed, states=True)
    prox = run("prox", algorithm="fedprox")
    rows = {
        name: [row for row in table(folder / "cohort.csv") if row["round"] == "2"]
        for name, folder in (("whole", whole), ("prox", prox))
    }
    drawn = draw_local_epochs(2, 2, 4, 3, 0.5, keeps_work=False)
    excluded = [int(row["excluded"]) for row in rows["whole"]]
    assert excluded == (drawn == 0).astype(int).tolist() and sum(excluded) == 2
    assert [row["client"] for row in rows["prox"]] == [
        row["client"] for row in rows["whole"]
    ]
    assert [row["excluded"] for row in rows["prox"]] == ["0"] * 4


def test_the_global_loss_is_that_of_all_training_examples(run, data):
    """Of the last model, by NumPy; empty where the model is not tested."""
    folder = run("seldom", evaluate_every=3)
    rounds = table(folder / "rounds.csv")
    assert [bool(row["global_train_loss"]) for row in rounds] == [True, False, True]
    with np.load(folder / "model" / "weights.npz") as file:
        kernel, bias = (file[name].astype(float) for name in file.files)
    x, y = np.asarray(data.train_examples.x, float), data.train_examples.y
    scores = x @ kernel + bias
    log_sum = np.log(np.exp(scores - scores.max(1, keepdims=True)).sum(1))
    losses = log_sum + scores.max(1) - scores[np.arange(len(y)), y]
    assert float(rounds[-1]["global_train_loss"]) == pytest.approx(
        losses.mean(), abs=2e-6
    )
    other = run("other", global_train_loss=False, evaluate_every=3)
    assert "global_train_loss" not in table(other / "rounds.csv")[0]
