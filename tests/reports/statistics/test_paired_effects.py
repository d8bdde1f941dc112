"""Differences from a baseline, seed by seed, on numbers worked by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from small_results import join_results, of_seeds, results_of_seed, with_losses

from tff_pmc.record.record_error import NotRecordedError, RecordError
from tff_pmc.record.results import Results
from tff_pmc.reports.statistics import measures, paired_effects

TEN = [10, 10]  # Two devices, equally good.


def effects(results, baseline=""):
    """The table by row and measure."""
    return paired_effects.effects(results, baseline).set_index(["row", "measure"])


def rounds_of(per_round):
    return [[right, right] for right in per_round]


def two_rows(ds, ld, **options):
    """DS and LD, each with a list of rounds per seed."""
    by_seed = {
        seed: {"DS": rounds_of(a), "LD": rounds_of(b)}
        for seed, (a, b) in enumerate(zip(ds, ld))
    }
    return of_seeds(by_seed, TEN, **options)


def five_seeds(end="", gains=(1, 1, 1, 1, 0), **options):
    """DS has 5, 6, 7, 8, 9 right in the second half; LD 1, 1, 1, 1, 0 more."""
    by_seed = {
        seed: {
            f"{label}{end}": rounds_of([0, 0, right, right])
            for label, right in (("DS", a), ("LD", a + m))
        }
        for seed, (a, m) in enumerate(zip([5, 6, 7, 8, 9], gains))
    }
    return of_seeds(by_seed, TEN, **options)


def test_differences_are_paired_by_seed():
    """Accuracy: .1 .1 .1 .1 0: mean .08, deviation sqrt(.002), t(4) = 2.776."""
    results = five_seeds(", drawn by size", baseline="DS, drawn by size", targets=(70,))
    row = effects(results).loc["LD, drawn by size", "accuracy"]
    assert row["baseline"] == "DS, drawn by size" and row["verdict"] == "better"
    assert row["mean"] == pytest.approx(0.08)
    assert row["deviation"] == pytest.approx(math.sqrt(0.008 / 4))
    half = 2.776 * math.sqrt(0.002 / 5)
    assert row["interval"] == pytest.approx(half, rel=1e-3)
    limits = [0.08 - half, 0.08 + half]
    assert [row["low"], row["high"]] == pytest.approx(limits, rel=1e-3)
    # All pairs of .5 .6 .7 .8 .9: four at .1, three at .2, two at .3, one at .4.
    squares = 4 * 0.01 + 3 * 0.04 + 2 * 0.09 + 0.16
    floor = math.sqrt(squares / 10)
    assert row["noise_floor"] == pytest.approx(floor)
    assert row["noise_floor_of_mean"] == pytest.approx(floor / math.sqrt(5))
    assert (row["more_in"], row["less_in"]) == (4, 0)
    assert (row["seeds"], row["rounds"]) == (5, 4)


@pytest.mark.parametrize(
    ("gains", "low", "high"),
    [
        # 12.706 is t of one degree of freedom: .05 + 12.706 * .05.
        ((1, 0), 0.05 - 0.6353, 0.05 + 0.6353),
        ((1, 1), 0.1, 0.1),
    ],
)
def test_two_seeds_give_an_interval_and_no_verdict(gains, low, high):
    results = five_seeds(gains=(*gains, 0, 0, 0)).only(seed=[0, 1])
    row = effects(results).loc["LD", "accuracy"]
    assert [row["low"], row["high"]] == pytest.approx([low, high], abs=1e-4)
    assert row["verdict"] == "undecided"
    alone = effects(results.only(seed=0)).loc["LD", "accuracy"]
    assert alone["mean"] == pytest.approx(0.1) and math.isnan(alone["low"])


NEVER = [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("ds", "ld", "mean", "signs", "verdict"),
    [
        ([[0, 8], [0, 8]], [[8, 8], [0, 8]], -0.5, (0, 1), "undecided"),
        (5 * [[0, 8]], 5 * [[8, 8]], -1, (0, 5), "better"),
        (5 * [[8, 8]], 5 * [[0, 8]], 1, (5, 0), "worse"),
        # One does not arrive under some seed: the mean is not known.
        ([[0, 0], *4 * [[8, 8]]], 5 * [[8, 8]], math.nan, (0, 1), "censored"),
        (
            [[0, 0], *4 * [[8, 8]]],
            [[0, 0], *4 * [[8, 8]]],
            math.nan,
            (0, 0),
            "censored",
        ),
        # None arrives under any seed.
        (5 * [[0, 0]], 5 * [[0, 0]], math.nan, (0, 0), "not reached"),
        (2 * [[0, 0]], 2 * [[0, 0]], math.nan, (0, 0), "not reached"),
        # LD ended before the round in which DS arrived: who is later is not known.
        (5 * [[0, 0, 8]], 5 * [[0, 0]], math.nan, (0, 0), "censored"),
        # LD ended after it.
        (5 * [[0, 8, 8]], 5 * [[0, 0]], math.nan, (5, 0), "censored"),
        # Both arrived, LD in a round that DS does not have.
        (5 * [[0, 8]], 5 * [[0, 0, 8]], 1, (5, 0), "worse"),
    ],
)
def test_rounds_to_a_target_that_some_runs_do_not_reach(ds, ld, mean, signs, verdict):
    row = effects(two_rows(ds, ld, targets=(70,))).loc["LD", "rounds to 70 %"]
    assert row["mean"] == pytest.approx(mean, nan_ok=True)
    assert (row["more_in"], row["less_in"]) == signs and row["verdict"] == verdict
    assert math.isnan(row["low"]) == math.isnan(mean)


def test_runs_of_different_lengths_are_compared_over_common_rounds():
    """Seed 0: rounds 1 and 2, of which 2 is the second half; seed 1: all four."""
    ds, ld = [[1, 2], [1, 1, 3, 5]], [[1, 4, 9, 9], [1, 1, 5, 6]]
    table = effects(two_rows(ds, ld))
    means = {
        "accuracy": (0.2 + 0.15) / 2,
        "last accuracy": (0.2 + 0.1) / 2,
        "best accuracy": (0.2 + 0.1) / 2,
        "worst tenth": (0.2 + 0.15) / 2,
    }
    for measure, mean in means.items():
        assert table.loc[("LD", measure), "mean"] == pytest.approx(mean), measure
    assert set(table["rounds"]) == {2}
    common = paired_effects.common_rounds(two_rows(ds, ld), "LD", "DS")
    assert common.to_dict() == {0: 2, 1: 4}


def test_only_seeds_that_both_have_are_paired():
    """LD lacks seed 0, in which DS is far off."""
    results = two_rows([[0], [5], [6]], [[9], [6], [8]])
    part = results.only([True, False, True, True, True, True])
    row = effects(part).loc["LD", "accuracy"]
    assert row["seeds"] == 2 and row["mean"] == pytest.approx(0.15)
    with pytest.raises(RecordError, match="LD and DS have no seed in common"):
        effects(results.only([True, False, False, False, False, True]))


def test_the_spread_is_that_of_the_second_half():
    """A of 4 and 8 of 10 in the last two rounds, and so on: worst .4, Jain .9."""
    counts = {
        "DS": [[0, 0], [9, 9], [9, 9], [9, 9]],
        "LD": [[0, 9], [9, 9], [4, 8], [4, 8]],
    }
    results = of_seeds(dict.fromkeys(range(5), counts), TEN, targets=(80, 90))
    table = effects(results).loc["LD"]
    assert table.index.tolist() == [
        *("accuracy", "last accuracy", "best accuracy", "worst tenth"),
        *("standard deviation over clients", "Jain's index"),
        *("rounds to 80 %", "rounds to 90 %"),
    ]
    means = [-0.3, -0.3, 0, -0.5, 0.2, -0.1, -1, -1]
    assert table["mean"].tolist() == pytest.approx(means)
    verdicts = ["worse", "worse", "not shown", "worse", "worse", "worse", "better"]
    assert table["verdict"].tolist() == [*verdicts, "better"]


def test_a_lower_loss_is_better():
    """Mean losses: DS 2 and 1; LD 3 and 1.5. The best is the lowest."""
    results = join_results(
        with_losses({"DS": [[8, 8], [4, 4]], "LD": [[12, 12], [4, 8]]}, [4, 4], seed=s)
        for s in range(5)
    )
    table = effects(results).loc["LD"]
    names = ["test_loss", "last test loss", "best test loss", "worst tenth"]
    assert table.index.tolist() == [*names, "standard deviation over clients"]
    assert table["mean"].tolist() == pytest.approx([0.5, 0.5, 0.5, 1, 0.5])
    assert {*table["verdict"]} == {"worse"}
    results.rounds.loc[results.rounds["label"] == "LD", "loss_sum"] = math.inf
    row = effects(Results(results.runs, vars(results).get)).loc["LD", "test_loss"]
    assert math.isnan(row["mean"]) and row["verdict"] == "not finite"


@pytest.mark.parametrize(
    ("name", "lower"),
    [
        *[("accuracy", False), ("top_2", False), ("AUC", False), ("auc_1", False)],
        *[("sparse_top_k_categorical_accuracy", False), ("macro_f1", False)],
        *[("test_loss", True), ("mean_squared_error", True), ("RMSE", True)],
        *[("binary_crossentropy", True), ("false_negatives", True)],
        *[("true_positives", None), ("share_of_zeros", None), ("stopped", None)],
    ],
)
def test_the_name_of_a_metric_determines_whether_less_is_better(name, lower):
    assert measures.is_lower_better(name) is lower


def test_metrics_of_the_model_are_measures():
    """The means of round 2; MD does not have the metrics."""
    by_seed = {
        seed: {label: rounds_of([5, 5]) for label in ("DS", "LD", "MD")}
        for seed in range(5)
    }
    results = of_seeds(by_seed, TEN)
    is_ld = results.rounds["label"] == "LD"
    lacks = np.where(results.rounds["label"] == "MD", math.nan, 0.0)
    rounds = results.rounds.assign(
        auc=0.1 * results.rounds["round"] + 0.2 * is_ld + lacks,
        mean_absolute_error=0.5 - 0.1 * is_ld + lacks,
        zeros=3 + is_ld + lacks,
        words="text",
        train_loss=1.0 - is_ld,
    )
    results = Results(results.runs, {"rounds": rounds}.get)
    table = effects(results)
    added = ["auc", "mean_absolute_error", "zeros"]
    assert table.loc["LD"].index.tolist()[3:] == added
    assert table.loc["LD"].loc[added, "mean"].tolist() == pytest.approx([0.2, -0.1, 1])
    verdicts = ["better", "better", "more"]
    assert table.loc["LD"].loc[added, "verdict"].tolist() == verdicts
    assert len(table.loc["MD"]) == 3


def algorithms():
    """Two algorithms, two federations, two seeds."""
    levels = {"Median": (5, 8), "Weighted mean": (4, 6)}
    by_seed = {
        seed: {
            f"{algorithm}, {3 + place} clients": rounds_of(2 * [level[place]])
            for place in (0, 1)
            for algorithm, level in levels.items()
        }
        for seed in (0, 1)
    }
    runs = {"title": [*levels] * 2, "note": ["3 clients"] * 2 + ["4 clients"] * 2}
    return of_seeds(by_seed, TEN, runs=runs)


def test_a_row_is_compared_with_the_baseline_on_its_data():
    table = effects(algorithms(), "Weighted mean").xs("accuracy", level="measure")
    assert dict(table["baseline"]) == {
        "Median, 3 clients": "Weighted mean, 3 clients",
        "Median, 4 clients": "Weighted mean, 4 clients",
    }
    assert table["mean"].tolist() == pytest.approx([0.1, 0.2])
    with pytest.raises(NotRecordedError, match="DS: there is no run of MD on its data"):
        runs = {"note": ["a", "b"], "title": ["DS", "MD"]}
        effects(of_seeds({0: {"DS": [[1]], "MD": [[1]]}}, [2], runs=runs), "MD")


@pytest.mark.parametrize(
    ("labels", "about", "baseline", "chosen"),
    [
        (["LD", "DS"], "", "", "DS"),
        (["LD", "FedAvg"], "", "", "FedAvg"),
        (["LD", "MD"], "", "", "LD"),
        (["LD", "DS", "MD"], "MD", "", "MD"),
        (["LD", "DS", "MD"], "MD", "LD", "LD"),
        (["LD", "DS"], "LD", "FedAvg", "DS"),
        (["FedAvg", "q-FFL, q 5"], "", "q_ffl_q_5", "q-FFL, q 5"),
        (["LD", "DS"], "LD", "FedAvg (DS)", "DS"),
    ],
)
def test_the_baseline_is_fed_avg_unless_another_is_named(
    labels, about, baseline, chosen
):
    results = results_of_seed({label: [[1]] for label in labels}, [2])
    results.about["baseline"] = about
    bases = paired_effects.baselines(results, baseline)
    assert bases == dict.fromkeys(labels, chosen)


@pytest.mark.parametrize("baseline", ["MD", ""])
def test_an_unknown_baseline_is_rejected(baseline):
    results = results_of_seed({"DS": [[1]], "LD": [[1]]}, [2])
    results.about["baseline"] = "MD"
    with pytest.raises(RecordError, match="baseline MD is not one of the rows: DS; LD"):
        effects(results, baseline)


ROUNDS = pd.DataFrame(
    [
        (seed, label, number, 0.1 * number + 0.1 * (label == "b") * (seed + 1))
        for seed in range(2)
        for label in ("a", "b")
        for number in (2, 1)
    ],
    columns=["seed", "label", "round", "accuracy"],
)


def test_the_rounds_of_any_program_are_results():
    """Last rounds: b is .1 and .2 ahead."""
    results = paired_effects.results_of_rounds(ROUNDS)
    table = effects(results).loc["b"]
    names = ["accuracy", "last accuracy", "best accuracy"]
    assert table.index.tolist() == names
    assert table["mean"].tolist() == pytest.approx(3 * [0.15])
    numbered = ROUNDS.assign(label=ROUNDS["label"].map({"a": 1, "b": 2}))
    table = effects(paired_effects.results_of_rounds(numbered), "2").loc["1"]
    assert table.loc["accuracy", "mean"] == pytest.approx(-0.15)
    renamed = ROUNDS.rename(columns={"accuracy": "steps"})
    table = effects(paired_effects.results_of_rounds(renamed)).loc["b"]
    assert table.index.tolist() == ["steps", "last steps"]


@pytest.mark.parametrize(
    ("rounds", "words"),
    [
        (ROUNDS.drop(columns="seed"), "columns label, round, accuracy: seed must be"),
        (ROUNDS.assign(round=ROUNDS["round"] - 1), "from 0: number them from 1"),
        (ROUNDS[:0], "the data frame has no rounds: add one row per seed"),
        (
            ROUNDS.assign(accuracy="x").rename(columns={"accuracy": "w"}),
            "no metric: add a column such as",
        ),
        (pd.concat([ROUNDS, ROUNDS[:1]]), "two rows of seed 0, label a, round 2"),
        (ROUNDS.drop(columns="accuracy"), "no metric: add a column such as accuracy"),
    ],
)
def test_rounds_that_cannot_be_compared_are_rejected(rounds, words):
    with pytest.raises(RecordError, match=words):
        effects(paired_effects.results_of_rounds(rounds))


def test_the_means_of_runs_cover_all_their_rounds():
    table = paired_effects.run_measures(
        two_rows([[1, 3]], [[1, 1, 5, 6]], targets=(60,))
    )
    assert table.loc[0, "LD"][["accuracy", "rounds to 60 %"]].tolist() == [0.55, 4]
    assert table.loc[0, "DS"][["accuracy", "rounds to 60 %"]].tolist() == [
        0.3,
        math.inf,
    ]
