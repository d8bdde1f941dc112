"""Sampling of cohorts: uniform, by size, and power of choice (by the losses)."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from declared_settings import AT_LEAST_0, SettingError, setting
from tff_pmc.selections.selection import LOSS, SELECTIONS, Clients, Selection


@dataclasses.dataclass(frozen=True)
class Uniform(Selection):
    """Every client is equally likely, as in the papers."""

    def choose(
        self, generator: np.random.Generator, clients: Clients, count: int
    ) -> Any:
        """Draws without replacement."""
        return generator.choice(len(clients.sizes), count, replace=False)


@dataclasses.dataclass(frozen=True)
class BySize(Selection):
    """Clients are drawn one after another, in proportion to their training examples.

    Among the remaining clients, client k is drawn next with the probability
    `n_k / sum n`
    (*Federated Optimization in Heterogeneous Networks*, Li et al. 2020, Algorithm 2,
    which does not specify whether a client may be drawn twice; here none is). The
    algorithm weighs them afterwards: if it weighs by DS, size counts twice.
    """

    name = "drawn by size"

    def choose(
        self, generator: np.random.Generator, clients: Clients, count: int
    ) -> Any:
        """Draws without replacement."""
        return sample_by_size(generator, clients, count)


def sample_by_size(generator: np.random.Generator, clients: Clients, count: int) -> Any:
    """Draws the places of `count` clients in proportion to their training examples."""
    shares = clients.sizes / clients.sizes.sum()
    return generator.choice(len(shares), count, replace=False, p=shares)


@dataclasses.dataclass(frozen=True)
class PowerOfChoice(Selection):
    """Selects the clients with the highest loss among candidates drawn by size.

    *Client Selection in Federated Learning: Convergence Analysis and Power-of-Choice
    Selection Strategies* (Cho, Wang, Joshi, arXiv 2010.01243), pi_pow-d: d candidates
    are drawn as by `by_size`; each receives the model w and reports its mean loss
    `F_k(w) = 1/n_k sum loss(w, example)` over its training examples; the m with the
    largest losses form the cohort. Ties are broken at random, and a loss that is not a
    number comes last. In the paper the chosen clients have equal weights; here the
    algorithm weighs them: if it weighs by DS, size counts twice.
    """

    name = "power of choice"
    needs = (LOSS,)

    candidates: int = setting(
        0,
        "Of --selection=power_of_choice, d: how many clients are drawn and report "
        "their loss; 0 is twice the clients of a round, or all, if there are fewer.",
        flag="choice_candidates",
        within=AT_LEAST_0,
    )

    def check(self, count: int, num_clients: int) -> None:
        """Raises a `SettingError` for too few candidates, or more than clients."""
        if self.candidates and not count <= self.candidates <= num_clients:
            raise SettingError(
                f"--choice_candidates={self.candidates} must be from {count}, the "
                f"clients in a round, to {num_clients}, the clients that can train"
            )

    def choose(
        self, generator: np.random.Generator, clients: Clients, count: int
    ) -> Any:
        """Draws candidates, and returns those with the largest losses."""
        num_candidates = self.candidates or min(2 * count, len(clients.sizes))
        # The first drawn are likely to be large: another order breaks ties.
        candidates = generator.permutation(
            sample_by_size(generator, clients, num_candidates)
        )
        losses = clients.measure(LOSS, candidates)
        worst = np.argsort(np.where(np.isnan(losses), np.inf, -losses), kind="stable")
        return candidates[worst[:count]]


SELECTIONS.register("uniform", Uniform)
SELECTIONS.register("by_size", BySize)
SELECTIONS.register("power_of_choice", PowerOfChoice)
