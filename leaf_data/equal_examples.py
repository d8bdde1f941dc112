"""Equal examples: on both sides of a split a model is tested on what it remembers.

Two examples are equal where their x and their y are. Their keys are hashes of 64 bits:
among a hundred million examples two that differ have the same key with a probability of
about 0.0003.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_ROWS = 1 << 12  # That are copied at once.


def example_keys(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Returns a number for each example, [n], equal where x and y are.

    Another process gives the examples other numbers.
    """
    keys = np.zeros(len(y), np.int64)
    for start in range(0, len(y), _ROWS):
        # Adding 0 makes -0.0 and 0.0, which are equal, the same bytes.
        blocks = [np.ascontiguousarray(a[start : start + _ROWS] + a.dtype.type(0))
                for a in (x, y)]  # fmt: skip
        count = len(blocks[1])
        rows = np.concatenate(
            [a.view(np.uint8).reshape(count, a[:1].nbytes) for a in blocks], 1
        )
        keys[start : start + count] = [hash(row.tobytes()) for row in rows]
    return keys


def count_shared(train: npt.NDArray[np.int64], test: npt.NDArray[np.int64]) -> int:
    """Returns how many test examples are equal to a training example, by their keys."""
    return int(np.isin(test, train).sum())


def draw_together(
    keys: npt.NDArray[np.int64],
    order: npt.NDArray[np.int64],
    count: int,
    sides: dict[int, bool],
) -> npt.NDArray[np.bool_]:
    """Draws a client's test examples so that equal examples are all drawn or all not.

    Args:
        keys: of the client's examples, [n].
        order: a random order of them: without equal ones, its first `count` are drawn.
        count: how many are drawn, unless those of earlier clients are more; fewer
            where no group of equal ones fits.
        sides: of the keys of earlier clients, whether they are drawn; those of this
            client are added.

    Returns:
        A mask of the drawn examples, [n].
    """
    groups: dict[int, list[int]] = {}
    for row in order.tolist():
        groups.setdefault(int(keys[row]), []).append(row)
    num_left = count - sum(len(rows) for key, rows in groups.items() if sides.get(key))
    drawn = np.zeros(len(keys), bool)
    for key, rows in groups.items():
        if key not in sides:
            sides[key] = len(rows) <= num_left
            num_left -= len(rows) * sides[key]
        drawn[rows] = sides[key]
    return drawn
