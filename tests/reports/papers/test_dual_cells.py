"""Accuracy, precision, F1 and MCC, by hand and by scikit-learn."""

import numpy as np
import pytest

from tff_pmc.reports.papers.dual_cells import METRICS, measures


def of(y, predicted, positive=None):
    return measures(np.array(y), np.array(predicted), positive)


@pytest.mark.parametrize(
    ("y", "predicted", "expected"),
    [
        # Class 2 is never answered; class 0 has 2 of 3, class 1 1 of 3 answers right.
        # labels 3, 1, 2; answers 3, 3, 0; R_K = (3 * 6 - (9 + 3)) / sqrt((36 - 14) 18).
        ([0, 0, 0, 1, 2, 2], [0, 0, 1, 1, 1, 0],
         (0.5, 1 / 3, (4 / 6 + 2 / 4) / 3, 6 / np.sqrt(22 * 18))),
        ([0, 1, 2, 1], [0, 1, 2, 1], (1, 1, 1, 1)),
        ([0, 1], [1, 0], (0, 0, 0, -1)),
        ([0, 1, 2, 1], [0, 0, 0, 0], (0.25, 1 / 12, 2 / 15, 0)),
        # Classes that do not occur do not count.
        ([0, 0, 9], [0, 9, 9], (2 / 3, 3 / 4, 2 / 3, 0.5)),
    ],
)  # fmt: skip
def test_measures_by_hand(y, predicted, expected):
    assert of(y, predicted) == pytest.approx(dict(zip(METRICS, expected)))


@pytest.mark.parametrize("seed", range(10))
def test_scikit_learn_says_the_same(seed):
    """Two to eleven classes, of which some may be without labels, or answers."""
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(seed)
    classes, count = generator.integers(2, 12), generator.integers(1, 60)
    y = generator.integers(0, classes, count)
    guess = generator.integers(0, generator.integers(1, classes + 1), count)
    both = y, np.where(generator.random(count) < 0.5, y, guess)
    for positive in (None, int(generator.integers(1 + max(map(np.max, both))))):
        options = {"average": "macro", "zero_division": 0}
        options |= {} if positive is None else {"labels": [positive]}
        expected = (
            metrics.accuracy_score(*both),
            metrics.precision_score(*both, **options),
            metrics.f1_score(*both, **options),
            metrics.matthews_corrcoef(*both),
        )
        found = tuple(of(*both, positive).values())
        assert found == pytest.approx(expected, abs=1e-12)


def test_counts_of_a_large_test_set_do_not_overflow():
    """R_K multiplies fourth powers: 10^6 examples would leave int64."""
    y = np.repeat([0, 1], 10**6)
    assert measures(y, y)["MCC"] == 1.0
