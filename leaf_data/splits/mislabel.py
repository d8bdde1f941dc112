"""Labels made wrong on purpose, as an adversary's are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError


def mislabel(
    labels: npt.NDArray[Any],
    fraction: float,
    num_classes: int,
    random: np.random.RandomState,
) -> npt.NDArray[np.int32]:
    """Returns a copy of labels, a part of them wrong, each wrong one as likely.

    Args:
        labels: the labels, [n], from 0 to `num_classes` - 1.
        fraction: the fraction of wrong labels, from 0 to 1. `round(fraction * n)` are
            replaced, a half rounded to the even number.
        num_classes: the number of classes, at least 2.
        random: the random numbers that decide which, and by what.

    Returns:
        The labels, int32 [n].

    Raises:
        DataError: the fraction is not from 0 to 1.
    """
    if not 0 <= fraction <= 1:
        raise DataError(f"mislabeled_fraction has to be from 0 to 1, not {fraction}")
    wrong = labels.astype(np.int32)
    rows = random.permutation(len(labels))[: round(fraction * len(labels))]
    # A step of 1 to num_classes - 1 around the circle of labels: never the same one.
    steps = random.randint(1, num_classes, len(rows))
    wrong[rows] = (wrong[rows] + steps) % num_classes
    return wrong
