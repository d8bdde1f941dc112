"""Accuracy, precision, F1 and MCC, by hand and by scikit-learn."""

import numpy as np
import pytest

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.classification import confusion_matrix, measures


def test_three_classes_worked_by_hand():
    """Class 2 is never answered; class 0 has 2 of 3, class 1 has 1 of 3 answers right.

    labels 3, 1, 2; answers 3, 3, 0; R_K = (3 * 6 - (9 + 3)) / sqrt((36 - 14) 18).
    """
    y_true, y_pred = [0, 0, 0, 1, 2, 2], [0, 0, 1, 1, 1, 0]
    confusion = confusion_matrix(y_true, y_pred)
    assert confusion.tolist() == [[2, 1, 0], [0, 1, 0], [1, 1, 0]]
    found = measures(confusion)
    assert found.accuracy == 0.5
    assert found.precision == pytest.approx((2 / 3 + 1 / 3 + 0) / 3)
    assert found.f1 == pytest.approx((4 / 6 + 2 / 4 + 0) / 3)
    assert found.mcc == pytest.approx(6 / np.sqrt(22 * 18))


@pytest.mark.parametrize("seed", range(10))
def test_scikit_learn_says_the_same(seed):
    """Two to eleven classes, of which some may be without labels, or answers."""
    metrics = pytest.importorskip("sklearn.metrics")
    generator = np.random.default_rng(seed)
    classes, count = generator.integers(2, 12), generator.integers(1, 60)
    y_true = generator.integers(0, classes, count)
    guess = generator.integers(0, generator.integers(1, classes + 1), count)
    y_pred = np.where(generator.random(count) < 0.5, y_true, guess)
    confusion = confusion_matrix(y_true, y_pred, classes)
    expected = metrics.confusion_matrix(y_true, y_pred, labels=range(classes))
    assert confusion.tolist() == expected.tolist()
    positive = int(generator.integers(classes))
    for found, options in (
        (measures(confusion), {"average": "macro"}),
        (
            measures(confusion, positive=positive),
            {"average": "macro", "labels": [positive]},
        ),
    ):
        options["zero_division"] = 0
        assert vars(found) == pytest.approx(
            {
                "accuracy": metrics.accuracy_score(y_true, y_pred),
                "precision": metrics.precision_score(y_true, y_pred, **options),
                "f1": metrics.f1_score(y_true, y_pred, **options),
                "mcc": metrics.matthews_corrcoef(y_true, y_pred),
            },
            abs=1e-12,
        )


def test_perfect_wrong_and_constant_answers():
    y = np.array([0, 1, 2, 1])
    assert set(vars(measures(confusion_matrix(y, y))).values()) == {1.0}
    assert measures(confusion_matrix([0, 1], [1, 0])).mcc == -1.0
    constant = measures(confusion_matrix(y, np.zeros(4, int)))
    assert (constant.mcc, constant.accuracy) == (0.0, 0.25)


def test_a_class_that_does_not_occur_does_not_count():
    y_true, y_pred = [0, 0, 1], [0, 1, 1]
    few, many = (confusion_matrix(y_true, y_pred, n) for n in (2, 10))
    assert many.shape == (10, 10)
    assert measures(few) == measures(many)


def test_counts_of_a_large_test_set_do_not_overflow():
    """R_K multiplies fourth powers: 10^6 examples would leave int64."""
    found = measures(np.diag([10**6, 10**6]))
    assert found.mcc == 1.0


@pytest.mark.parametrize(
    "y_true, y_pred, says",
    [
        ([0, 1], [0], "shapes"),
        ([], [], "some"),
        ([0, 3], [0, 1], "class 3"),
        ([0, 1], [0, -1], "class -1"),
        ([0.0, 1.0], [0, 1], "integers"),
        ([0, 1], [0, 1], "positive class is 4 of 3"),
    ],
)
def test_what_is_no_classification_is_refused(y_true, y_pred, says):
    with pytest.raises(RecordError, match=says):
        measures(confusion_matrix(y_true, y_pred, 3), positive=4)
