"""Runs from the command line: what they record and show."""

import json

import numpy as np
import pytest
from cli import SMALL, records, refusal, run, table


def codes():
    """All criteria but sharpness, which is of faces, and those of the server."""
    from tff_pmc import criteria

    return [
        code
        for code, criterion in criteria.REGISTRY.items()
        if code != "IS" and not criterion.needs_server_examples
    ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Two orderings on the embedded digits, with every criterion and all answers."""
    folder = tmp_path_factory.mktemp("cli") / "out"
    done = run(
        *(*SMALL, "--priority=DS;LD,MD,DS", f"--criteria={','.join(codes())}"),
        *("--predictions", f"--output_dir={folder}"),
    )
    return folder, done


def test_a_run_leaves_a_record_and_shows_its_table(finished):
    folder, done = finished
    assert "Rounds until a share of the devices" in done.stdout
    assert "LD,MD,DS" in done.stdout
    assert "run 1 of 2: DS" in done.stderr and "run 2 of 2: LD,MD,DS" in done.stderr
    assert "accuracy" in done.stderr
    for name in ("accuracy.png", "fairness.png"):
        assert (folder / name).exists()
    rows = table(folder / "results.csv")
    assert {row["experiment"] for row in rows} == {"DS", "LD,MD,DS"}
    assert {row["quantity"] for row in rows} >= {"rounds", "gain", "last_accuracy"}
    last = [row for row in table(folder / "DS" / "rounds.csv")][-1]
    values = {
        row["quantity"]: row["value"] for row in rows if row["experiment"] == "DS"
    }
    assert float(values["last_accuracy"]) == float(last["accuracy"])
    assert round(float(values["last_p10"]), 4) == float(last["p10"])
    shown = [line.split() for line in done.stdout.splitlines()]
    assert any(line[:3] == ["FedAvg", "(DS)", "last"] for line in shown)


def test_the_record_is_complete(finished):
    folder, _ = finished
    for name in ("DS", "LD-MD-DS"):
        info = json.loads((folder / name / "run.json").read_text())
        assert info["status"] == "finished"
        assert info["settings"]["training"]["cohort_seed"] == 0
        assert info["format"] == 4
        assert info["versions"]["tensorflow-federated"] == "0.87.0"
        rounds = table(folder / name / "rounds.csv")
        assert [row["round"] for row in rounds] == ["1", "2"]
        clients = table(folder / name / "clients.csv")
        assert len(clients) == 200
        for row in rounds:
            hits = sum(
                int(client["correct"])
                for client in clients
                if client["round"] == row["round"]
            )
            assert hits == int(row["correct"])
        cohort = [row["client"] for row in table(folder / name / "cohort.csv")]
        drawn = [np.random.default_rng([0, n]).choice(100, 10, False) for n in (1, 2)]
        assert cohort == [f"client_{k:03d}" for part in drawn for k in sorted(part)]
    # Round 1 starts from one model: the criteria agree, the weights differ.
    first, second = (table(folder / n / "cohort.csv")[:10] for n in ("DS", "LD-MD-DS"))
    for column in ("client", "DS", "LD", "MD"):
        assert [row[column] for row in first] == [row[column] for row in second]
    assert [row["weight"] for row in first] == ["0.1"] * 10
    assert [row["weight"] for row in second] != ["0.1"] * 10


def test_an_adjusted_run_next_to_a_fixed_one(tmp_path):
    """One command; judged on a fifth of the training examples, which nobody trains on.

    An ordering of one criterion has nothing to adjust: it is run once, as it is.
    """
    folder = tmp_path / "out"
    done = run(
        *SMALL,
        *("--rounds=4", "--priority=MD,DS,LD;DS", "--learning_rate=0.3"),
        *("--adjustment=best_of_all", "--judge_on=local_validation"),
        f"--output_dir={folder}",
    )
    assert "MD,DS,LD (best_of_all)" in done.stdout
    assert "tested 6 candidates and kept" in done.stderr
    adjusted, fixed = folder / "MD-DS-LD_best_of_all", folder / "DS"
    assert not (fixed / "candidates.csv").exists()
    rounds, tried = table(adjusted / "rounds.csv"), table(adjusted / "candidates.csv")
    assert len(tried) == 4 * 6
    for row in rounds:
        round_trials = [t for t in tried if t["round"] == row["round"]]
        assert [t["trial"] for t in round_trials] == list("123456")
        (kept,) = [t for t in round_trials if t["kept"] == "1"]
        assert kept["ordering"] == row["ordering"]
        assert int(kept["correct"]) == max(int(t["correct"]) for t in round_trials)
        assert {t["examples"] for t in round_trials} == {
            "800"
        }  # 100 clients, 8 of 40 each.
        assert row["testing_rounds"] == "6" and row["examples"] == "1000"
        model = 7_850 * 4
        assert int(row["test_bytes"]) == 6 * 100 * (model + 4)
    assert int(rounds[0]["train_bytes"]) == 10 * (8 * model + 8 + 7 * 4 + 3 * 4 + 4 * 4)
    for path in (adjusted, fixed):
        assert {row["DS"] for row in table(path / "cohort.csv")} == {"32.0"}
    for row in table(fixed / "rounds.csv"):
        assert row["testing_rounds"] == row["test_bytes"] == "0"


def test_predictions_give_the_counts(finished):
    """Recorded answers add up to the record."""
    folder, _ = finished
    predictions = folder / "DS" / "predictions"
    labels = np.load(predictions / "labels.npz")
    counts = []
    for name in ("round_0001.npz", "round_0002.npz"):
        right = np.load(predictions / name)["predicted"] == labels["y"]
        counts += [
            int(part.sum()) for part in np.split(right, labels["row_splits"][1:-1])
        ]
    rows = table(folder / "DS" / "clients.csv")
    assert counts == [int(row["correct"]) for row in rows]
    assert list(labels["client_ids"]) == [row["client"] for row in rows[:100]]


def test_every_registered_criterion_runs_from_the_command_line(finished):
    folder, _ = finished
    rows = table(folder / "DS" / "cohort.csv")
    for code in codes():  # CB is 0 for a client of one class.
        assert max(float(row[code]) for row in rows) > 0, code


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "OWN fails for a made-up client"),
        ({3: 1.0}, "OWN gave a negative value"),
    ],
)
def test_an_invalid_criterion_is_one_line(tmp_path, monkeypatch, values, says):
    """In the probe, whose client has three examples, or in the first round."""
    from tff_pmc import criteria
    from tff_pmc._lazy import tf

    def value(client):
        return tf.where(tf.shape(client.y)[0] > 3, -1.0, values[3])

    criterion = criteria.Criterion("OWN", "mine", "this test", value)
    monkeypatch.setitem(criteria.REGISTRY._things, "OWN", criterion)
    assert says in refusal(*SMALL, "--criteria=DS,OWN", f"--output_dir={tmp_path}/out")
    inspected = run(*SMALL, "--criteria=DS,OWN", "--inspect", code=2).stderr
    assert says in inspected.splitlines()[-1] and "Traceback" not in inspected


SEEDED = [*SMALL, "--priority=DS;LD", "--reach=above"]


@pytest.fixture(scope="module")
def seeded(tmp_path_factory):
    """Two orderings under two seeds."""
    folder = tmp_path_factory.mktemp("seeds") / "out"
    return folder, run(*SEEDED, "--seeds=3,5", f"--output_dir={folder}")


def test_several_seeds_end_in_a_page_of_effects(seeded):
    folder, done = seeded
    assert "With fewer than 5 seeds there is no verdict" in done.stdout
    assert "run 4 of 4, seed 5: LD" in done.stderr
    assert "of 2 seeds" in done.stdout
    means = {row["quantity"]: row for row in table(folder / "seeds.csv")}
    accuracies = [
        float(table(folder / f"seed_{seed}" / "LD" / "rounds.csv")[-1]["accuracy"])
        for seed in (3, 5)
    ]
    assert float(means["last_accuracy"]["mean"]) == pytest.approx(sum(accuracies) / 2)
    assert "--reach=above" in (folder / "effect.md").read_text()
    for row in table(folder / "effect.csv"):
        assert row["row"] == "LD" and row["verdict"] in ("undecided", "not reached")
        assert float(row["from_first"]) == 0 < float(row["total_variation"])
    for seed in (3, 5):
        info = json.loads((folder / f"seed_{seed}" / "LD" / "run.json").read_text())
        groups = [info["settings"][name] for name in ("training", "data", "model")]
        seeds = {
            k: v for group in groups for k, v in group.items() if k.endswith("_seed")
        }
        names = ("cohort_seed", "batch_seed", "partition_seed", "model_seed")
        assert seeds == dict.fromkeys(names, seed)
    before = (folder / "effect.md").read_bytes()
    (folder / "effect.md").unlink()
    again = [*SEEDED, "--resume", f"--output_dir={folder}"]
    run(*again, "--seeds=3,5")
    assert (folder / "effect.md").read_bytes() == before
    assert "seeds: [3, 5] there" in refusal(*again, "--seeds=3,6")


def test_runs_without_seeds_are_not_resumed_with_seeds(tmp_path):
    flags = [*SEEDED, f"--output_dir={tmp_path / 'out'}"]
    run(*flags, "--seed=3")
    before = records(tmp_path / "out")
    error = refusal(*flags, "--seeds=3,5", "--resume")
    assert "cannot be resumed with --seeds: its runs were started with one" in error
    assert "remove --seeds, or choose another folder" in error
    assert records(tmp_path / "out") == before
    assert not (tmp_path / "out" / "seed_3").exists()


@pytest.mark.parametrize("num_clients", [(4, 5), (5, 4)])
def test_rows_are_checked_on_their_own_data_before_a_folder_is_made(
    tmp_path, monkeypatch, num_clients
):
    """Five clients a round are not too many for the row of five."""
    from declared_settings import SettingError
    from tff_pmc.experiments.experiment import settings
    from tff_pmc.experiments.running import sweep

    shared = {"algorithm": "fedavg", "dataset": "synthetic"}
    shared |= {"model": "softmax_regression"}
    too_many, fitting = [
        [
            settings("quickstart", {**shared, "num_clients": n, "clients_per_round": k})
            for n, k in zip(num_clients, sizes)
        ]
        for sizes in ((5, 5), num_clients)
    ]
    with pytest.raises(SettingError, match="=5, but synthetic has 4 clients"):
        sweep.run_all(too_many, lambda s: s.data.load(), str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()

    def stop(jobs, **others):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweep, "sweep", stop)
    with pytest.raises(KeyboardInterrupt):
        sweep.run_all(fitting, lambda s: s.data.load(), str(tmp_path / "out"))
