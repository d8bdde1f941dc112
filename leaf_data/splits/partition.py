"""Partitions of examples among clients: pure functions of the labels and a seed.

Each returns a list with one index array (int64) per client; together they hold
every example exactly once. The partitions are those of McMahan et al. 2017
("Communication-Efficient Learning of Deep Networks from Decentralized Data",
section 3), which "Prioritized Multi-Criteria Federated Learning" (section 5.1) says
it uses for MNIST.

They draw from `numpy.random.RandomState`, whose stream is frozen, so that a seed
means the same partition under every numpy.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError

NAMES = ("iid", "noniid")
"""The names of the partitions that `by_name` knows."""

IntArray = npt.NDArray[Any]  # Of any integer type.


def by_name(
    partition: str, labels: IntArray, num_clients: int, seed: int
) -> list[IntArray]:
    """Returns `iid(...)` or, for "noniid", `sorted_shards(...)`."""
    if partition == "iid":
        return iid(labels, num_clients, seed)
    if partition == "noniid":
        return sorted_shards(labels, num_clients, seed=seed)
    raise DataError(f"no partition {partition!r}: there are {', '.join(NAMES)}")


def iid(labels: IntArray, num_clients: int = 100, seed: int = 0) -> list[IntArray]:
    """Shuffles the examples and gives every client as many."""
    labels = _check_labels(labels)
    per_client = _divide(len(labels), num_clients, "clients")
    order = random_state(seed).permutation(len(labels))
    return list(order.astype(np.int64).reshape(num_clients, per_client))


def sorted_shards(
    labels: IntArray,
    num_clients: int = 100,
    shards_per_client: int = 2,
    seed: int = 0,
) -> list[IntArray]:
    """Sorts by label, cuts into equal shards, deals shuffled shards.

    With MNIST's 60,000 labels and the defaults: 200 shards of 300, two a client.
    MNIST's digits are not multiples of 300, so nine of the 200 shards, one at
    each border between digits, hold two digits. A client therefore has one to
    four labels, where PMC (section 6.3) says two at most: 77 to 90 of the 100 have two
    (seeds 0 to 9), 6 to 8 have three, the rest, whose shards are of one digit, one;
    in 111 of the seeds 0 to 999 some client has four (the first is seed 15).
    """
    labels = _check_labels(labels)
    _at_least_one(num_clients, "clients")
    _at_least_one(shards_per_client, "shards a client")
    num_shards = num_clients * shards_per_client
    shard_size = _divide(len(labels), num_shards, "shards")
    shards = np.argsort(labels, kind="stable").reshape(num_shards, shard_size)
    dealt = shards[random_state(seed).permutation(num_shards)]
    return list(dealt.astype(np.int64).reshape(num_clients, -1))


def consecutive(num_examples: int, num_clients: int) -> list[IntArray]:
    """Gives client i the i-th run of examples, in file order: n i .. n i + n - 1."""
    per_client = _divide(num_examples, num_clients, "clients")
    return list(np.arange(num_examples, dtype=np.int64).reshape(-1, per_client))


def random_state(seed: int, stream: int | None = None) -> np.random.RandomState:
    """Returns the random numbers of a seed; each `stream` is a sequence of its own."""
    try:
        value = operator.index(seed)
    except TypeError:
        value = -1
    if isinstance(seed, bool) or not 0 <= value < 2**32:
        raise DataError(f"seed has to be an integer from 0 to 2**32 - 1, not {seed!r}")
    return np.random.RandomState(value if stream is None else [value, stream])


def client_ids(num_clients: int) -> tuple[str, ...]:
    """Returns names for clients without one: client_000, client_001, ..."""
    return tuple(f"client_{index:03d}" for index in range(num_clients))


def _check_labels(labels: IntArray) -> IntArray:
    labels = np.asarray(labels)
    if labels.ndim != 1:
        raise DataError(f"labels have to be one-dimensional, not {labels.shape}")
    return labels


def _at_least_one(number: int, what: str) -> None:
    if number < 1:
        raise DataError(f"the number of {what} has to be at least 1, not {number}")


def _divide(num_examples: int, parts: int, what: str) -> int:
    _at_least_one(parts, what)
    if num_examples % parts or not num_examples:
        raise DataError(
            f"{num_examples} examples cannot be cut into {parts} equal {what}"
        )
    return num_examples // parts
