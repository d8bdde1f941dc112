"""The choice of the clients that take part in a round (no TensorFlow)."""

from __future__ import annotations

import numpy as np


def cohort(seed: int, round_num: int, num_clients: int, size: int) -> list[int]:
    """Chooses a round's clients: a pure function of (seed, round).

    Args:
        seed: the run's cohort seed.
        round_num: the round, from 1.
        num_clients: clients in the federation, K.
        size: clients wanted, at most K.

    Returns:
        `size` different indices in [0, K), ascending.
    """
    generator = np.random.default_rng([seed, round_num])
    chosen = generator.choice(num_clients, size, replace=False)
    return sorted(int(k) for k in chosen)
