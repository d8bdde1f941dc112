"""Rounds to target, on numbers worked by hand."""

import numpy as np
import pytest

from tff_pmc.reports.rounds_to_target import rounds_to_target

# Three rounds of four devices with 10 test examples each.
CORRECT, TEN, AT = [[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]], [10] * 4, "at_least"


@pytest.mark.parametrize(
    ("correct", "examples", "target", "reach", "reached"),
    [
        # 70 %: one device in round 1, two in round 2, all four in round 3.
        (CORRECT, TEN, 70, AT, {10: 1, 25: 1, 30: 2, 50: 2, 60: 3, 75: 3, 90: 3}),
        # Above it, as the published script has it, is one in round 2.
        (CORRECT, TEN, 70, "above", {10: 2, 25: 2, 30: 3, 75: 3, 80: None}),
        # ceil(2.8) = 3 of the 4 devices have 90 %, and ceil(3.2) = 4 have not.
        (CORRECT, TEN, 90, AT, {70: 3, 80: None}),
        # 0.29 * 100 is 28.999999999999996.
        ([[29]], [100], 29, AT, {50: 1}),
        # A device without test examples never reaches a target.
        ([[0, 5]], [0, 5], 70, AT, {50: 1, 90: None}),
    ],
)
def test_the_first_round_in_which_enough_devices_are_there(
    correct, examples, target, reach, reached
):
    counts = np.array(correct), np.array(examples)
    found = rounds_to_target(*counts, [target], list(reached), reach)
    assert found == {(target, share): at for share, at in reached.items()}
