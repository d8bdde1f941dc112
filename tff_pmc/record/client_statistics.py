"""Statistics over the clients' accuracies, or losses: percentiles and fairness."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tff_pmc.record.record_error import ClientsNotRecordedError

PERCENTILES = (10, 50, 90)
"""The percentiles of clients that are recorded after each test, percent."""


Floats = npt.NDArray[np.float64]


def client_means(sums: npt.NDArray[Any], examples: npt.NDArray[np.int64]) -> Floats:
    """Divides each client's sums [..., K] by its number of examples [K].

    Clients without examples are excluded from the result.

    Raises:
        ClientsNotRecordedError: no client was recorded (K is 0).
    """
    if not examples.size:
        raise ClientsNotRecordedError
    tested = examples > 0
    means: Floats = sums[..., tested] / examples[tested]
    return means


def percentile(accuracies: Floats, percent: float) -> Floats:
    """Returns the percentile over the clients, interpolated linearly."""
    with np.errstate(invalid="ignore"):  # Infinite losses have none between them.
        value: Floats = np.percentile(accuracies, percent, axis=-1)
    return value


def worst_tenth(accuracies: Floats) -> Floats:
    """Returns the mean of the ceil(K / 10) lowest: the worst 10 % of Li et al."""
    count = -(-accuracies.shape[-1] // 10)
    mean: Floats = np.sort(accuracies, axis=-1)[..., :count].mean(axis=-1)
    return mean


def jain_index(accuracies: Floats) -> Floats:
    """Returns Jain's fairness index, `(sum x)^2 / (n sum x^2)`, from 1/n to 1.

    It is k/n if k of n clients have the same accuracy and the others 0. If all clients
    have 0, they are equal, and the index is 1.
    """
    squares = accuracies.shape[-1] * np.square(accuracies).sum(axis=-1)
    total = np.square(accuracies.sum(axis=-1))
    index: Floats = np.divide(
        total, squares, out=np.ones_like(squares), where=squares > 0
    )
    return index
