"""The map's table, its sentences and its figure, of made-up cells."""

import pathlib

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports import when_it_helps


@pytest.fixture
def cells(run_of):
    """Five cells; in each, LD has the best step, and a gain in whole runs."""

    def cell(number, step, gain, p):
        parts = ["accuracy_mean", "accuracy_interval", "accuracy_p", "total_variation"]
        rows = [
            ("MD", step - 1, 0.5, 1.0, 0.0),
            ("LD", step, 0.5, p, 0.25 + number / 10),
        ]
        steps = pd.DataFrame(rows, columns=["weighting", *parts])
        by_seed = {
            seed: [
                run_of("DS", [[500 + seed]] * 4, [1000]),
                run_of("LD", [[500]] * 2 + [[500 + 10 * gain + 2 * seed]] * 2, [1000]),
            ]
            for seed in range(5)
        }
        place = f"alpha {number % 2}", f"c{number // 2}"
        return when_it_helps.Cell(*place, steps, by_seed)

    steps, gains = [3, 1, 4, 2, 5], [2, 1, 4, 3, -6]
    p = [0.01, 0.2, 0.01, 0.2, 0.01]
    return [cell(n, *values) for n, values in enumerate(zip(steps, gains, p))]


def test_a_row_has_the_best_step_and_the_paired_gain_in_points(cells):
    report = when_it_helps.report(cells)
    first = report.tables["when_it_helps"].iloc[0]
    assert (first["ordering"], first["one_step"]) == ("LD", 3)
    assert first["weight_moved"] == 0.25
    # In the second half the runs differ by 20 + seed of 1,000: 2.0 to 2.4 points.
    assert first["accuracy"] == pytest.approx(2.2)
    half = 2.776 * np.std([2.0, 2.1, 2.2, 2.3, 2.4], ddof=1) / np.sqrt(5)
    assert first["accuracy_interval"] == pytest.approx(half, rel=1e-3)
    assert first["all_rounds"] == pytest.approx((2.2 - 0.2) / 2)
    page = report.pages["when_it_helps"].markdown()
    # Ranks of the steps 3 1 4 2 5, of the gains 3 2 5 4 1: 1 - 6 * 22 / 120.
    assert "one step -0.10 (p = " in page and "(3 of 5 federations)" in page
    assert "federations), whole runs gain in 2 and lose in 1; where" in page
    assert "it does not (2), they gain in 2 and lose in 0" in page
    assert "| alpha 0 | c0 | LD | 0.250 | +3.00\\* | +2.20 ± 0.20\\* |" in page


def test_what_is_not_known_is_no_answer(cells):
    """The second cell's step was judged too seldom, the first has too few seeds."""
    cells[1].steps.loc[1, "accuracy_p"] = np.nan
    few = dict(list(cells[0].by_seed.items())[:4])
    cells[0] = cells[0]._replace(by_seed=few)
    page = when_it_helps.report(cells).pages["when_it_helps"].markdown()
    assert "(3 of 5 federations), whole runs gain in 1 and lose in 1; where" in page
    assert (
        "it does not (1), they gain in 1 and lose in 0. Of 2 nothing is known" in page
    )


def test_the_maps_have_a_place_for_each_cell_and_none_for_what_is_missing(cells):
    figure = when_it_helps.report(cells).figures["when_it_helps"]
    *heat, _ = figure.axes
    for axes in heat:
        texts = [text.get_text() for text in axes.texts]
        assert len(texts) == 6 and texts.count("") == 1
    assert "+2.20" in [text.get_text() for text in heat[2].texts]


def test_the_page_says_what_the_kept_map_shows():
    root = pathlib.Path(__file__).resolve().parents[2]
    kept = pd.read_csv(root / "results/reproduced/when_it_helps/when_it_helps.csv")
    page = " ".join((root / "docs" / "when_it_helps.md").read_text().split())

    kept["size"], kept["every"] = kept["accuracy"].abs(), kept["all_rounds"].abs()

    def correlation(a, b):
        ranks = [kept[name].rank().to_numpy() for name in (a, b)]
        return np.corrcoef(*ranks)[0, 1]

    late, every, moved = kept["accuracy"], kept["all_rounds"], kept["weight_moved"]
    differs = late.abs() > kept["accuracy_interval"]
    worse = late[differs & (late < 0)]
    early = every[(every.abs() > kept["all_rounds_interval"]) & (every < 0)]
    assert len(kept) == 24 and not (differs & (late > 0)).any()
    for words in (
        f"in {len(worse)} of 24, by {-worse.max():.1f} to {-worse.min():.1f} points",
        f"over all rounds in {len(early)}, by up to {-early.min():.1f}",
        f"gains up to {kept['one_step'].max():.1f} points",
        f"in {(kept['one_step_p'] < 0.05).sum()} of 24 it differs from DS by Holm's",
        f"is {correlation('one_step', 'accuracy'):+.2f} (p = 0.44) over the second",
        f"and {correlation('one_step', 'all_rounds'):+.2f} over all",
        f"effect is {correlation('weight_moved', 'size'):+.2f} over the second half",
        f"rounds and {correlation('weight_moved', 'every'):+.2f} over all;",
        f"itself {correlation('weight_moved', 'accuracy'):+.2f} (p = 0.22) and "
        f"{correlation('weight_moved', 'all_rounds'):+.2f}.",
        f"In the {(moved < 0.06).sum()} federations where the ordering moves less",
        f"by about {late[moved < 0.06].abs().max():.1f} points or less over the second",
        f"by up to {every[moved < 0.06].abs().max():.1f} over all rounds",
    ):
        assert words in page
