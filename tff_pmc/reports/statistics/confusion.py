"""Confusion matrices, recall, precision and F1, by scikit-learn's conventions."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

Counts = npt.NDArray[np.int64]


def confusion_matrix(
    y_true: Counts, y_pred: Counts, num_classes: int, normalize: str | None = None
) -> npt.NDArray[Any]:
    """Returns the number of examples by true label (row) and predicted label (column).

    It is scikit-learn's function of this name with `labels=range(num_classes)`, and
    one more column at the end, for predictions that are not a class, such as those from
    scores that are not numbers. The shape is [num_classes, num_classes + 1].

    Args:
        y_true: the labels, int [N].
        y_pred: the predictions, int [N].
        num_classes: the number of classes.
        normalize: `true` for shares of the examples of a label (a row), `pred` of those
            of a prediction (a column), `all` of all examples; by default counts.
            A share of nothing is 0.
    """
    shape = num_classes, num_classes + 1
    column = np.minimum(y_pred, num_classes, dtype=np.int64)
    counts = np.bincount(
        np.ravel_multi_index((y_true, column), shape), minlength=np.prod(shape)
    ).reshape(shape)
    return counts if normalize is None else normalize_counts(counts, normalize)


def normalize_counts(counts: Counts, normalize: str) -> npt.NDArray[np.float64]:
    """Returns counts as shares; `normalize` is that of `confusion_matrix`."""
    axes = {"true": 1, "pred": 0, "all": None}
    if normalize not in axes:
        raise ValueError(
            f"normalize is {normalize!r}: choose {', '.join(axes)} or None"
        )
    total = counts.sum(axis=axes[normalize], keepdims=True)
    shares: npt.NDArray[np.float64] = counts / np.maximum(1, total)
    return shares


def class_metrics(counts: Counts) -> pd.DataFrame:
    """Returns the examples, recall, precision and F1 of each class, a row a class.

    The recall of a class without examples is NaN, as is the precision of a class that
    is never predicted; F1 is 2 hits / (examples + predictions).
    """
    hits = np.diag(counts)
    examples, predictions = counts.sum(axis=1), counts.sum(axis=0)[: len(counts)]
    with np.errstate(invalid="ignore", divide="ignore"):
        return pd.DataFrame(
            {
                "examples": examples,
                "recall": hits / examples,
                "precision": hits / predictions,
                "f1": 2 * hits / (examples + predictions),
            }
        )
