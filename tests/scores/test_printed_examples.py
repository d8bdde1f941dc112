"""The papers' worked examples, and the properties of the score that PMC names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tff_pmc import scores

ALICE, BOB = (0.9, 0.2, 0.4), (0.1, 0.8, 0.5)
"""PMC's Examples 4.1 and 4.2: dataset size, clothes diversity, image sharpness."""

IN_ORDER, REVERSED = scores.prioritized((0, 1, 2)), scores.prioritized((2, 1, 0))
values = st.floats(0, 1)


def test_da_example_2_and_its_misprint():
    """c = (0.5, 0.8, 0.9): 0.5 + 0.5 x 0.8 + 0.4 x 0.9 = 1.26.

    With the ordering reversed it is 0.9 + 0.9 x 0.8 + 0.72 x 0.5 = 1.98. DA prints
    1.82, because its last term takes 0.4, the first ordering's lambda_3, for its own
    0.72.
    """
    c = (0.5, 0.8, 0.9)
    assert round(IN_ORDER(c), 10) == 1.26
    assert round(REVERSED(c), 10) == 1.98
    as_printed_in_da = 0.9 + 0.72 + 0.4 * 0.5
    assert round(as_printed_in_da, 10) == 1.82


def test_pmc_example_4_1_the_mean():
    """Sums of 1.5 and 1.4, so weights of 0.52 and 0.48; the factor 1/3 cancels."""
    mean = scores.weighted_average((1 / 3, 1 / 3, 1 / 3))
    weights = [mean(ALICE), mean(BOB)]
    printed = [round(weight / sum(weights), 2) for weight in weights]
    assert printed == [0.52, 0.48]
    # Sharpness sums to 0.9 here, not to 1 as section 4.1 asks. Normalized it gives:
    weights = scores.participant_weights([ALICE, BOB], mean).round(2)
    assert weights.tolist() == [0.51, 0.49]


def test_pmc_example_4_2_the_prioritized_score():
    assert round(IN_ORDER(ALICE), 10) == 1.152
    assert round(IN_ORDER(BOB), 10) == 0.22
    assert round(REVERSED(ALICE), 10) == 0.552
    assert round(REVERSED(BOB), 10) == 0.94


@given(st.lists(values, min_size=1, max_size=5), st.data())
def test_pmc_eq_7_the_score_is_monotonic(c, data):
    """More of one criterion, whatever its place, never lowers the score."""
    place = data.draw(st.integers(0, len(c) - 1))
    raised = [*c]
    raised[place] = data.draw(st.floats(c[place], 1))
    score = scores.prioritized(range(len(c)))
    assert score(c) <= score(raised)


@given(st.lists(values, min_size=1, max_size=5), st.data())
def test_pmc_eq_8_a_criterion_of_zero_silences_those_below_it(c, data):
    """f_m with c_j = 0 is f_{j-1} of the criteria before it; of none it is 0."""
    place = data.draw(st.integers(0, len(c) - 1))
    with_zero = [*c[:place], 0.0, *c[place + 1 :]]
    before = scores.prioritized(range(place))(c[:place]) if place else 0.0
    score = scores.prioritized(range(len(c)))
    assert score(with_zero) == pytest.approx(before, abs=1e-12)
