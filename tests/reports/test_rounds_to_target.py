"""Rounds to target, on numbers worked by hand, and the rule that runs have for them."""

import math

import pytest
from made import join_results, made, with_losses

from tff_pmc.reports.rounds_to_target import (
    average,
    reach_of,
    rounds_to_target,
    targets_of,
)

# Three rounds of four devices with 10 test examples each.
CORRECT, TEN, AT = [[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]], [10] * 4, "at_least"


@pytest.mark.parametrize(
    ("correct", "examples", "target", "reach", "reached"),
    [
        # 70 %: one device in round 1, two in round 2, all four in round 3.
        (CORRECT, TEN, 70, AT, {10: 1, 25: 1, 30: 2, 50: 2, 60: 3, 75: 3, 90: 3}),
        # Above it, as the published script has it, is one in round 2.
        (CORRECT, TEN, 70, "above", {10: 2, 25: 2, 30: 3, 75: 3, 80: math.nan}),
        # ceil(2.8) = 3 of the 4 devices have 90 %, and ceil(3.2) = 4 have not.
        (CORRECT, TEN, 90, AT, {70: 3, 80: math.nan}),
        # 0.29 * 100 is 28.999999999999996.
        ([[29]], [100], 29, AT, {50: 1}),
        # A device without test examples never reaches a target.
        ([[0, 5]], [0, 5], 70, AT, {50: 1, 90: math.nan}),
    ],
)
def test_the_first_round_in_which_enough_devices_are_there(
    correct, examples, target, reach, reached
):
    results = made({"DS": correct}, examples, reach="of the runs")
    found = rounds_to_target(results, [target], list(reached), reach)
    assert found["devices"].tolist() == list(reached)
    assert found["rounds"].tolist() == pytest.approx(
        list(reached.values()), nan_ok=True
    )


def test_several_runs_and_targets_are_rows_and_a_dash_counts_as_none():
    results = made({"DS": CORRECT, "LD": CORRECT[1:]}, TEN, targets=(70, 90))
    found = rounds_to_target(results, [70, 90]).set_index(
        ["label", "target", "devices"]
    )
    assert len(found) == 2 * 2 * 9
    gains = found.loc["DS", "rounds"] - found.loc["LD", "rounds"]
    # LD is at 70 % one round sooner, but for the first two shares; at 90 % three
    # quarters of the devices are.
    assert gains[70].tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert average(gains[70]) == 7 / 9 and average(gains[90]) == 7 / 9


def runs(*settings):
    """A run a seed; None for settings that a run did not record."""
    return join_results(
        made({"DS": [[1]]}, [1], seed=seed, **(own or {}))
        for seed, own in enumerate(settings)
    )


@pytest.mark.parametrize(
    ("settings", "reach"),
    [
        ([{"reach": "above"}, {"reach": "above"}], "above"),
        ([{"reach": "at_least"}], "at_least"),
        ([{"reach": "above"}, None], "above"),
        ([None], "at_least"),
    ],
)
def test_the_rule_is_that_of_the_runs(settings, reach):
    assert reach_of(runs(*settings)) == reach


@pytest.mark.parametrize(
    ("settings", "targets"),
    [
        ([{"targets": (60, 65)}, {"targets": (60, 65)}], (60, 65)),
        ([{"targets": (60,)}, None], (60,)),
        ([None], ()),
    ],
)
def test_the_targets_are_those_of_the_runs(settings, targets):
    assert targets_of(runs(*settings)) == targets


@pytest.mark.parametrize(
    ("of", "settings", "words"),
    [
        (reach_of, [{"reach": "above"}, {"reach": "at_least"}],
         "DS, seed 0, has reach above and DS, seed 1, has at_least"),
        (targets_of, [{"targets": (70, 80)}, {"targets": (75,)}],
         "DS, seed 0, has targets 70,80 and DS, seed 1, has 75"),
    ],
)  # fmt: skip
def test_runs_that_differ_are_refused_in_one_line(fails, of, settings, words):
    fails(lambda: of(runs(*settings)), words)


def test_runs_with_losses_are_refused(fails):
    results = with_losses({"DS": [[1]]}, [2])
    fails(lambda: rounds_to_target(results, [70]), "there is no accuracy, which this")
