"""Normalizations of raw criteria, by hand."""

import numpy as np
import pytest

from tff_pmc import scores


def test_values_outside_their_range_are_cut():
    normalization = scores.Normalization("range", ((10.0, 20.0),))
    c = scores.normalize([[5.0], [15.0], [25.0]], normalization)
    np.testing.assert_allclose(c[:, 0], [0, 0.5, 1])


def test_under_max_lower_priorities_count_however_many_clients():
    """With 100 equal clients but one, `sum` gives the second priority 1 %."""
    raw = np.ones((100, 2))
    raw[0, 1] = 0
    order = scores.prioritized((0, 1))
    by_sum = scores.participant_weights(raw, order)
    by_max = scores.participant_weights(raw, order, scores.Normalization("max"))
    assert by_sum[0] / by_sum[1] == pytest.approx(1 / (1 + 1 / 99))
    assert by_max[0] / by_max[1] == pytest.approx(1 / 2)


@pytest.mark.parametrize(
    ("method", "ranges", "message"),
    [
        ("mean", None, "must be one of sum, max, range"),
        ("range", {"DS": (0, 1)}, "needs a range for LD"),
        ("range", {"DS": (1, 1), "LD": (0, 1)}, "is not a range"),
        ("sum", {"DS": (0, 1)}, "with no other"),
        ("range", {"XX": (0, 1)}, "declared for XX"),
    ],
)
def test_what_does_not_fit_is_refused(method, ranges, message):
    with pytest.raises(ValueError, match=message):
        scores.Normalization.declared(method, ("DS", "LD"), ranges)
