"""Accuracy, precision, F1 and MCC, by scikit-learn."""

import numpy as np
import pytest

from tff_pmc.reports.papers.dual_cells import measures


@pytest.mark.parametrize("seed", range(10))
def test_scikit_learn_says_the_same(seed):
    """Two to eleven classes, of which some may be without labels, or answers."""
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(seed)
    classes, count = generator.integers(2, 12), generator.integers(1, 60)
    y = generator.integers(0, classes, count)
    guess = generator.integers(0, generator.integers(1, classes + 1), count)
    some = np.where(generator.random(count) < 0.5, y, guess)
    one = int(generator.integers(1 + max(y.max(), some.max())))
    # Where all answers are of one class, MCC divides 0 by 0.
    for predicted, positive in ((some, None), (some, one), (0 * y, None)):
        both = y, predicted
        options = {"average": "macro", "zero_division": 0}
        options |= {} if positive is None else {"labels": [positive]}
        expected = (
            metrics.accuracy_score(*both),
            metrics.precision_score(*both, **options),
            metrics.f1_score(*both, **options),
            metrics.matthews_corrcoef(*both),
        )
        found = tuple(measures(*both, positive).values())
        assert found == pytest.approx(expected, abs=1e-12)


def test_counts_of_a_large_test_set_do_not_overflow():
    """R_K multiplies fourth powers: 10^6 examples would leave int64."""
    y = np.repeat([0, 1], 10**6)
    assert measures(y, y)["MCC"] == 1.0
