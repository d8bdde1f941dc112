"""Orderings that begin alike, taken together, on numbers worked by hand."""

import math

import pytest
from two_devices import run

from tff_pmc.reports import effect, effect_page

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
