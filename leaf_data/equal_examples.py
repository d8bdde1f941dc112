"""Equal examples: if they are in both parts, a model is tested on its training data.

Two examples are equal if their x and their y are. Their keys are hashes of 64 bits:
among a hundred million examples two different ones have the same key with a probability
of about 0.0003.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_ROWS_PER_CHUNK = 1 << 12


def example_keys(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Returns a key for each example, [n]; equal examples have equal keys.

    Keys differ between processes.
    """
    keys = np.zeros(len(y), np.int64)
    for start in range(0, len(y), _ROWS_PER_CHUNK):
        # Adding 0 makes -0.0 and 0.0, which are equal, the same bytes.
        rows = slice(start, start + _ROWS_PER_CHUNK)
        blocks = [np.ascontiguousarray(a[rows] + a.dtype.type(0)) for a in (x, y)]
        count = len(blocks[1])
        content = np.concatenate(
            [a.view(np.uint8).reshape(count, a[:1].nbytes) for a in blocks], 1
        )
        keys[start : start + count] = [hash(row.tobytes()) for row in content]
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
        keys: the keys of the client's examples, [n].
        order: a random order of them: without equal examples the first `count` are
            drawn.
        count: the number to draw; more are drawn if earlier clients' draws contain
            more, fewer if no group of equal examples fits.
        sides: for each key of earlier clients, whether it is drawn; the client's keys
            are added.

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
