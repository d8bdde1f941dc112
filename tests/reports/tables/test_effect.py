"""The paired report, on numbers worked by hand."""

import collections
import math
import pathlib

import numpy as np
import pandas as pd
import pytest
from small_results import join_results, of_seeds, results_of_seed, with_losses, written

import tff_pmc
from tff_pmc.record import kept_results
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.statistics.weight_statistics import WEIGHT_COLUMNS
from tff_pmc.reports.tables import effect

ROOT = pathlib.Path(__file__).resolve().parents[3]
TEN = [10, 10]  # Two devices, equally good.


def rounds_of(per_round):
    return [[right, right] for right in per_round]


def five_seeds(**options):
    """DS has 5, 6, 7, 8, 9 right in the second half; LD 1, 1, 1, 1, 0 more."""
    by_seed = {
        seed: {
            label: rounds_of([0, 0, right, right])
            for label, right in (("DS", a), ("LD", a + m))
        }
        for seed, (a, m) in enumerate(zip([5, 6, 7, 8, 9], [1, 1, 1, 1, 0]))
    }
    return of_seeds(by_seed, TEN, **options)


def page_of(results, folder):
    """Returns the page as Markdown, and the table as it is written."""
    report = effect.report(results)
    _, rows = written(report, folder, "effect")
    assert (folder / "effect.png").exists()
    return (folder / "effect.md").read_text("utf-8"), rows, report.text


def test_unknown_rounds_have_no_mean_and_no_interval(tmp_path):
    """70 %: DS never, never, 3, 3, 3; LD never, 3, 3, 3, 3. 95 %: none."""
    text, rows, _ = page_of(five_seeds(targets=(70, 95)), tmp_path)
    row = rows.set_index("measure").loc["rounds to 70 %"]
    numbers = ["mean", "deviation", "interval", "noise_floor", "noise_floor_of_mean"]
    assert row[[*numbers, "low", "high"]].isna().all()
    # Under the first seed neither arrives: who is later is not known.
    assert (row["verdict"], row["more_in"], row["less_in"]) == ("censored", 0, 1)
    assert "Where a run did not reach the target" in text and "nan" not in text
    assert (
        "| LD | later in 0 and earlier in 1 of 5 seeds |  |  | one did not reach it |"
        in text
    )
    assert "| LD | — |  |  | neither reached it |" in text
    # The accuracies, the worst tenth. The devices are alike under both, so that their
    # deviation and Jain's index do not count; none reaches 95 %.
    assert "In 4 of 4 comparisons the interval excludes 0" in text
    # The means over the seeds.
    assert "| FedAvg (DS) | 0.7000 | 0.7000 | 0.7000 | 0.7000 |" in text
    assert "1.000000 | — | — |" in text


def test_with_fewer_than_five_seeds_the_page_says_so_next_to_the_number(tmp_path):
    """LD is .1 ahead of DS: so DS is .1 behind LD, under each of four seeds."""
    few = five_seeds().only(seed=range(4))
    few.about["baseline"] = "LD"
    text, rows, shown = page_of(few, tmp_path)
    cells = "| FedAvg (DS) | -0.1000 ± 0.0000 (rests on 4 seeds) | 0.1826 | 0.0913 |"
    assert f"{cells} no verdict: 4 of 5 seeds |" in text
    assert "Each row minus LD under the same seed" in text
    assert "With fewer than 5 seeds there is no verdict" in text
    assert set(rows["verdict"]) == {"undecided"} and rows["interval"].notna().all()
    assert (
        "FedAvg (DS): accuracy -10.0 points (-10.0 to -10.0) against LD over four "
        "seeds: no verdict, which needs five seeds. Worst tenth -10.0 points (-10.0 to "
        "-10.0)."
    ) in shown


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


def test_runs_ended_by_a_callback_are_compared_over_common_rounds(tmp_path):
    results = other_length(DS3=4, LD0=3, LD3=3)
    results.runs["rounds"] = 4
    ends = ["ended after round 2", "ended after round 3", "", "ended after round 3"]
    results.runs["ended_early"] = ends
    text, rows, _ = page_of(results, tmp_path)
    assert set(rows["row"]) == {"LD"} and set(rows["rounds"]) == {2}
    assert "LD against FedAvg (DS): over the first 2 to 3 rounds." in text
    results.runs["ended_early"] = ""
    with pytest.raises(RecordError, match="4 rounds under seed 3 and 2 under seed 0"):
        effect.report(results)
    same = other_length(LD0=3, LD3=3)
    assert "over two seeds, over the first 2 rounds: " in page_of(same, tmp_path)[2]


@pytest.mark.parametrize(
    ("results", "words"),
    [
        (other_length(DS3=4), "4 rounds under seed 3 and 2 under"),
        (
            five_seeds().only([True] * 9 + [False]),
            "seed 4 has no run of LD; each seed needs the same runs, DS; LD",
        ),
        (
            join_results(
                results_of_seed(
                    {"DS": [[1]], "LD": [[1]]}, [2], seed=seed, learning_rate=rate
                )
                for seed, rate in ((0, 0.1), (1, 0.2))
            ),
            "seed 0, has 0.1, DS, seed 1, has 0.2",
        ),
    ],
)
def test_runs_that_cannot_be_paired_are_rejected(results, words):
    with pytest.raises(RecordError, match=words):
        effect.report(results)


def test_one_seed_and_one_label_have_no_effect():
    results = five_seeds()
    for alone in (results.only(seed=0), results.only(label="DS")):
        assert not effect.report(alone).tables and not effect.report(alone).text


def test_rows_of_one_algorithm_on_different_data_are_not_compared():
    rounds = {label: rounds_of([4, 5]) for label in ("FedAvg", "FedAvg, beta 0")}
    results = of_seeds({0: rounds, 1: rounds}, TEN, baseline="FedAvg")
    results.runs["note"] = results.runs["label"].str.partition(", ")[2]
    results.runs["title"] = "FedAvg"
    assert not effect.report(results).tables and not effect.report(results).text


SIZES = {"DS": [5, 6, 7, 8, 9], "LD": [6, 7, 8, 9, 9]}
ROUNDS = pd.DataFrame(
    [
        (seed, label, 1, right / 10)
        for label, sizes in SIZES.items()
        for seed, right in enumerate(sizes)
    ],
    columns=["seed", "label", "round", "accuracy"],
)


@pytest.mark.parametrize(
    "results",
    [
        five_seeds(),
        ROUNDS,
        [five_seeds().only(label="DS"), five_seeds().only(label="LD")],
        {"DS": five_seeds().only(label="DS"), "LD": five_seeds().only(label="LD")},
    ],
)
def test_effects_of_results_of_folders_or_of_a_users_rounds(results):
    """8 points; half of the interval is 2.776 * sqrt(.002 / 5), 5.55 points."""
    effects = tff_pmc.effect(results)
    words = "LD: accuracy +8.0 points (+2.4 to +13.6) against FedAvg (DS) over five"
    assert effects.sentences()[0].startswith(f"{words} seeds: better.")
    (other,) = tff_pmc.effect(results, baseline="LD").sentences()
    assert other.startswith("FedAvg (DS): accuracy -8.0 points (-13.6 to -2.4) against")


def test_a_part_of_the_effects_is_drawn():
    effects = tff_pmc.effect(five_seeds(targets=(70, 95)))
    chosen = effects[effects["measure"].isin(["worst tenth", "rounds to 95 %"])]
    assert isinstance(chosen, effect.Effects)
    (panel,) = chosen.plot(title="A title").axes  # What none reached is not drawn.
    assert panel.get_title() == "worst tenth"
    assert [text.get_text() for text in panel.get_yticklabels()] == ["LD"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "LD: accuracy +8.0 points (+2.4 to +13.6) against"),
        ({"label": ["DS"] * 5 + ["a_$b$"] * 5}, "a_$b$: accuracy +8.0 points"),
        (
            {"accuracy": ROUNDS["accuracy"] / 100},
            "LD: accuracy +0.080 points (+0.024 to +0.136",
        ),
        ({"test_loss": math.inf}, "LD: accuracy +8.0 points"),
        (
            {"accuracy": ROUNDS["accuracy"] / -1e4},
            "LD: accuracy -0.00080 points (-0.00136 to -0.00024) against",
        ),
        ({"accuracy": 0.5}, "LD: accuracy +0.0 points (+0.0 to +0.0) against"),
    ],
)
def test_the_sentence_of_a_row(changes, words):
    effects = tff_pmc.effect(ROUNDS.assign(**changes))
    assert effects.sentences()[0].startswith(words)
    effects.plot()


@pytest.fixture
def three_folders(tmp_path):
    """DS and LD under five seeds each, in the folders a, b and c.

    In b LD has two more right of 20 and another target, in c there are other seeds.
    """
    folders = {}
    for name, ld, first, targets in (
        ("a", 10, 0, (40,)),
        ("b", 12, 0, (50,)),
        ("c", 10, 5, (40,)),
    ):
        by_seed = {
            seed: {"DS": [[5, 5]], "LD": [[ld // 2, ld // 2]]}
            for seed in range(first, first + 5)
        }
        results = of_seeds(by_seed, TEN, targets=targets)
        results.runs["data_clients"] = 3 if name == "b" else 2
        folders[name] = str(tmp_path / name)
        kept_results.keep_results(results, folders[name])
    return folders


@pytest.mark.parametrize(
    ("names", "baseline", "expected"),
    [
        # Another's seeds are further seeds of the same rows.
        ("ac", "", {"LD": ("DS", 0.0, 10)}),
        ("ab", "", {"DS [b]": ("DS [a]", 0.0, 5), "LD [b]": ("LD [a]", 0.1, 5)}),
        (
            "ab",
            "ld",
            {
                "DS [a]": ("LD [a]", 0.0, 5),
                "DS [b]": ("LD [a]", 0.0, 5),
                "LD [b]": ("LD [a]", 0.1, 5),
            },
        ),
    ],
)
def test_folders_are_joined_and_namesakes_compared(
    three_folders, names, baseline, expected
):
    paths = [three_folders[name] for name in names]
    results = [tff_pmc.read_results(path) for path in paths]
    for parts in (paths, results, dict(zip(names, results))):
        effects = tff_pmc.effect(parts, baseline=baseline)
        rows = effects[effects["measure"] == "accuracy"].set_index("row")
        shown = {
            row: (cells["baseline"], pytest.approx(cells["mean"]), cells["seeds"])
            for row, cells in rows.iterrows()
            if row in expected
        }
        assert shown == expected
        on_other_data = "against LD [a] over five seeds, on other data: "
        assert any(on_other_data in s for s in effects.sentences()) == (names == "ab")
    reached = {*effects["measure"]} & {"rounds to 40 %", "rounds to 50 %"}
    assert len(reached) == (2 if names == "ab" else 1)


def test_rounds_of_any_program_can_be_joined():
    rounds = [ROUNDS, ROUNDS.assign(accuracy=ROUNDS["accuracy"] + 0.01)]
    joined = tff_pmc.effect(rounds)
    assert {"DS [B]", "LD [B]"} <= {*joined["row"]}
    assert len(joined.merge(joined).sentences()) == len(joined.sentences())
    with pytest.raises(RecordError, match="there are no results: give one or more"):
        tff_pmc.effect([])


@pytest.mark.parametrize(
    ("column", "seeds", "words"),
    [
        ("test_loss", 5, "LD: test loss +0.080 (+0.024 to +0.136) against FedAvg (DS)"),
        ("test_loss", 5, "over five seeds: worse."),
        ("steps", 5, "over five seeds: higher."),
        ("auc", 2, "over two seeds: no verdict, which needs five seeds."),
        ("auc", 1, "LD: auc +0.10 against FedAvg (DS) under one seed: no verdict,"),
    ],
)
def test_the_sentence_names_the_metric(column, seeds, words):
    rounds = ROUNDS.rename(columns={"accuracy": column})
    assert words in tff_pmc.effect(rounds[rounds["seed"] < seeds]).sentences()[0]


def test_a_loss_that_is_not_finite_has_no_mean(tmp_path):
    results = join_results(
        with_losses({"DS": [[8, 8]], "LD": [[math.inf, 8]]}, [4, 4], seed=seed)
        for seed in range(2)
    )
    text, _, shown = page_of(results, tmp_path)
    assert "| LD | — | 0.0000 | 0.0000 | a value is not finite |" in text
    assert "LD: test loss against FedAvg (DS) over two seeds: a value is not" in shown


def test_weights_are_computed_on_the_cohorts_of_the_baseline(tmp_path):
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
    text, rows, _ = page_of(results, tmp_path)
    # LD,DS: 1/2 + 1/2 * 1/4 and 1/2 + 1/2 * 3/4, over their sum 1.5: 5/12 and 7/12.
    figures = rows.groupby("row").first().loc["LD,DS", [*WEIGHT_COLUMNS]]
    expected = [1 / 6, 144 / 74, 3 / 4 - 7 / 12, 1 / 2 - 5 / 12]
    np.testing.assert_allclose(figures.astype(float), expected, rtol=1e-5)
    assert "nan" not in text and "| weights of my own | — | — | — | — |" in text
    assert "—: not an ordering of the criteria of FedAvg (DS)'s runs." in text


def test_the_page_of_operators_has_the_kept_effects_of_the_baselines():
    """In points, mean and half of the interval."""
    kept = pd.read_csv(ROOT / "results" / "reproduced" / "baselines" / "effect.csv")
    kept = kept[kept["measure"] == "accuracy"]
    pairs = zip(100 * kept["mean"], 100 * kept["interval"])
    cells = collections.Counter(f"{mean:+.1f} ± {half:.1f}" for mean, half in pairs)
    text = (ROOT / "docs" / "operators.md").read_text()
    assert sum(count for words, count in cells.items() if words in text) >= 23
