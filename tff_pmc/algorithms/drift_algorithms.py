"""Algorithms that keep the clients' local training from drifting apart.

Clients with different data train towards different models; the more steps they take,
the further. The server's mean stays a weighted mean; what changes is the clients' loss.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from declared_settings import Range, SettingError, setting
from tff_pmc.algorithms.algorithm import ALGORITHMS
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.algorithms.scored_algorithms import FedAvg
from tff_pmc.settings.run_settings import RunSettings

if TYPE_CHECKING:
    from tff_pmc.clients.training_options import Training


@dataclasses.dataclass(frozen=True)
class FedProx(FedAvg):
    """FedProx (Li et al. 2020, eq. 2): federated averaging with a proximal term.

    *Federated Optimization in Heterogeneous Networks*, arXiv 1812.06127. A client
    trains on its loss + mu/2 ||w - w_received||^2. Another algorithm has the same term
    by `--prox_mu`.
    """

    name = "FedProx"

    mu: float = setting(
        0.01,
        "FedProx's mu, which holds clients near the model that they received; 0 is "
        "federated averaging.",
        flag="fedprox_mu",
        within=Range(lambda mu: 0 <= mu < math.inf, "0 or more, finite"),
    )

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` for a second mu, that of `--prox_mu`."""
        refuse_prox_mu(settings, "whose mu is --fedprox_mu")
        super().check(settings)

    def training(self, context: RunContext) -> Training:
        """Returns the clients' training with the proximal term."""
        return dataclasses.replace(super().training(context), prox_mu=self.mu)


def refuse_prox_mu(settings: RunSettings, reason: str) -> None:
    """Raises a `SettingError` if `--prox_mu` is not 0; the reason is a relative clause.

    Raises:
        SettingError: the message names the flag and the algorithm.
    """
    if settings.training.prox_mu:
        raise SettingError(
            f"--prox_mu={settings.training.prox_mu:g} cannot be combined with the "
            f"algorithm {settings.algorithm_name}, {reason}"
        )


ALGORITHMS.register("fedprox", FedProx)
