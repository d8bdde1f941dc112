"""Accuracy, precision, F1 and MCC of a classifier (the columns of Dual's tables)."""

from __future__ import annotations

import dataclasses
import math
from typing import Optional

import numpy as np
import numpy.typing as npt

from tff_pmc.record.record_error import RecordError

Confusion = npt.NDArray[np.int64]
"""A matrix whose `[t, p]` counts the examples of class t that are answered p."""


@dataclasses.dataclass(frozen=True)
class Measures:
    """The four measures of Dual's Tables IV and V.

    Precision is the share of the answers of a class that is right, 0 for a class that
    is never answered; F1 of a class is `2 tp / (2 tp + fp + fn)`. MCC is Matthews
    correlation coefficient, of many classes Gorodkin's `R_K` (2004); 0 where all
    labels, or all answers, are of one class.
    """

    accuracy: float
    precision: float
    f1: float
    mcc: float


def measures(confusion: Confusion, *, positive: Optional[int] = None) -> Measures:
    """Returns the measures of a confusion matrix.

    Precision and F1 are those of the class `positive`, as usual with two classes
    (Dual's Table V), or macro averages: the plain mean over the classes that occur
    among labels or answers (Table IV).
    """
    total = int(confusion.sum())
    if not total:
        raise RecordError("there are no predictions to measure")
    if positive is not None and not 0 <= positive < len(confusion):
        raise RecordError(
            f"the positive class is {positive} of {len(confusion)} classes"
        )
    right = np.diag(confusion)
    labels, answers = confusion.sum(axis=1), confusion.sum(axis=0)
    occurs = labels + answers > 0
    # Every right answer is among the answers, so 0 / 1 stands for 0 / 0.
    precision = right / np.maximum(answers, 1)
    f1 = 2 * right / np.maximum(labels + answers, 1)
    chosen = occurs if positive is None else np.arange(len(right)) == positive
    return Measures(
        accuracy=int(right.sum()) / total,
        precision=float(precision[chosen].mean()),
        f1=float(f1[chosen].mean()),
        mcc=_matthews(confusion),
    )


def confusion_matrix(
    y_true: npt.ArrayLike, y_pred: npt.ArrayLike, num_classes: Optional[int] = None
) -> Confusion:
    """Returns counts of answers, int64 `[C, C]`, true classes by answered ones.

    By default C is one more than the largest class that occurs.
    """
    true, answered = np.asarray(y_true), np.asarray(y_pred)
    if true.ndim != 1 or true.shape != answered.shape or not len(true):
        raise RecordError(
            f"labels and answers must be as many, and some: their shapes are "
            f"{true.shape} and {answered.shape}"
        )
    both = np.stack([true, answered])
    if not np.issubdtype(both.dtype, np.integer):
        raise RecordError(f"classes must be integers, not {both.dtype}")
    classes = int(both.max()) + 1 if num_classes is None else num_classes
    if both.min() < 0 or both.max() >= classes:
        wrong = int(both.min() if both.min() < 0 else both.max())
        raise RecordError(f"the class {wrong} is not in 0..{classes - 1}")
    places = both[0].astype(np.int64) * classes + both[1]
    counts = np.bincount(places, minlength=classes**2)
    return counts.astype(np.int64).reshape(classes, classes)


def _matthews(confusion: Confusion) -> float:
    """Returns `R_K`, the correlation of labels and answers, by whole numbers."""
    # Python's own, because a product of four counts may not fit into 64 bits.
    whole = confusion.astype(object)
    labels, answers, total = whole.sum(axis=1), whole.sum(axis=0), whole.sum()
    covariance = np.trace(whole) * total - labels @ answers
    spread = (total**2 - labels @ labels) * (total**2 - answers @ answers)
    return float(covariance / math.sqrt(spread)) if spread else 0.0
