"""The paired report, on numbers worked by hand."""

import collections
import math
import pathlib

import numpy as np
import pandas as pd
import pytest
from made import join_results, of_seeds, results_of_seed, with_losses, written

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.tables import effect

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEN = [10, 10]  # Two devices, equally good.


def rows_of(results, kind):
    return effect.report(results, kind).tables["effect"]


def rounds_of(per_round):
    return [[right, right] for right in per_round]


def five_seeds(end="", **options):
    """DS has 5, 6, 7, 8, 9 right in the second half; LD 1, 1, 1, 1, 0 more."""
    ds, gains = [5, 6, 7, 8, 9], [1, 1, 1, 1, 0]
    by_seed = {
        seed: {
            f"{label}{end}": rounds_of([0, 0, right, right])
            for label, right in (("DS", a), ("LD", a + m))
        }
        for seed, (a, m) in enumerate(zip(ds, gains))
    }
    return of_seeds(by_seed, TEN, **options)


def test_differences_are_paired_by_seed():
    """Accuracy: .1 .1 .1 .1 0: mean .08, deviation sqrt(.002), t(4) = 2.776."""
    results = five_seeds(", drawn by size", baseline="DS, drawn by size", targets=(70,))
    rows = rows_of(results, effect.ORDERINGS).set_index("measure")
    row = rows.loc["accuracy"]
    assert row["ordering"] == "LD, drawn by size" and row["verdict"] == "more"
    assert row["mean"] == pytest.approx(0.08)
    assert row["deviation"] == pytest.approx(math.sqrt(0.008 / 4))
    half = 2.776 * math.sqrt(0.002 / 5)
    assert row["interval"] == pytest.approx(half, rel=1e-3)
    # All pairs of .5 .6 .7 .8 .9: four at .1, three at .2, two at .3, one at .4.
    squares = 4 * 0.01 + 3 * 0.04 + 2 * 0.09 + 0.16
    floor = math.sqrt(squares / 10)
    assert row["noise_floor"] == pytest.approx(floor)
    assert row["noise_floor_of_mean"] == pytest.approx(floor / math.sqrt(5))
    assert (row["more_in"], row["less_in"]) == (4, 0)


def test_rounds_that_are_not_known_have_no_mean_and_no_interval(tmp_path):
    """70 %: DS never, never, 3, 3, 3; LD never, 3, 3, 3, 3."""
    text, rows = written(
        effect.orderings(five_seeds(targets=(70,))), tmp_path, "effect"
    )
    row = rows.set_index("measure").loc["rounds to 70 %"]
    numbers = ["mean", "deviation", "interval", "noise_floor", "noise_floor_of_mean"]
    assert row[numbers].isna().all()
    # Under the first seed neither arrives: who is later is not known.
    assert (row["verdict"], row["more_in"], row["less_in"]) == ("censored", 0, 1)
    assert "Censored: under some seed" in text and "nan" not in text
    assert "| LD | later in 0 and earlier in 1 of 5 seeds |  |  | censored |" in text
    assert "In 2 of 2 comparisons the interval excludes 0" in text  # Both accuracies.
    assert "| DS | 0.7000 | 0.7000 | — |" in text  # The means over the seeds.


def test_of_four_seeds_nothing_is_claimed_and_another_may_be_the_baseline(tmp_path):
    """LD is .1 ahead of DS: so DS is .1 behind LD."""
    few = five_seeds().only(seed=range(4))
    few.about["baseline"] = "LD"
    text, rows = written(effect.orderings(few), tmp_path, "effect")
    assert "| DS | -0.1000 |" in text and "Each ordering minus LD" in text
    assert "With fewer than 5 seeds there is no verdict" in text
    assert set(rows["verdict"]) == {"undecided"} and rows["interval"].isna().all()


def other_length(**lengths):
    """Two seeds of DS and LD, of which some are longer."""
    return of_seeds(
        {
            seed: {
                label: rounds_of([1] * lengths.get(f"{label}{seed}", 2))
                for label in ("DS", "LD")
            }
            for seed in (0, 3)
        },
        TEN,
    )


def no_baseline():
    results = five_seeds()
    results.about["baseline"] = "MD"
    return results


def test_runs_that_a_callback_has_ended_are_paired(tmp_path):
    results = other_length(DS3=4, LD0=3)
    results.runs["rounds"] = 4
    ends = ["ended after round 2", "ended after round 3", "", "ended after round 2"]
    results.runs["ended_early"] = ends
    text, rows = written(effect.orderings(results), tmp_path, "effect")
    assert set(rows["ordering"]) == {"LD"} and "Runs ended early" in text
    results.runs["ended_early"] = ["ended after round 2", "", "", ""]
    with pytest.raises(RecordError, match="2 rounds under seed 3 and 3 under seed 0"):
        rows_of(results, effect.ORDERINGS)


@pytest.mark.parametrize(
    ("results", "kind", "words"),
    [
        (
            no_baseline(),
            effect.ORDERINGS,
            "the baseline MD is not among the runs: DS, LD",
        ),
        (no_baseline(), effect.ALGORITHMS, "DS: there is no run of MD on its data"),
        (other_length(DS3=4), effect.ORDERINGS, "4 rounds under seed 3 and 2 under"),
        (other_length(LD0=3, LD3=3), effect.ORDERINGS, "LD has 3 rounds, and DS has 2"),
        (
            five_seeds().only([True] * 9 + [False]),
            effect.ALGORITHMS,
            "seed 4 has no run of LD; each seed needs the same runs, DS; LD",
        ),
        (
            join_results(
                results_of_seed(
                    {"DS": [[1]], "LD": [[1]]}, [2], seed=seed, learning_rate=rate
                )
                for seed, rate in ((0, 0.1), (1, 0.2))
            ),
            effect.ALGORITHMS,
            "seed 0, has 0.1, DS, seed 1, has 0.2",
        ),
    ],
)
def test_runs_that_cannot_be_paired_are_refused(results, kind, words):
    with pytest.raises(RecordError, match=words):
        rows_of(results, kind)


@pytest.mark.parametrize("kind", [effect.orderings, effect.algorithms, effect.spread])
def test_one_seed_and_one_label_have_no_effect(kind):
    results = five_seeds()
    for alone in (results.only(seed=0), results.only(label="DS")):
        assert not kind(alone).tables and not kind(alone).text


def algorithms(rounds):
    """Two algorithms, two federations, two seeds; Median is better in round 5."""
    levels = {"Median": (5, 8), "Weighted mean": (4, 6)}
    by_seed = {
        seed: {
            f"{algorithm}, {3 + place} clients": [
                [level[place] + (algorithm == "Median" and number == 5)] * 2
                for number in range(1, rounds + 1)
            ]
            for place in (0, 1)
            for algorithm, level in levels.items()
        }
        for seed in (0, 1)
    }
    runs = {"title": [*levels] * 2, "note": ["3 clients"] * 2 + ["4 clients"] * 2}
    return of_seeds(by_seed, TEN, baseline="Weighted mean", runs=runs)


@pytest.mark.parametrize(("rounds", "early"), [(2, []), (6, ["rounds 1 to 5"])])
def test_algorithms_are_compared_on_their_data(rounds, early):
    rows = rows_of(algorithms(rounds), effect.ALGORITHMS)
    # Few rounds are no early part of themselves.
    expected = [*early, "all rounds", "best round", "last round"]
    assert [*dict.fromkeys(rows["measure"])] == expected
    last = rows[rows["measure"] == "last round"].set_index("algorithm")
    assert dict(last["baseline"]) == {
        "Median, 3 clients": "Weighted mean, 3 clients",
        "Median, 4 clients": "Weighted mean, 4 clients",
    }
    assert last["mean"].tolist() == pytest.approx([0.1, 0.2])
    for name in early:
        means = rows[rows["measure"] == name]["mean"]
        assert means.tolist() == pytest.approx([0.12, 0.22])


def test_the_spread_is_that_of_the_second_half():
    """A of 4 and 8 of 10 in the last two rounds, and so on: worst .4, Jain .9."""
    counts = {
        "DS": [[0, 0], [9, 9], [9, 9], [9, 9]],
        "LD": [[0, 9], [9, 9], [4, 8], [4, 8]],
    }
    results = of_seeds({0: counts, 1: counts}, TEN, targets=(80, 90))
    rows = rows_of(results, effect.SPREAD).set_index("measure")
    assert rows.index.tolist() == [
        *("accuracy", "worst tenth", "Jain's index", "rounds to 80 %")
    ]
    assert rows["mean"].tolist() == pytest.approx([-0.3, -0.5, -0.1, -1])


def test_losses_have_their_measured_column_in_the_place_of_accuracy(tmp_path):
    """Mean losses: DS 2 and 1; LD 3 and 1.5. The best is the lowest."""
    results = join_results(
        with_losses({"DS": [[8, 8], [4, 4]], "LD": [[12, 12], [6, 6]]}, [4, 4], seed=s)
        for s in range(5)
    )
    _, rows = written(effect.orderings(results), tmp_path, "effect")
    assert rows["measure"].tolist() == ["test_loss", "best test loss"]
    assert rows["mean"].tolist() == pytest.approx([0.5, 0.5])
    rows = rows_of(results, effect.SPREAD)
    assert rows["measure"].tolist() == ["test_loss", "worst tenth"]


def test_weights_are_those_on_the_cohorts_of_the_baseline(tmp_path):
    columns = ["round", "client", "DS", "LD", "excluded"]
    cohort = pd.DataFrame(
        [(1, "a", 1.0, 1.0, 0), (1, "b", 3.0, 1.0, 0), (1, "c", 9.0, 1.0, 1)],
        columns=columns,
    ).assign(weight=1.0)
    by_seed = {
        seed: {
            label: rounds_of([5, 5]) for label in ("DS", "LD,DS", "weights of my own")
        }
        for seed in range(5)
    }
    options = {"tables": {"cohort": cohort}, "criteria": ("DS", "LD")}
    results = of_seeds(by_seed, TEN, **options)
    text, rows = written(effect.orderings(results), tmp_path, "effect")
    # LD,DS: 1/2 + 1/2 * 1/4 and 1/2 + 1/2 * 3/4, over their sum 1.5: 5/12 and 7/12.
    figures = rows.groupby("ordering").first().loc["LD,DS", [*effect.WEIGHT_COLUMNS]]
    expected = [1 / 6, 144 / 74, 3 / 4 - 7 / 12, 1 / 2 - 5 / 12]
    np.testing.assert_allclose(figures.astype(float), expected, rtol=1e-5)
    assert "nan" not in text and "| weights of my own | — | — | — | — |" in text
    assert "—: no ordering of the criteria of DS's runs." in text


def test_the_page_of_operators_has_the_kept_effects_of_the_baselines():
    """In points, mean and half of the interval."""
    kept = pd.read_csv(ROOT / "results" / "reproduced" / "baselines" / "effect.csv")
    kept = kept[kept["measure"] == "accuracy"]
    pairs = zip(100 * kept["mean"], 100 * kept["interval"])
    cells = collections.Counter(f"{mean:+.1f} ± {half:.1f}" for mean, half in pairs)
    text = (ROOT / "docs" / "operators.md").read_text()
    assert sum(count for words, count in cells.items() if words in text) >= 23
