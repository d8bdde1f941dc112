"""Rounds to target and gains, on numbers worked by hand."""

import numpy as np

from tff_pmc.reports.rounds_to_target import rounds_to_target

# Three rounds of four devices with 10 test examples each.
CORRECT = np.array([[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]])
EXAMPLES = np.array([10, 10, 10, 10])


def test_reached_at_the_ceiling_of_the_share_of_devices():
    """70 %: one device in round 1, two in round 2, all four in round 3."""
    reached = rounds_to_target(CORRECT, EXAMPLES, [70], [10, 25, 30, 50, 60, 75, 90])
    assert [reached[70, p] for p in (10, 25, 30, 50, 60, 75, 90)] == (
        [1, 1, 2, 2, 3, 3, 3]
    )


def test_a_target_is_reached_at_equality_and_may_never_be():
    reached = rounds_to_target(CORRECT, EXAMPLES, [70, 90, 95])
    assert reached[70, 10] == 1  # 7 of 10 is 70 %.
    assert reached[90, 70] == 3  # ceil(2.8) = 3 of the 4 devices.
    assert reached[90, 80] is None  # ceil(3.2) = 4.
    assert reached[95, 10] is None


def test_seven_hundredths_are_not_lost_to_floating_point():
    """29 of 100 at a target of 29 %: 0.29 * 100 is 28.999999999999996."""
    assert rounds_to_target(np.array([[29]]), np.array([100]), [29], [50]) == {
        (29, 50): 1
    }


def test_devices_without_test_examples_never_reach():
    reached = rounds_to_target(np.array([[0, 5]]), np.array([0, 5]), [70], [50, 90])
    assert reached == {(70, 50): 1, (70, 90): None}
