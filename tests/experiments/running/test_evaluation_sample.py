"""Tests of the model by a sample of the clients, and not after every round."""

import dataclasses

import numpy as np
import pytest
from cli import SHORT, run, table

from tff_pmc.experiments import experiment as experiments
from tff_pmc.record import read
from tff_pmc.reports import summary

LONGER = {**SHORT, "rounds": 7, "clients_per_round": 5.0}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same run twice: tested by all always, and by few seldom."""
    from tff_pmc.experiments.running import loop
    from tff_pmc.runtime import Runtime

    made = {}
    for name, changes in {
        "all": {},
        "few": {"evaluate_clients": 7, "evaluate_every": 3},
    }.items():
        settings = experiments.settings("quickstart", {**LONGER, **changes})
        folder = str(tmp_path_factory.mktemp(name) / "run")
        data = settings.data.load()
        with Runtime():
            loop.run(settings, data, folder, title=None)
        made[name] = read.read_run(folder), data
    return made


def sample(data):
    from tff_pmc.systems.setup import drawn_clients

    return drawn_clients(data.test_examples, 7)


def test_who_tests_and_when_changes_nothing_of_the_training(runs):
    (full, data), (few, _) = runs["all"], runs["few"]
    clients = sample(data)
    assert len(set(clients)) == 7 and list(clients) == sorted(clients)
    assert list(few.rounds["train_loss"]) == list(full.rounds["train_loss"])
    tested = [row for row in table(f"{few.path}/rounds.csv") if row["accuracy"]]
    assert [int(row["round"]) for row in tested] == [1, 3, 6]
    for row in tested:
        own = full.correct[int(row["round"]) - 1, clients]
        assert int(row["correct"]) == own.sum()
    assert len(table(f"{few.path}/clients.csv")) == 3 * 7
    names = [row["client"] for row in table(f"{few.path}/clients.csv")[:7]]
    assert names == [data.client_ids[k] for k in clients]


def test_between_tests_a_reader_has_the_last_ones_figures(runs):
    few, _ = runs["few"]
    assert few.correct.shape == (7, 7)
    of = {1: 1, 2: 1, 3: 3, 4: 3, 5: 3, 6: 6, 7: 6}
    full, data = runs["all"]
    clients = sample(data)
    for round_num, tested in of.items():
        want = full.correct[tested - 1, clients]
        np.testing.assert_array_equal(few.correct[round_num - 1], want)
        assert few.rounds["correct"][round_num - 1] == want.sum()
    assert [summary.rounds(run)["last"]["round"] for run in (few, full)] == [6, 7]
    assert "Tested by 7 of 100 clients" in few.conditions
    assert "at most 18.9 points" in few.conditions  # 100 sqrt(.25 / 7)
    assert "Tested after every 3 rounds" in few.conditions
    assert "Tested" not in full.conditions
    *_, differ = read.conditions_of(run for run, _ in runs.values())
    assert differ.startswith("The runs differ in evaluate_clients: ")
    killed = dataclasses.replace(full, rounds=full.rounds[:3])
    assert read.conditions_of([killed])[-1] == (
        f"The record of {full.label} ends with round 3 of {len(full.rounds)}."
    )


def test_without_the_clients_on_record_tables_say_so(tmp_path):
    """All else is as with them; also `--tables`, `--compare` and TensorBoard."""
    flags = ["--rounds=3", "--priority=DS", "--local_epochs=1", "--tensorboard"]
    flags += ["--evaluate_every=2", "--clients_per_round=5"]
    made = {}
    for name in ("all", "none"):
        folder = tmp_path / name
        more = [] if name == "all" else ["--record_clients=none"]
        made[name] = run(*flags, *more, f"--output_dir={folder}").stdout
        of_run = folder / "DS"
        assert (of_run / "clients.csv").exists() == (name == "all")
        assert (folder / "accuracy.png").exists()
    for name in ("rounds.csv", "cohort.csv", "weights.csv"):
        assert (tmp_path / "all" / "DS" / name).read_bytes() == (
            (tmp_path / "none" / "DS" / name).read_bytes()
        )
    why = "each client's figures are needed, and not on record (--record_clients=none)"
    assert f"There is no rounds_to_target: {why}." in made["none"]
    assert f"There is no fairness: {why}." in made["none"]
    assert why not in made["all"] and "record_clients" not in (
        (tmp_path / "all" / "DS" / "run.json").read_text()
    )
    full, bare = (read.read_run(str(tmp_path / n / "DS")) for n in ("all", "none"))
    np.testing.assert_array_equal(full.accuracy, bare.accuracy)
    flags = [f"--tables={tmp_path / 'none'}", f"--output_dir={tmp_path / 'tables'}"]
    assert f"There is no rounds_to_target: {why}." in run(*flags).stdout
    both = f"--compare={tmp_path / 'all'},{tmp_path / 'none'}"
    assert why in run(both, code=2).stderr
