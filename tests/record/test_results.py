"""Several runs as data frames: folders of runs, kept results, and runs in memory."""

import json
import os

import numpy as np
import pandas as pd
import pytest

import tff_pmc
from tff_pmc import criteria
from tff_pmc.record.kept_results import keep_results
from tff_pmc.record.record_error import RecordError, RecordMissingError
from tff_pmc.record.results import join_results
from tff_pmc.record.tables import COHORT

TABLES = ("rounds", "clients", "cohort", "candidates", "class_f1", "timing")


def write_run(folder, label, correct, seed=0, **settings):
    """A run of two clients of ten test examples each, as the folder of a run has it."""
    folder.mkdir(parents=True)
    training = {"rounds": len(correct), "batch_seed": seed, **settings}
    info = {
        **{"label": label, "algorithm": "Prioritized", "status": "finished"},
        "settings": {"experiment": "quickstart", "training": training},
        "data": {"name": "mnist", "clients": 2, "origin": {"source": "idx files"}},
    }
    (folder / "run.json").write_text(json.dumps(info))
    rounds, clients = (
        ["round,accuracy,correct,examples"],
        ["round,client,correct,examples"],
    )
    for number, (a, b) in enumerate(correct, 1):
        rounds.append(f"{number},{(a + b) / 20},{a + b},20")
        clients += [f"{number},a,{a},10", f"{number},b,{b},10"]
    (folder / "rounds.csv").write_text("\n".join([*rounds, ""]))
    (folder / "clients.csv").write_text("\n".join([*clients, ""]))


@pytest.fixture
def seeds(tmp_path):
    """Two runs under two seeds, in the order of the plan of each seed."""
    for seed in (0, 10):
        folder = tmp_path / f"seed_{seed}"
        for label, extra in (("DS", 0), ("LD,DS", 1)):
            correct = [[1, 2 + extra], [3, 4 + extra + seed // 10]]
            write_run(folder / label.replace(",", "-"), label, correct, seed)
        plan = {"settings": {"orderings": ["LD,DS", "DS"]}}
        (folder / "run.json").write_text(json.dumps(plan))
    (tmp_path / "run.json").write_text('{"settings": {"baseline": "LD,DS"}}')
    return tmp_path


def test_columns_of_the_cohort_are_no_codes_of_criteria(tmp_path, record_of):
    """The frames of a run and of a round have no other columns than criteria."""
    record = record_of()
    write_run(tmp_path / "DS", "DS", [[1, 2]])
    rows = pd.DataFrame(COHORT.rows(record))
    rows.to_csv(tmp_path / "DS" / "cohort.csv", index=False, lineterminator="\n")
    other_columns = {*tff_pmc.read_results(str(tmp_path)).cohort} - {*record.codes}
    assert other_columns == COHORT.reserved == {*criteria.RESERVED} - {"all"}


def test_a_folder_of_seeds_is_read(seeds):
    results = tff_pmc.read_results(str(seeds))
    assert (results.labels, results.seeds) == (["LD,DS", "DS"], [0, 10])
    assert results.baseline == "LD,DS" and results.setting("rounds") == 2
    first = results.runs.iloc[0]
    assert (first["title"], first["data_source"]) == ("Prioritized", "idx files")
    selected = results.only(seed=10, label="LD,DS")
    assert selected.rounds["correct"].tolist() == [4, 9]
    assert selected.clients["correct"].tolist() == [1, 3, 3, 6]
    assert results.length.to_dict() == {
        (seed, label): 2 for seed in (0, 10) for label in ("LD,DS", "DS")
    }
    for name in ("cohort", "candidates", "class_f1", "timing"):
        assert getattr(results, name).empty and "round" in getattr(results, name)


@pytest.mark.parametrize("again", [False, True])
def test_kept_results_are_read_back_and_equal_results_give_equal_files(seeds, again):
    results = tff_pmc.read_results(str(seeds))
    folders = [seeds / "kept", seeds / "kept_again"]
    for folder in folders:
        keep_results(results, str(folder), {"command": "make it"})
        if again:
            results = tff_pmc.read_results(str(folder))
    kept = tff_pmc.read_results(str(folders[0]))
    assert kept.about["command"] == "make it"
    for name in TABLES:
        pd.testing.assert_frame_equal(getattr(kept, name), getattr(results, name))
    plain = [source.runs.drop(columns="path") for source in (kept, results)]
    assert plain[0].to_dict("records") == plain[1].to_dict("records")
    names = sorted(os.listdir(folders[0]))
    assert names == ["clients.csv.gz", "experiment.json", "rounds.csv.gz"]
    for name in names:
        contents = [(folder / name).read_bytes() for folder in folders]
        assert contents[0] == contents[1]


def test_runs_in_memory_are_results_too():
    counts = {"DS": [[3, 1], [4, 2]], "LD": [[0, 0], [5, 5]]}
    results = tff_pmc.results_of_counts(
        counts, examples=[5, 5], settings={"targets": [70]}
    )
    assert results.rounds["accuracy"].tolist() == [0.4, 0.6, 0.0, 1.0]
    assert results.rounds["p50"].tolist() == pytest.approx([0.4, 0.6, 0, 1])
    assert results.clients["correct"].tolist() == [3, 1, 4, 2, 0, 0, 5, 5]
    assert results.setting("targets") == (70,) and results.labels == ["DS", "LD"]
    other = tff_pmc.results_of_counts({"DS": [[1, 1]]}, examples=[5, 5], seed=1)
    joined = join_results([results, other])
    assert joined.seeds == [0, 1] and len(joined.rounds) == 5
    with pytest.raises(RecordError, match="there are two runs of DS, seed 0"):
        join_results([results, results])


@pytest.mark.parametrize(
    ("correct", "examples", "says"),
    [
        ([1, 2], [5, 5], r"correct must be \[rounds, clients\]"),
        (np.zeros((0, 2), int), [5, 5], "with at least one round"),
        ([[1, 2]], [5], r"got \[1, 2\] and \[1\]"),
        ([[0.5, 0.2]], [5, 5], "must be integers"),
        ([[6, 0]], [5, 5], "correct must lie between 0 and examples"),
        ([[0, 0]], [0, 0], "some client must have test examples"),
    ],
)
def test_invalid_counts_are_rejected(correct, examples, says):
    with pytest.raises(RecordError, match=says):
        tff_pmc.results_of_counts({"DS": correct}, examples)


def damage_nothing(folder):
    (folder / "empty").mkdir()
    return folder / "empty"


def damage_seed(folder):
    (folder / "seed_1").mkdir()
    os.rename(folder / "seed_10" / "DS", folder / "seed_1" / "DS")
    os.rename(folder / "seed_0" / "DS", folder / "seed_10" / "DS")
    text = (folder / "seed_1" / "DS" / "run.json").read_text()
    path = folder / "seed_1" / "DS" / "run.json"
    path.write_text(text.replace('"batch_seed": 10', '"batch_seed": 0'))
    return folder


def damage_json(folder):
    (folder / "seed_0" / "DS" / "run.json").write_text('{"label": "DS", "data": {}}')
    return folder


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (damage_nothing, "contains no run: no folder has both run.json and rounds.csv"),
        (damage_seed, "are both runs of DS under seed 0"),
        (damage_json, "run.json has no 'settings'"),
        (lambda folder: folder / "missing", "missing is not a folder"),
    ],
)
def test_a_folder_that_holds_no_runs_is_named(seeds, damage, says, assert_one_line):
    folder = damage(seeds)
    read = lambda: tff_pmc.read_results(str(folder))  # noqa: E731
    assert_one_line(RecordError, read, says)


def test_differing_settings_and_missing_tables_are_named(seeds):
    write_run(seeds / "seed_0" / "MD", "MD", [[1, 1]], learning_rate=0.5)
    results = tff_pmc.read_results(str(seeds))
    with pytest.raises(RecordError, match="LD-DS has 2, .*MD has 1"):
        results.check_settings()
    results.only(label=["DS", "LD,DS"]).check_settings()  # But for their seeds.
    with pytest.raises(RecordMissingError, match="was the run made with --predictions"):
        results.predictions(0, "DS", 1)


def test_predictions_give_the_recorded_counts(seeds):
    folder = seeds / "seed_0" / "DS"
    (folder / "predictions").mkdir()
    y, right = np.arange(20) % 10, np.isin(np.arange(20), [0, 10, 11])
    np.savez(
        folder / "predictions" / "labels.npz",
        **{"y": y, "row_splits": [0, 10, 20], "client_ids": ["a", "b"]},
    )
    for number in (1, 2):  # Three are right, as in round 1.
        name = folder / "predictions" / f"round_000{number}.npz"
        np.savez(name, predicted=np.where(right, y, 255))
    results = tff_pmc.read_results(str(seeds))
    predictions = results.predictions(0, "DS", 1)
    assert predictions.correct.tolist() == [1, 2] and predictions.client_ids == (
        "a",
        "b",
    )
    assert predictions.reorder([1, 0]).correct.tolist() == [2, 1]
    with pytest.raises(RecordError, match="round 2 do not give the count of correct"):
        results.predictions(0, "DS", 2)
