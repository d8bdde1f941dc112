"""Algorithms that read labels or count examples, with a label for each position."""

import numpy as np
import pytest
from cli import table
from labelled_positions import CLASSES, POSITIONS, Table, label_positions
from short_runs import run_all

import leaf_data
from tff_pmc import models

RUNS = {
    "counterfactuals": {"algorithm": "prioritized", "counterfactuals": ("orderings",)},
    "adafed": {"criteria": ("ACC", "DS")},
    "inverse_accuracy": {},
    "qffl": {"selection": "power_of_choice"},
    "personalized": {"personalized_form": "text"},
    "prioritized": {"adjustment": "backtracking", "priority": ("NP", "DS")},
    "dual": {"criteria": ("ACC", "DS"), "judge_on": "server"},
}


@pytest.mark.parametrize("name", RUNS)
def test_a_run_counts_positions(runtime, monkeypatch, tmp_path, name):
    from tff_pmc.experiments.experiment import experiment_values
    from tff_pmc.settings import RunSettings

    monkeypatch.setitem(models.MODELS._things, "table", Table)
    values = {
        "criteria": ("DS", "NP"),
        "priority": ("DS",),
        **{"algorithm": name, "model": "table", "rounds": 2, "local_epochs": 1},
        **{"clients_per_round": 2, "learning_rate": 1.0},
        **RUNS[name],
    }
    settings = RunSettings.from_flag_values(
        values, inherited=experiment_values("quickstart")
    )
    x = np.array([[0, 1, 2], [3, 3, 0]], np.int32)
    y = np.array([[1, -1, 2], [0, -1, -1]], np.int32)
    server = leaf_data.Examples(x, y, np.array([0, 2]), ("server",))
    data = label_positions(POSITIONS, server_examples=server)
    run_all([settings], data, tmp_path)
    folder = tmp_path / settings.folder_name
    counts = data.test_examples.label_counts.tolist()
    for row in table(folder / "clients.csv"):
        size = counts[data.client_ids.index(row["client"])]
        assert 0 <= int(row["correct"]) <= int(row["examples"]) == size
    for row in table(folder / "rounds.csv"):
        assert int(row["examples"]) == sum(counts)
        assert float(row["train_loss"]) > 0
    if (folder / "candidates.csv").exists():
        judged = 3 if name == "dual" else sum(counts)
        assert {row["examples"] for row in table(folder / "candidates.csv")} == {
            str(judged)
        }
    if name == "adafed":
        classes = {row["class"] for row in table(folder / "class_f1.csv")}
        assert len(classes) == CLASSES
