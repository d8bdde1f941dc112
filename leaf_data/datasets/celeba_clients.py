"""The choice of identities as clients, and of their photos for testing.

There are two rules. Each is a pure function of the photos of each identity and of a
seed, so it needs no image. "Prioritized Multi-Criteria Federated Learning" (PMC)
describes the one and its authors' published code follows the other.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data import partition

# Photos, by their row in a list of all: integers of any type.
Rows = npt.NDArray[Any]
# The training rows and the test rows of each client, by its identity.
Clients = dict[str, tuple[Rows, Rows]]


def paper(photos: Mapping[str, Rows], seed: int = 0) -> Clients:
    """Follows PMC 5.2: half of the photos, identities of 5 or more, split 80/20.

    How the half is taken is not printed. Here it is LEAF's `niid` sampling
    (`partition.leaf_sample`): shuffled identities are taken whole until half of the
    photos are reached, the last is cut to its first. Then identities with fewer than 5
    photos are removed, and each one's photos are split (`partition.leaf_split`).
    """
    sizes = np.array([len(rows) for rows in photos.values()], np.int64)
    taken = partition.leaf_sample(sizes, np.zeros(len(sizes), np.int64), 0.5, seed)
    clients: Clients = {}
    for (identity, rows), count in zip(photos.items(), taken.tolist()):
        if count >= 5:
            train, test = partition.leaf_split(identity, count, seed, 0.8)
            clients[identity] = rows[train], rows[test]
    return clients


def reference_code(photos: Mapping[str, Rows], seed: int = 0) -> Clients:
    """Follows the authors' code: half of the identities, those of 10 photos or more.

    The identities in ascending order are shuffled by Python's `random`, the first
    half is taken, and of it those with at least 10 photos; the first round(0.2 n)
    photos are for testing. With CelebA's 10,177
    identities and seed 0: 4,168 clients, 77,098 training and 19,319 test photos.
    """
    identities = sorted(photos, key=int)
    random.Random(int(seed)).shuffle(identities)
    clients: Clients = {}
    for identity in identities[: len(identities) // 2]:
        rows = photos[identity]
        if len(rows) >= 10:
            num_test = round(len(rows) * 0.2)
            clients[identity] = rows[num_test:], rows[:num_test]
    return clients


RULES = {"paper": paper, "reference_code": reference_code}
