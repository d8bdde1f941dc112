"""Algorithms that reduce client drift: FedProx, SCAFFOLD and FedDyn.

Clients with different data train towards different models, and more local steps move
them further apart. These algorithms correct the gradients of local steps.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

from declared_settings import ABOVE_0, Range, SettingError, setting
from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc.algorithms.algorithm import ALGORITHMS
from tff_pmc.algorithms.loss_algorithms import OwnCriteriaAlgorithm
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.algorithms.scored_algorithms import FedAvg, ScoredAlgorithm
from tff_pmc.criteria import Criterion
from tff_pmc.settings.run_settings import RunSettings

if TYPE_CHECKING:
    from tff_pmc.clients.control_variates import ControlVariates
    from tff_pmc.clients.training_options import Training

EQUAL = "DS^0"
"""The criterion of equal weights."""


@dataclasses.dataclass(frozen=True)
class FedProx(FedAvg):
    """FedProx (Li et al. 2020, eq. 2): federated averaging with a proximal term.

    *Federated Optimization in Heterogeneous Networks*, arXiv 1812.06127. A client
    trains on its loss + mu/2 ||w - w_received||^2. `--prox_mu` adds the same term to
    other algorithms.
    """

    name = "FedProx"
    keeps_stragglers = True  # Its section 5.2; `FedAvg` drops them there.

    mu: float = setting(
        0.01,
        "FedProx's mu, which holds clients near the model that they received; 0 is "
        "federated averaging.",
        flag="fedprox_mu",
        within=Range(lambda mu: 0 <= mu < math.inf, "0 or more, finite"),
    )

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` if `--prox_mu` sets a second mu."""
        reject_prox_mu(settings, "whose mu is --fedprox_mu")
        super().check(settings)

    def training(self, context: RunContext) -> Training:
        """Returns the clients' training with the proximal term."""
        return dataclasses.replace(super().training(context), prox_mu=self.mu)


@dataclasses.dataclass(frozen=True)
class _PlainMeanAlgorithm(OwnCriteriaAlgorithm):
    """An algorithm with a memory per client that weights all clients equally."""

    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns DS to the power 0, which is 1 for each client."""
        return criteria_lib.resolve([EQUAL])

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns equal weights."""
        return scores.single(EQUAL, settings.criterion_codes)

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` if clients keep their own models."""
        if settings.training.keep_own_model:
            raise SettingError(
                "--keep_own_model cannot be combined with the algorithm "
                f"{settings.algorithm_name}, which has a client memory itself"
            )
        super().check(settings)

    def counterfactuals(self, settings: RunSettings) -> list[scores.Score]:
        """Raises a `SettingError`: the clients' memory depends on the weighting."""
        return super(ScoredAlgorithm, self).counterfactuals(settings)


@dataclasses.dataclass(frozen=True)
class Scaffold(_PlainMeanAlgorithm):
    """SCAFFOLD (Karimireddy et al. 2020, Algorithm 1, option II).

    *SCAFFOLD: Stochastic Controlled Averaging for Federated Learning*, arXiv
    1910.06378. Clients add `c - c_i` to their gradients: the server's control variate
    minus their own. The global rate eta_g is `--server_learning_rate`. See
    `clients.control_variates.ControlVariates`.
    """

    name = "SCAFFOLD"

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` unless clients train by plain SGD."""
        reject_prox_mu(settings, "which counts SGD steps")
        optimizer = settings.training.client_optimizer
        if optimizer != "sgd":
            raise SettingError(
                f"--client_optimizer={optimizer} cannot be combined with the algorithm "
                f"{settings.algorithm_name}, which counts SGD steps: use sgd"
            )
        super().check(settings)

    def build_client_memory(self, context: RunContext) -> ControlVariates:
        """Builds each client's control variate, and the server's."""
        from tff_pmc.clients.control_variates import ControlVariates

        return ControlVariates(
            len(context.data.client_ids),
            context.settings.training.learning_rate,
            num_trainable=len(context.cohort_sampler.trainable),
        )


@dataclasses.dataclass(frozen=True)
class FedDyn(_PlainMeanAlgorithm):
    """FedDyn (Acar et al. 2021, Algorithm 1): its regularizer changes by round.

    *Federated Learning Based on Dynamic Regularization*, arXiv 2111.04263. Client k
    trains on its loss `- <g_k, w> + alpha/2 ||w - w_received||^2`, whose minimum
    its steps approximate. See `processes.fed_dyn.build_fed_dyn`.
    """

    name = "FedDyn"

    alpha: float = setting(
        0.01,
        "FedDyn's alpha, the weight of its regularizer: a larger one learns the "
        "clients' gradients faster, and makes the server's correction smaller.",
        flag="feddyn_alpha",
        within=ABOVE_0,
    )

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` for other regularizers, server steps or clipping."""
        reject_prox_mu(settings, "whose regularizer has --feddyn_alpha")
        name = f"the algorithm {settings.algorithm_name}"
        server = settings.server.optimizer
        if server != "sgd":
            raise SettingError(
                f"--server_optimizer={server} cannot be combined with "
                f"{name}, whose server takes the step of its Algorithm 1"
            )
        rate = settings.training.server_learning_rate
        if rate != 1:
            raise SettingError(
                f"--server_learning_rate={rate:g} cannot be combined with "
                f"{name}, whose server has no learning rate"
            )
        if settings.aggregation.clip_norm:
            raise SettingError(
                f"--clip_norm cannot be combined with {name}, whose h is computed from "
                "whole updates"
            )
        super().check(settings)

    def build_process(
        self, context: RunContext, basis: scores.Basis | None = None
    ) -> Any:
        """Builds the process, whose server corrects the mean update."""
        from tff_pmc.processes.fed_dyn import build_fed_dyn

        return build_fed_dyn(
            context.model,
            client_optimizer_fn=context.client_optimizer,
            num_clients=len(context.data.client_ids),
            training=context.training,
            alpha=self.alpha,
            num_trainable=len(context.cohort_sampler.trainable),
            criteria=context.criteria,
            sums=context.sums,
        )


def reject_prox_mu(settings: RunSettings, reason: str) -> None:
    """Raises a `SettingError` if `--prox_mu` is not 0.

    `reason` is the end of the message: a relative clause about the algorithm.
    """
    if settings.training.prox_mu:
        raise SettingError(
            f"--prox_mu={settings.training.prox_mu:g} cannot be combined with the "
            f"algorithm {settings.algorithm_name}, {reason}"
        )


ALGORITHMS.register("fedprox", FedProx)
ALGORITHMS.register("scaffold", Scaffold)
ALGORITHMS.register("feddyn", FedDyn)
