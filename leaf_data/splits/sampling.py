"""LEAF's rules for taking a part of a data set's users, as functions of counts.

LEAF's `preprocess.sh` first samples (`sample.py`), then removes small users
(`remove_users.py`), then splits each user's examples (`split_data.py`). The rules are
LEAF's; the random numbers are not: LEAF draws in the order `os.listdir` gives, so its
seeds do not mean the same on every machine.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.splits import partition

IntArray = npt.NDArray[Any]


def niid(sizes: IntArray, files: IntArray, fraction: float, seed: int) -> IntArray:
    """Samples as LEAF's `-s niid --sf FRACTION`: whole users until it is reached.

    For each file alone: its users are shuffled and taken one after the other until
    `int(fraction * examples of the file)` is reached; of the last one taken only as
    many examples as are missing, its first.
    """
    taken = np.zeros(len(sizes), np.int64)
    for number in np.unique(files):
        users = np.flatnonzero(files == number)
        missing = int(fraction * int(sizes[users].sum()))
        for user in partition.random_state(seed, int(number)).permutation(users):
            taken[user] = min(int(sizes[user]), missing)
            missing -= taken[user]
    return taken


def cut_parts(sizes: IntArray, taken: IntArray) -> IntArray:
    """Shares what is taken of each user between train and test, in proportion."""
    total = np.maximum(sizes.sum(axis=1), 1)
    test = taken * sizes[:, 1] // total
    return np.stack([taken - test, test], axis=1)


def split(
    user: str, size: int, seed: int, train_fraction: float = 0.9
) -> tuple[IntArray, IntArray]:
    """Splits a user's examples as LEAF's `-t sample --tf 0.9` into train and test.

    `max(1, int(train_fraction * size))` of them, drawn at random, are the train
    examples, the others the test examples; both stay in their order.
    """
    # Half of a character is a name here as any other.
    stream = zlib.crc32(user.encode(errors="surrogatepass"))
    state = partition.random_state(seed, stream)
    order = state.permutation(size).astype(np.int64)
    count = max(1, int(train_fraction * size))
    return np.sort(order[:count]), np.sort(order[count:])
