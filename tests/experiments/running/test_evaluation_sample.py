"""Tests of the model by a sample of the clients, and not after every round."""

import numpy as np
import pytest
from cli import QUICK, SHORT, run, table

from tff_pmc.experiments import experiment as experiments
from tff_pmc.record.results import read_results

LONGER = {**SHORT, "rounds": 7, "clients_per_round": 5.0}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The same run twice: tested by all always, and by few seldom."""
    from tff_pmc.experiments.running import loop
    from tff_pmc.runtime import Runtime

    results_and_data = {}
    for name, changes in {
        "all": {},
        "few": {"evaluate_clients": 7, "evaluate_every": 3},
    }.items():
        settings = experiments.settings("quickstart", {**LONGER, **changes})
        folder = str(tmp_path_factory.mktemp(name) / "run")
        data = settings.data.load()
        with Runtime():
            loop.run(settings, data, folder, title=None)
        results_and_data[name] = read_results(folder), data
    return results_and_data


def sample(data):
    from tff_pmc.algorithms.run_context import sample_clients

    return sample_clients(data.test_examples, 7)


def correct_by_client(results):
    return results.clients.pivot(index="round", columns="client", values="correct")


def test_which_clients_test_and_when_does_not_change_the_training(runs):
    (full, data), (few, _) = runs["all"], runs["few"]
    clients = sample(data)
    assert len(set(clients)) == 7 and list(clients) == sorted(clients)
    assert list(few.rounds["train_loss"]) == list(full.rounds["train_loss"])
    names = [data.client_ids[k] for k in clients]
    assert few.clients["client"].tolist() == 3 * names
    by_round = correct_by_client(full)[names]
    # Between tests a reader has the last one's figures.
    last_tested = {1: 1, 2: 1, 3: 3, 4: 3, 5: 3, 6: 6, 7: 6}
    want = [by_round.loc[tested].sum() for tested in last_tested.values()]
    assert few.rounds["correct"].tolist() == want
    np.testing.assert_array_equal(
        correct_by_client(few)[names], by_round.loc[[1, 3, 6]]
    )
    written = table(f"{few.path}/rounds.csv")
    assert [int(row["round"]) for row in written if row["accuracy"]] == [1, 3, 6]


def test_without_the_clients_on_record_tables_say_so(tmp_path):
    """All else is as with them; also `--tables`, `--compare` and TensorBoard."""
    flags = [*QUICK, "--rounds=3", "--priority=DS", "--tensorboard"]
    flags += ["--evaluate_every=2", "--clients_per_round=5"]
    outputs = {}
    for name in ("all", "none"):
        folder = tmp_path / name
        extra_flags = [] if name == "all" else ["--record_clients=none"]
        outputs[name] = run(*flags, *extra_flags, f"--output_dir={folder}").stdout
        of_run = folder / "DS"
        assert (of_run / "clients.csv").exists() == (name == "all")
        assert (folder / "accuracy.png").exists()
    for name in ("rounds.csv", "cohort.csv"):
        assert (tmp_path / "all" / "DS" / name).read_bytes() == (
            (tmp_path / "none" / "DS" / name).read_bytes()
        )
    why = (
        "results of each client are needed but were not recorded "
        "(--record_clients=none)"
    )
    assert "Not made: rounds_to_target, " in outputs["none"]
    assert outputs["none"].count(f"({why}).") == 1  # For all of them together.
    assert why not in outputs["all"] and "record_clients" not in (
        (tmp_path / "all" / "DS" / "run.json").read_text()
    )
    full, bare = (read_results(str(tmp_path / n / "DS")) for n in ("all", "none"))
    np.testing.assert_array_equal(full.rounds["accuracy"], bare.rounds["accuracy"])
    flags = [f"--tables={tmp_path / 'none'}", f"--output_dir={tmp_path / 'tables'}"]
    assert f"({why})." in run(*flags).stdout
    compare = f"--compare={tmp_path / 'all'},{tmp_path / 'none'}"
    assert why in run(compare, code=2).stderr
