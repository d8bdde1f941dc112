"""Dual's Tables IV and V from made-up runs; their measures by scikit-learn."""

import shutil

import numpy as np
import pandas as pd
import pytest
from reported import write
from small_results import RECORDED

from tff_pmc.record.predictions import NO_CLASS, Predictions
from tff_pmc.record.record_error import RecordError, RecordMissingError
from tff_pmc.record.results import Results
from tff_pmc.reports.papers import dual_cells

LABELS = np.array([0, 0, 1, 1, 1, 2, 2, 2, 2, 0])


def make(algorithm, wrong, *, seed=0, label="", path="", tables=(), y=LABELS, **row):
    """A run in whose epoch r the first `wrong[r]` examples are answered wrongly.

    With three clients, of whom two have test examples. `tables` are more of these.
    """
    at = np.arange(len(y))
    answers = [np.where(at < n, (y + 1) % 3, y) for n in wrong]
    validation = row.pop("validation", None)
    key = {"seed": seed, "label": label or f"{algorithm}, 3 clients"}
    run = {
        **RECORDED,
        **key,
        "algorithm": algorithm,
        "title": algorithm,
        "rounds": len(wrong),
    }
    run.update(note="3 clients", data_name="ten", data_clients=3, data_source="a test")
    run.update(data_options={"image_fraction": 0.1})
    rounds = {"round": range(1, len(wrong) + 1), "examples": len(y)}
    rounds["correct"] = [int((predicted == y).sum()) for predicted in answers]
    rounds.update({"validation_correct": validation} if validation else {})
    tables_by_name = {name: table.assign(**key) for name, table in dict(tables).items()}
    tables_by_name["rounds"] = pd.DataFrame(rounds).assign(**key)

    def predictions(seed, label, epoch):
        if path:  # Kept without them.
            raise RecordMissingError("no predictions")
        return Predictions(("a", "b"), np.array([0, 3, len(y)]), y, answers[epoch - 1])

    runs = pd.DataFrame([{**run, **row}])
    return Results(runs, tables_by_name.get, path=str(path), predictions=predictions)


def joined_runs(*runs):
    """Several runs as one."""
    run_by_key = {(run.seeds[0], run.labels[0]): run for run in runs}

    def read(name):
        tables = [table for run in runs if (table := run._read(name)) is not None]
        return pd.concat(tables, ignore_index=True) if tables else None

    return Results(
        pd.concat([run.runs for run in runs]),
        read,
        path=runs[0].path,
        predictions=lambda seed, *which: run_by_key[seed, which[0]].predictions(
            seed, *which
        ),
    )


WEIGHTED = {"wrong": [9, 4, 1, 1, 3], "validation": [1, 9, 5, 5, 5]}


def two(seed=0, **options):
    return (
        make("weighted_mean", **WEIGHTED, seed=seed, **options),
        make("simple_average", [2, 2, 5], seed=seed, **options),
    )


def accuracy(cells, algorithm):
    rows = cells[(cells.algorithm == algorithm) & (cells.metric == "Accuracy")]
    return rows.iloc[0]


def test_the_epoch_is_chosen_in_three_ways():
    """Right answers 1, 6, 9, 9, 7: best 3 (the first), last 5, validated 2."""
    cells = dual_cells.tidy_rows(joined_runs(*two()))
    row = accuracy(cells, "Weighted Mean")
    chosen = ["best_epoch", "last", "validated"]
    assert [row[f"ours_{name}"] for name in chosen] == [0.9, 0.7, 0.6]
    assert [row[f"{name}_at"] for name in chosen] == [3, 5, 2]
    assert (row.seed, row.clients, row.published) == (0, "C1&C2&C3", float(row.printed))
    row = accuracy(cells, "Simple Average")
    assert (row.ours_best_epoch, row.best_epoch_at) == (0.8, 1)
    assert np.isnan(row.ours_validated) and row.validated_at is pd.NA


def test_several_seeds_have_a_mean_and_its_spread(tmp_path):
    """Best accuracies .9 and .5; kept without predictions, their cells are read."""
    runs = joined_runs(*two(), make("weighted_mean", [5], seed=1))
    write("dual_table4", runs, tmp_path)
    row = accuracy(pd.read_csv(tmp_path / "dual_table4.csv"), "Weighted Mean")
    assert (row["mean"], row.lowest, row.highest) == (0.7, 0.5, 0.9)
    assert row.deviation == pytest.approx(0.4 / np.sqrt(2), rel=1e-5)
    assert row.difference == pytest.approx(0.7 - row.published)
    first = tmp_path / "first"
    write("dual_table4", runs.only(seed=0), first)

    kept = joined_runs(*two(path=tmp_path), make("weighted_mean", [5], seed=1))
    cells, again = dual_cells.tidy_rows(runs), dual_cells.tidy_rows(kept)
    column_types = {"validated_at": "float64"}  # In one NaN, in the other NA.
    again, cells = again.astype(column_types), cells.astype(column_types)
    pd.testing.assert_frame_equal(again, cells, check_dtype=False, atol=1e-9)
    for results, expected in ((kept, tmp_path), (kept.only(seed=0), first)):
        write("dual_table4", results, tmp_path / "again")
        for path in (tmp_path / "again").glob("*4*"):
            assert path.read_bytes() == (expected / path.name).read_bytes()
        shutil.rmtree(tmp_path / "again")

    # With one seed the table itself has the cells.
    alone = joined_runs(*two(path=first))
    write("dual_table4", alone, tmp_path / "again")
    for name in ("dual_table4.csv", "dual_table4.md"):
        assert (tmp_path / "again" / name).read_bytes() == (first / name).read_bytes()
    lacking = joined_runs(*two(path=first), make("median", [1], path=first))
    with pytest.raises(RecordError, match="no predictions"):
        dual_cells.tidy_rows(lacking)


@pytest.mark.parametrize("seeds", [1, 2])
def test_a_fraction_of_the_images_is_not_compared_with_the_paper(tmp_path, seeds):
    data = {"data_name": "obstacles", "data_source": "INCOMPLETE"}
    runs = joined_runs(*(make("dual", [0], seed=seed, **data) for seed in range(seeds)))
    assert "Incomplete data" in write("dual_table5", runs, tmp_path)
    cells = pd.read_csv(tmp_path / "dual_table5.csv")
    assert cells["difference"].isna().all() and cells["published"].notna().all()


def test_table_5_has_the_positive_class(tmp_path):
    """Two of three zeros right, one answered 1: precision 1/2 and F1 2/3 of class 1."""
    run = make("median", [1], y=np.array([0, 0, 0, 1]))
    text = write("dual_table5", run, tmp_path)
    cells = pd.read_csv(tmp_path / "dual_table5.csv").set_index("metric")
    assert cells.ours_best_epoch["Precision"] == 0.5
    assert cells.ours_best_epoch["F1 Score"] == pytest.approx(2 / 3)
    assert cells.published["Accuracy"] == 0.93029
    assert "Noise" not in text  # Its three places are not of one size.


@pytest.mark.parametrize(
    ("algorithm", "row"), [("trimmed", {}), ("quantized", {"quantized_levels": 256})]
)
def test_runs_that_the_paper_does_not_have_are_omitted_and_named(
    tmp_path, algorithm, row
):
    """A new aggregator, or quantized updates of before, do not come into its table."""
    other = make(algorithm, [3], **row)
    text = write("dual_table4", joined_runs(*two(), other), tmp_path)
    cells = pd.read_csv(tmp_path / "dual_table4.csv")
    assert [*cells.algorithm[::4]] == ["Simple Average", "Weighted Mean"]
    note = f"Runs without a row in this table: {algorithm}, 3 clients."
    assert note in text and note in (tmp_path / "dual_table4.md").read_text()
    for runs in (other, joined_runs(other, make(algorithm, [3], seed=1, **row))):
        text = write("dual_table4", runs, tmp_path / "alone")
        assert text == "Dual Table IV (CIFAR-10) is omitted: no run of its algorithms."
        assert list((tmp_path / "alone").iterdir()) == []


def test_two_runs_of_one_row_are_rejected(tmp_path):
    runs = joined_runs(make("median", [3], label="a"), make("median", [3], label="b"))
    with pytest.raises(RecordError, match="a and b are both runs of Median with C1&"):
        write("dual_table4", runs, tmp_path)


def searched(judge_on, seed=0):
    """Dual with lambda 0, .5 and 1 in two epochs; 60 pictures judged."""
    rows = [
        (epoch, trial, f"lambda={label}", right, 60, int(trial == kept))
        for epoch, kept, correct in ((1, 1, (30, 36, 36)), (2, 2, (33, 30, 42)))
        for trial, (label, right) in enumerate(zip(("0.00", "0.50", "1.00"), correct))
    ]
    columns = ["round", "trial", "ordering", "correct", "examples", "kept"]
    table = pd.DataFrame(rows, columns=columns).assign(kind="trial")
    return make(
        "dual", [5, 2], seed=seed, tables={"candidates": table}, judge_on=judge_on
    )


def test_the_lambda_chosen_in_each_epoch_is_shown(tmp_path):
    text = write("dual_table4", joined_runs(searched("test"), *two()), tmp_path)
    lambdas = pd.read_csv(tmp_path / "dual_table4_lambda.csv")
    expected = {
        "epoch": [1, 2],
        "lambda": [0.5, 1.0],
        "equally_good": [2, 1],
        "chosen": [0.6, 0.7],
        "lambda_0": [0.5, 0.55],
        "mean": [0.566667, 0.583333],
        "lowest": [0.5, 0.5],
    }
    assert lambdas.drop(columns="clients").to_dict("list") == expected
    assert (tmp_path / "dual_table4_lambda.png").stat().st_size > 0
    # ((.6 - .56667) + (.7 - .58333)) / 2.
    assert "the highest of 3 models', and that of every other" in text
    assert "it is 0.0750 above the mean of the lambdas" in text
    assert "on the reported examples, as printed (--judge_on=test)" in text
    seeds = joined_runs(searched("server"), searched("server", seed=1))
    text = write("dual_table4", seeds, tmp_path)
    assert "on the evaluation set, which is not reported (--judge_on=server)" in text
    assert "above the mean of the lambdas" not in text
    without = write("dual_table4", joined_runs(*two()), tmp_path / "without")
    assert "lambda was chosen" not in without
    assert not list((tmp_path / "without").glob("*lambda*"))


@pytest.mark.parametrize("seed", range(10))
def test_metrics_equal_scikit_learns(seed):
    """Two to eleven classes, of which some may be without labels, or answers."""
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(seed)
    classes, count = generator.integers(2, 12), generator.integers(1, 60)
    y = generator.integers(0, classes, count)
    guess = generator.integers(0, generator.integers(1, classes + 1), count)
    some = np.where(generator.random(count) < 0.5, y, guess)
    label = int(generator.integers(1 + max(y.max(), some.max())))
    # Where all answers are of one class, MCC divides 0 by 0.
    for predicted, positive in ((some, None), (some, label), (0 * y, None)):
        labels = y, predicted
        options = {"average": "macro", "zero_division": 0}
        options |= {} if positive is None else {"labels": [positive]}
        expected = (
            metrics.accuracy_score(*labels),
            metrics.precision_score(*labels, **options),
            metrics.f1_score(*labels, **options),
            metrics.matthews_corrcoef(*labels),
        )
        values = tuple(dual_cells.measures(*labels, positive).values())
        assert values == pytest.approx(expected, abs=1e-12)


def test_a_prediction_of_no_class_is_wrong_and_in_no_precision():
    y = np.repeat([0, 1, 2, 3], 5)
    metrics = dual_cells.measures(y, np.where(np.arange(20) == 0, NO_CLASS, y))
    assert metrics["Accuracy"] == 0.95
    assert metrics["Precision"] == 1.0  # Of the answers of each class all are right.
    assert metrics["F1 Score"] == pytest.approx((8 / 9 + 3) / 4)


def test_counts_of_a_large_test_set_do_not_overflow():
    """R_K multiplies fourth powers: 10^6 examples would leave int64."""
    y = np.repeat([0, 1], 10**6)
    assert dual_cells.measures(y, y)["MCC"] == 1.0
