"""Draws that take from every class alike: pure functions of labels and random numbers.

Each takes the labels, integers [N], and a `RandomState` (see `partition.random_state`),
and returns indices into the labels, int64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError

IntArray = npt.NDArray[Any]  # Of any integer type.


def split(
    labels: IntArray, fraction: float, random: np.random.RandomState
) -> tuple[IntArray, IntArray]:
    """Cuts a random part out of every class."""
    if not 0 <= fraction <= 1:
        raise DataError(f"a fraction has to be from 0 to 1, not {fraction}")
    counts = np.bincount(labels)
    chosen = _ranks(labels, random) < np.rint(fraction * counts)[labels]
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


def mixed(labels: IntArray, random: np.random.RandomState) -> IntArray:
    """Returns a random order in which the classes take turns until they run out.

    With classes of equal size, any run of the order holds as many of each class,
    within one.
    """
    order: IntArray = np.lexsort((labels, _ranks(labels, random)))
    return order


def _ranks(labels: IntArray, random: np.random.RandomState) -> IntArray:
    """Returns each example's rank, from 0, in a random order of its class, [N]."""
    ranks = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        ranks[rows] = random.permutation(len(rows))
    return ranks
