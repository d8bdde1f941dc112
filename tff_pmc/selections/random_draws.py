"""Clients that are drawn, all alike or by their size."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tff_pmc.selections.selection import SELECTIONS, Clients, Selection


@dataclasses.dataclass(frozen=True)
class Uniform(Selection):
    """Each client is as likely as any other, as in the papers."""

    def choose(
        self, generator: np.random.Generator, clients: Clients, count: int
    ) -> Any:
        """Draws without replacement."""
        return generator.choice(len(clients.sizes), count, replace=False)


@dataclasses.dataclass(frozen=True)
class BySize(Selection):
    """Clients are drawn one after another, in proportion to their training examples.

    Of those that are left, client k comes next with the probability `n_k / sum n`
    (*Federated Optimization in Heterogeneous Networks*, Li et al. 2020, Algorithm 2,
    which does not say whether one may come twice; here none does). The system weighs
    them afterwards: where that is by DS, size counts twice.
    """

    name = "drawn by size"

    def choose(
        self, generator: np.random.Generator, clients: Clients, count: int
    ) -> Any:
        """Draws without replacement."""
        return drawn_by_size(generator, clients, count)


def drawn_by_size(generator: np.random.Generator, clients: Clients, count: int) -> Any:
    """The places of `count` clients, drawn in proportion to their training examples."""
    shares = clients.sizes / clients.sizes.sum()
    return generator.choice(len(shares), count, replace=False, p=shares)


SELECTIONS.register("uniform", Uniform)
SELECTIONS.register("by_size", BySize)
