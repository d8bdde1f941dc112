"""Who gets which training image in AdaFed's three simulations.

"Performance-based Adaptive Federated Learning" (Giuseppi et al. 2022), sections 4.0.1
to 4.0.3. Each simulation is a table of numbers of images, a row a client and a column
a digit, which `deal` fills: no image is with two clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError

IntArray = npt.NDArray[Any]  # Of any integer type.

TABLE_1 = (
    (10, 0, 30, 10, 30, 50, 20, 20, 10, 10),
    (10, 0, 0, 500, 100, 0, 0, 500, 100, 500),
    (0, 0, 30, 500, 100, 150, 500, 0, 0, 500),
    (0, 0, 30, 0, 100, 0, 500, 500, 100, 0),
    (0, 10, 30, 500, 0, 0, 500, 500, 0, 500),
    (0, 10, 10, 10, 10, 100, 10, 0, 10, 3000),
)
"""AdaFed's Table 1: simulation 2's images of each digit, a row a client."""

SIMULATION_3 = (*TABLE_1, TABLE_1[2], TABLE_1[3])
"""Simulation 2's clients, and two with the numbers of clients 3 and 4."""

WRONG_LABELS = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.5, 1.0)
"""The share of each of simulation 3's clients' labels that is wrong."""

PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
"""The digits of simulation 1's first five clients; the paper prints no pairs."""

READINGS = ("a_client", "a_class")
"""How simulation 1's "5500 samples from two classes" can be read."""

_FEW = {0: 100, 5: 200}  # Of whatever client has the digit.
_OF_TWO_DIGITS, _OF_EACH_DIGIT = 5500, 500


def simulation_1(
    reading: str, available: Sequence[int] | IntArray
) -> tuple[tuple[int, ...], ...]:
    """Returns simulation 1's images of each digit, a row for each of six clients.

    The first five have two digits each; of 0 there are 100 and of 5 there are 200. The
    sixth has 500 of each digit.
    """
    rows = []
    for pair in PAIRS:
        few = {digit: _FEW[digit] for digit in pair if digit in _FEW}
        most = _OF_TWO_DIGITS
        if reading == "a_client":
            most = (_OF_TWO_DIGITS - sum(few.values())) // (len(pair) - len(few))
        counts = {digit: few.get(digit, most) for digit in pair}
        rows.append(tuple(counts.get(digit, 0) for digit in range(len(available))))
    dealt = [sum(column) for column in zip(*rows)]
    sixth = tuple(
        min(_OF_EACH_DIGIT, int(there) - taken)
        for there, taken in zip(available, dealt)
    )
    return (*rows, sixth)


def deal(
    labels: IntArray,
    counts: Sequence[Sequence[int]],
    random: np.random.RandomState,
) -> list[IntArray]:
    """Deals as many images of each digit to each client as a table says.

    Clients that are added at a table's end leave the others' images as they are.
    """
    digits = range(len(counts[0]))
    shuffled = [random.permutation(np.flatnonzero(labels == d)) for d in digits]
    ends = np.cumsum(counts, axis=0)
    parts = [
        np.concatenate(
            [
                rows[end - count : end]
                for rows, end, count in zip(shuffled, ends[k], row)
            ]
        )
        for k, row in enumerate(counts)
    ]
    return [random.permutation(part) for part in parts]


def mislabel(
    labels: IntArray,
    fraction: float,
    num_classes: int,
    random: np.random.RandomState,
) -> npt.NDArray[np.int32]:
    """Returns a copy of labels, a part of them wrong, each wrong one as likely."""
    if not 0 <= fraction <= 1:
        raise DataError(f"mislabeled_fraction has to be from 0 to 1, not {fraction}")
    wrong = labels.astype(np.int32)
    rows = random.permutation(len(labels))[: round(fraction * len(labels))]
    # A step of 1 to num_classes - 1 around the circle of labels: never the same one.
    steps = random.randint(1, num_classes, len(rows))
    wrong[rows] = (wrong[rows] + steps) % num_classes
    return wrong
