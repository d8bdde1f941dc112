"""Dual's Tables IV and V from made-up run folders; their figures by scikit-learn."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from folders import write_folder
from reported import write

from tff_pmc.record import read
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import dual_cells

LABELS = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 0])


def make_run(folder, system, wrong, validation=None, name="ten", title=None):
    """A run in whose round r the first `wrong[r]` examples are answered wrongly.

    With three clients, of whom two have test examples.
    """
    settings = {"system": system, "model": "cnn", "client_optimizer": "sgd"}
    settings.update(learning_rate=0.1, local_epochs=1, batch_size=8)
    settings.update(rounds=3, batch_seed=0)
    data = {"name": name, "clients": 3, "options": {"image_fraction": 0.1}}
    data["origin"] = {"source": "somewhere"}
    info = {"label": f"{title or system}, 3 clients", "system": title or system}
    info.update(note="3 clients", settings=settings, data=data)
    columns = {"correct": 10 - np.array(wrong)}
    if validation is not None:
        columns["validation_correct"] = validation
    at = np.arange(10)
    predicted = [np.where(at < n, (LABELS + 1) % 3, LABELS) for n in wrong]
    write_folder(folder, info, LABELS, [0, 4, 10], predicted, ["a", "b"], **columns)
    return read.read_run(str(folder))


@pytest.fixture
def runs(tmp_path):
    return [
        make_run(tmp_path / "w", "weighted_mean", [9, 4, 1, 1, 3], [1, 9, 5, 5, 5]),
        make_run(tmp_path / "s", "simple_average", [2, 2, 5]),
    ]


def table(runs, folder, number=4):
    return write(f"dual_table{number}", runs, folder)


def over_seeds(by_seed, folder, number=4):
    name = f"dual_table{number}_seeds"
    return write(name, by_seed, folder, baseline="Weighted mean")


def accuracy(cells, algorithm):
    rows = cells[(cells.algorithm == algorithm) & (cells.metric == "Accuracy")]
    return rows.iloc[0]


def test_the_epoch_is_chosen_in_three_ways(runs):
    """Right answers 1, 6, 9, 9, 7: best 3 (the first), last 5, validated 2."""
    cells = dual_cells.tidy_rows(runs, 4)
    row = accuracy(cells, "Weighted Mean")
    chosen = ["best_epoch", "last", "validated"]
    assert [row[f"ours_{name}"] for name in chosen] == [0.9, 0.7, 0.6]
    assert [row[f"{name}_at"] for name in chosen] == [3, 5, 2]
    row = accuracy(cells, "Simple Average")
    assert (row.ours_best_epoch, row.best_epoch_at) == (0.8, 1)
    assert np.isnan(row.ours_validated) and row.validated_at is pd.NA


def test_drawn_pictures_are_not_held_against_the_papers(tmp_path):
    run = make_run(tmp_path / "run", "dual", [0], name="drawn_obstacles")
    for make, of in ((table, [run]), (over_seeds, {0: [run]})):
        assert "Stand-in data" in make(of, tmp_path, 5)
        cells = pd.read_csv(tmp_path / "dual_table5.csv")
        assert cells["difference"].isna().all() and cells["published"].notna().all()


def test_table_5_is_of_the_positive_class(tmp_path):
    """Two of three zeros right, one answered 1: precision 1/2 and F1 2/3 of class 1."""
    run = make_run(tmp_path / "run", "median", [0])
    record = tmp_path / "run" / "predictions"
    splits = {"row_splits": [0, 2, 4], "client_ids": ["a", "b"]}
    np.savez(record / "labels.npz", y=[0, 0, 0, 1], **splits)
    np.savez(record / "round_0001.npz", predicted=[0, 0, 1, 1])
    counts = {"correct": np.array([[2, 1]]), "examples": np.array([2, 2])}
    text = table([dataclasses.replace(run, **counts)], tmp_path, 5)
    cells = pd.read_csv(tmp_path / "dual_table5.csv").set_index("metric")
    assert cells.ours_best_epoch["Precision"] == 0.5
    assert cells.ours_best_epoch["F1 Score"] == pytest.approx(2 / 3)
    assert cells.published["Accuracy"] == 0.93029
    assert "Noise" not in text  # Its three places are not of one size.


def test_what_the_paper_does_not_have_is_left_out_and_named(runs, tmp_path):
    """A new aggregator does not come into the paper's table by being run."""
    other = make_run(tmp_path / "t", "trimmed", [3], title="Trimmed mean")
    text = table([*runs, other], tmp_path)
    cells = pd.read_csv(tmp_path / "dual_table4.csv")
    assert set(cells.algorithm) == {"Simple Average", "Weighted Mean"}
    note = "Runs that are no row of this table: Trimmed mean, 3 clients."
    assert note in text and note in (tmp_path / "dual_table4.md").read_text()
    alone = tmp_path / "alone"
    alone.mkdir()
    text = table([other], alone)
    assert text == "Dual Table IV (CIFAR-10) is left out: no run of its algorithms."
    assert over_seeds({0: [other]}, alone) == text
    assert list(alone.iterdir()) == []


@pytest.fixture
def searched(tmp_path):
    """Dual with lambda 0, .5 and 1 in two epochs; 60 pictures judged."""
    make_run(tmp_path / "dual", "dual", [5, 2])
    lines = ["round,trial,ordering,correct,examples,accuracy,kept"]
    for epoch, kept, correct in ((1, 1, (30, 36, 36)), (2, 2, (33, 30, 42))):
        for trial, (label, right) in enumerate(zip(("0.00", "0.50", "1.00"), correct)):
            row = (epoch, trial + 1, f"lambda={label}", right, 60, right / 60)
            lines.append(",".join(map(str, (*row, int(trial == kept)))))
    (tmp_path / "dual" / "candidates.csv").write_text("\n".join([*lines, ""]))
    return lambda judge_on: _judged_on(tmp_path / "dual", judge_on)


def _judged_on(folder, judge_on):
    info = json.loads((folder / "run.json").read_text())
    info["settings"].update(judge_on=judge_on, adjustment="best_of_all")
    (folder / "run.json").write_text(json.dumps(info))
    return read.read_run(str(folder))


def test_the_lambda_chosen_in_each_epoch_is_shown(searched, runs, tmp_path):
    text = table([searched("test"), *runs], tmp_path)
    lambdas = pd.read_csv(tmp_path / "dual_table4_lambda.csv")  # A kept one is larger.
    assert list(lambdas["lambda"]) == [0.5, 1.0] and list(lambdas["epoch"]) == [1, 2]
    assert (tmp_path / "dual_table4_lambda.png").stat().st_size > 0
    # ((.6 - .56667) + (.7 - .58333)) / 2.
    assert "the highest of 3 models', and that of every other" in text
    assert "it is 0.0750 above the mean of the lambdas" in text
    assert "on the reported examples, as printed (--judge_on=test)" in text
    text = over_seeds({0: [searched("server"), *runs]}, tmp_path)
    assert "on the evaluation set, which is not reported (--judge_on=server)" in text
    assert "above the mean of the lambdas" not in text
    assert "lambda was chosen" not in table(runs, tmp_path / "without")
    assert not list((tmp_path / "without").glob("*lambda*"))


def test_what_is_missing_is_named(tmp_path):
    assert "is left out: no run of its algorithms" in table([], tmp_path)
    run = make_run(tmp_path / "run", "median", [3])
    (tmp_path / "run" / "predictions" / "round_0001.npz").unlink()
    with pytest.raises(RecordError, match="round_0001.npz is missing"):
        table([run], tmp_path)
    runs = [make_run(tmp_path / name, "median", [3]) for name in ("a", "b")]
    with pytest.raises(RecordError, match="a and .*b are both runs of Median with C1&"):
        table(runs, tmp_path)


@pytest.mark.parametrize("seed", range(10))
def test_scikit_learn_says_the_same(seed):
    """Two to eleven classes, of which some may be without labels, or answers."""
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(seed)
    classes, count = generator.integers(2, 12), generator.integers(1, 60)
    y = generator.integers(0, classes, count)
    guess = generator.integers(0, generator.integers(1, classes + 1), count)
    some = np.where(generator.random(count) < 0.5, y, guess)
    one = int(generator.integers(1 + max(y.max(), some.max())))
    # Where all answers are of one class, MCC divides 0 by 0.
    for predicted, positive in ((some, None), (some, one), (0 * y, None)):
        both = y, predicted
        options = {"average": "macro", "zero_division": 0}
        options |= {} if positive is None else {"labels": [positive]}
        expected = (
            metrics.accuracy_score(*both),
            metrics.precision_score(*both, **options),
            metrics.f1_score(*both, **options),
            metrics.matthews_corrcoef(*both),
        )
        found = tuple(dual_cells.measures(*both, positive).values())
        assert found == pytest.approx(expected, abs=1e-12)


def test_counts_of_a_large_test_set_do_not_overflow():
    """R_K multiplies fourth powers: 10^6 examples would leave int64."""
    y = np.repeat([0, 1], 10**6)
    assert dual_cells.measures(y, y)["MCC"] == 1.0
