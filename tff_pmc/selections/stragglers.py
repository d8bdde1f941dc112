"""Stragglers: clients of a round that have no time for all local epochs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

_STREAM = 5  # Separate from the stream of the cohorts.


def count_stragglers(num_clients: int, share: float) -> int:
    """Returns how many clients of a cohort straggle, as FedProx's code counts them."""
    return num_clients - round(num_clients * (1 - share))


def draw_local_epochs(
    seed: int,
    round_num: int,
    num_clients: int,
    local_epochs: int,
    share: float,
    *,
    keeps_work: bool,
) -> npt.NDArray[np.int32]:
    """Draws how many epochs each client of a round's cohort runs.

    *Federated Optimization in Heterogeneous Networks* (Li et al. 2020, section 5.2):
    the share of the cohort has time for x epochs, uniform over 1 to E. An algorithm
    either keeps that work or drops these clients, also one that draws x = E. The
    published code draws x from 1 to E - 1.

    Args:
        seed: what the stragglers are drawn from, 0 or more.
        round_num: the round, from 1.
        num_clients: the size of the cohort.
        local_epochs: E, the epochs of the other clients.
        share: the share of stragglers, from 0 to 1.
        keeps_work: whether the work of stragglers is kept. It changes neither who
            straggles nor x.

    Returns:
        The number of epochs by the client's place in the cohort, int32 [num_clients];
        0 for a straggler that is dropped.
    """
    generator = np.random.default_rng([seed, round_num, _STREAM])
    count = count_stragglers(num_clients, share)
    stragglers = generator.permutation(num_clients)[:count]
    partial = generator.integers(1, local_epochs, num_clients, np.int32, endpoint=True)
    epochs = np.full(num_clients, local_epochs, np.int32)
    epochs[stragglers] = partial[stragglers] if keeps_work else 0
    return epochs
