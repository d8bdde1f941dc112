"""Orderings that begin alike, taken together, on numbers worked by hand."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
from reported import write
from two_devices import run

from tff_pmc.reports import effect, effect_page
from tff_pmc.reports.rounds_to_target import DEVICES

LABELS = ("DS", "DS,LD", "LD", "LD,DS")


def five_seeds(last=9):
    """The second half: DS 5 and 7 right, LD 7 and 9, or under the last seed 7 and 7."""
    return {
        seed: [
            run("DS", [7, 5, 5], [70]),
            run("DS,LD", [1, 7, 7], [70]),
            run("LD", [7, 7, 7], [70]),
            run("LD,DS", [1, last if seed < 4 else 7, last if seed < 4 else 7], [70]),
        ]
        for seed in range(5)
    }


def test_a_group_counts_with_its_mean():
    """Accuracy: .2 .2 .2 .2 .1, mean .18, deviation sqrt(.008 / 4) = .0447."""
    rows = effect.first_criterion_rows(five_seeds(), [70]).set_index("measure")
    assert list(rows["first_criterion"]) == ["LD", "LD"]
    row = rows.loc["accuracy"]
    assert row["orderings"] == 2
    assert row["mean"] == pytest.approx(0.18)
    assert row["deviation"] == pytest.approx(math.sqrt((4 * 0.02**2 + 0.08**2) / 4))
    assert row["interval"] == pytest.approx(2.776 * row["deviation"] / 5**0.5, rel=1e-3)
    assert (row["more_in"], row["less_in"], row["verdict"]) == (5, 0, "more")
    # Variances of two: (.2^2)/2 in DS's five pairs and four of LD's; the fifth is 0.
    assert row["within"] == pytest.approx(math.sqrt(9 * 0.02 / 10))


def test_rounds_are_the_mean_over_the_shares():
    """Both devices are there at once: DS in 1 and 2, LD in 1 and 2."""
    row = effect.first_criterion_rows(five_seeds(), [70]).set_index("measure").iloc[1]
    assert (row["mean"], row["verdict"]) == (0, "not shown")
    assert row["within"] == pytest.approx(math.sqrt(0.5))


def test_one_run_that_does_not_arrive_censors_its_group():
    row = (
        effect.first_criterion_rows(five_seeds(last=1), [70])
        .set_index("measure")
        .iloc[1]
    )
    assert row["verdict"] == "censored"
    assert math.isnan(row["mean"]) and math.isnan(row["within"])


@pytest.mark.parametrize(
    "labels",
    [
        ["DS", "LD"],  # One ordering each.
        ["DS", "DS,LD", "LD"],  # Groups of two sizes.
        ["DS", "DS,LD"],  # One group.
        [*LABELS, "MD,DS (backtracking)", "MD,LD (backtracking)"],
    ],
)
def test_nothing_is_taken_together_that_is_not_alike(labels):
    assert effect.groups(labels) == {}
    by_seed = {seed: [run(one, [7, 7], [70]) for one in labels] for seed in range(5)}
    assert effect.first_criterion_rows(by_seed, [70]).empty
    assert (
        effect_page.by_first_criterion(effect.first_criterion_rows(by_seed, [70]), "DS")
        == []
    )


def test_the_page_and_its_csv_have_it(tmp_path):
    assert effect.groups(LABELS) == {
        "DS": ["DS", "DS,LD"],
        "LD": ["LD", "LD,DS"],
    }
    text = write("ordering_effect", five_seeds(), tmp_path)
    part = text[text.index("By the first criterion") :]
    assert "minus DS first" in part and "| LD | +0.1800 ± 0.0555 |" in part
    table = pd.read_csv(tmp_path / "effect_first_criterion.csv")
    assert tuple(table.columns) == effect.FIRST_COLUMNS
    assert list(table["mean"]) == [0.18, 0]


def test_a_round_is_the_mean_over_all_shares_of_the_devices():
    """Half of the devices are there in round 1, all in round 2: five shares, four."""
    one = dataclasses.replace(run("DS", [7, 7]), correct=np.array([[7, 0], [7, 7]]))
    found = effect._rounds(one, [70], DEVICES)
    assert found == {"rounds to 70 %": pytest.approx(13 / 9)}
