"""Which identities become clients, and which of their photos are for testing.

Two rules. Each is a pure function of the photos of each identity and of a seed, so
it needs no image. "Prioritized Multi-Criteria Federated Learning" (PMC) describes
the one and its authors' published code follows the other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data import partition
from leaf_data.errors import DataError

RULES = ("paper", "reference_code")

Rows = npt.NDArray[Any]  # Of any integer type.
Clients = dict[str, tuple[Rows, Rows]]

# Its own stream: the choice of the identities draws from the seed too.
_SPLIT_STREAM = 80


def by_name(rule: str, photos: Mapping[str, Rows], seed: int) -> Clients:
    """Returns `paper(...)` or `reference_code(...)`.

    Raises:
        DataError: no such rule, or what the two raise.
    """
    check(rule)
    clients = (paper if rule == "paper" else reference_code)(photos, seed)
    if not clients:
        raise DataError(
            f"client_rule={rule}: none of the {len(photos)} identities has photos enough"
        )
    return clients


def check(rule: str) -> None:
    """Raises DataError if there is no such rule."""
    if rule not in RULES:
        raise DataError(f"no client_rule {rule!r}: there are {', '.join(RULES)}")


def paper(photos: Mapping[str, Rows], seed: int = 0) -> Clients:
    """PMC section 5: half of the photos, identities of 5 or more, split 80/20.

    LEAF's `niid` sampling with fraction 0.5: shuffled identities are taken whole
    until int(0.5 N) photos are reached, the last is cut to its first. Then
    identities with fewer than 5 photos are removed, and max(1, int(0.8 n)) of each
    one's n photos, drawn at random, are for training. LEAF's own script removes the
    small ones once before it samples as well, which the paper does not say.

    Args:
        photos: identity -> its rows, in file order.
        seed: 0 to 2**32 - 1. LEAF's own draws cannot be repeated: its sampling
            has no seed by default.

    Returns:
        identity -> (training rows, test rows), in the order sampled; rows rise.

    Raises:
        DataError: the seed is none.
    """
    identities = list(photos)
    partition.random_state(seed).shuffle(identities)
    split = partition.random_state(seed, _SPLIT_STREAM)
    left = int(0.5 * sum(len(rows) for rows in photos.values()))
    clients: Clients = {}
    for identity in identities:
        rows = photos[identity][:left]
        left -= len(rows)
        if len(rows) >= 5:
            chosen = np.zeros(len(rows), bool)
            chosen[split.permutation(len(rows))[: int(0.8 * len(rows))]] = True
            clients[identity] = rows[chosen], rows[~chosen]
    return clients


def reference_code(photos: Mapping[str, Rows], seed: int = 0) -> Clients:
    """What the authors' code does: half of the identities, those of 10 photos or more.

    The identities in ascending order are shuffled by Python's `random`, the first
    half is kept, and of it those with at least 10 photos; the first round(0.2 n)
    photos are for testing (Python's round: 2.5 is 2). With CelebA's 10,177
    identities and seed 0: 4,168 clients, 77,098 training and 19,319 test photos.

    Args:
        photos: identity, the text of a number -> its rows, in file order.
        seed: 0 to 2**32 - 1; the authors' is 0.

    Returns:
        identity -> (training rows, test rows), in shuffled order, as in the code.

    Raises:
        DataError: the seed is none.
    """
    partition.random_state(seed)  # Checks it.
    identities = sorted(photos, key=int)
    random.Random(int(seed)).shuffle(identities)
    clients: Clients = {}
    for identity in identities[: len(identities) // 2]:
        rows = photos[identity]
        if len(rows) >= 10:
            num_test = round(len(rows) * 0.2)
            clients[identity] = rows[num_test:], rows[:num_test]
    return clients
