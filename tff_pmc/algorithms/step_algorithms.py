"""Algorithms whose server step is a weighted mean times powers of criteria totals.

The factors of the clients' updates do not sum to 1. `cohort.csv` records these factors
as weights, and `weight_figures` compares their shares of the sum.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, ClassVar

from declared_settings import Range, SettingError, setting
from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc._lazy import tf
from tff_pmc.algorithms.algorithm import ALGORITHMS
from tff_pmc.algorithms.loss_algorithms import EXPONENT_RANGE, OwnCriteriaAlgorithm
from tff_pmc.criteria import Criterion, LocalClient
from tff_pmc.criteria.client_criteria import client_update, received_loss
from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class _StepAlgorithm(OwnCriteriaAlgorithm):
    """Clients weighted by the first criterion, times a step length."""

    has_step_length = True
    total_exponents: ClassVar[tuple[float, ...]] = ()  # One for each own criterion.

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` unless totals normalize the criteria."""
        method = settings.aggregation.normalization
        if method != "sum":
            raise SettingError(
                f"--normalization={method} cannot be used with the algorithm "
                f"{settings.algorithm_name}: its step length comes from the totals: "
                "use --normalization=sum"
            )
        super().check(settings)

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the score of the first own criterion, with the step length."""
        criteria, columns = self.own_criteria(settings), settings.criterion_codes
        codes = [criterion.code for criterion in criteria]
        return dataclasses.replace(
            scores.single(codes[0], columns),
            label=self.name,
            step_powers=dict(zip(map(columns.index, codes), self.total_exponents)),
        )


@dataclasses.dataclass(frozen=True)
class QFedAvg(_StepAlgorithm):
    """q-FedAvg (Li et al. 2020, Algorithm 2), which estimates the step length.

    *Fair Resource Allocation in Federated Learning*, arXiv 1905.10497.

    With `D_k = L (w - w_k)` the new model is

        w - sum_k F_k^q D_k / sum_k h_k,  h_k = q F_k^(q-1) ||D_k||^2 + L F_k^q

    with sums over the cohort. As in the paper, client sizes may only affect the
    sampling. F_k is the received model's loss, plus 1e-10 as in the authors' code; the
    norm is that of the whole update, before any clipping.
    """

    name = "q-FedAvg"
    total_exponents = (1.0, -1.0)

    q: float = setting(
        1.0,
        "The exponent of the client's loss; 0 is the simple average.",
        flag="q_fedavg_q",
        within=EXPONENT_RANGE,
    )
    lipschitz: float = setting(
        0.0,
        "L, the Lipschitz constant of the gradient at q = 0; 0 is 1 / --learning_rate, "
        "as in the paper.",
        flag="q_fedavg_lipschitz",
        within=Range(lambda x: 0 <= x < math.inf, "0 or more, and finite"),
    )

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` for a decaying rate, unless L is given."""
        if settings.training.client_rate_decay < 1 and not self.lipschitz:
            raise SettingError(
                f"--client_rate_decay: the algorithm {settings.algorithm_name} "
                "takes 1 / --learning_rate as its Lipschitz constant, which a decaying "
                "rate changes: set --q_fedavg_lipschitz"
            )
        super().check(settings)

    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns `L F_k^q` and h_k."""
        inverse_rate = 1 / settings.training.learning_rate
        bound, q = self.lipschitz or inverse_rate, self.q

        def weight(client: LocalClient) -> Any:
            return bound * tf.pow(received_loss(client) + 1e-10, q)

        def denominator(client: LocalClient) -> Any:
            norm = tf.linalg.global_norm(client_update(client))
            square = tf.square(bound * norm)
            slope = q * tf.pow(received_loss(client) + 1e-10, q - 1)
            return slope * square + weight(client)

        source = "Li et al. 2020, Algorithm 2"
        return (
            Criterion("q_fedavg_weight", "L F^q", source, weight, needs_model=True),
            Criterion("q_fedavg_h", "h", source, denominator, needs_model=True),
        )


@dataclasses.dataclass(frozen=True)
class FedNova(_StepAlgorithm):
    """FedNova (Wang et al. 2020, section 4): updates normalized by local steps.

    *Tackling the Objective Inconsistency Problem*, arXiv 2007.07481. With tau_k steps
    of plain SGD and `d_k = w - w_k` the new model is

        w - (sum_k p_k tau_k) sum_k p_k d_k / tau_k,  p_k = n_k / sum_k n_k
    """

    name = "FedNova"
    keeps_stragglers = True  # It is made for clients with different numbers of steps.
    total_exponents = (1.0, 1.0, -2.0)

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` for anything but plain SGD, whose steps it counts."""
        optimizer = settings.training.client_optimizer
        if optimizer != "sgd":
            raise SettingError(
                f"--client_optimizer={optimizer} cannot be used with the algorithm "
                f"{settings.algorithm_name}, which counts SGD steps: use sgd"
            )
        if settings.training.prox_mu:
            raise SettingError(
                "--prox_mu cannot be combined with the algorithm "
                f"{settings.algorithm_name}, which counts SGD steps: remove it"
            )
        super().check(settings)

    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns `n_k / tau_k`, `n_k tau_k` and n_k."""
        size = criteria_lib.REGISTRY["DS"]

        def numbers(client: LocalClient) -> list[Any]:
            return [tf.cast(n, "float32") for n in (size.value(client), client.steps)]

        def per_step(client: LocalClient) -> Any:
            return tf.math.divide_no_nan(*numbers(client))

        def times_steps(client: LocalClient) -> Any:
            return tf.multiply(*numbers(client))

        source = "Wang et al. 2020, section 4"
        return (
            Criterion("DS_per_step", "n / tau", source, per_step, needs_model=True),
            Criterion("DS_times_steps", "n tau", source, times_steps, needs_model=True),
            size,
        )


ALGORITHMS.register("q_fedavg", QFedAvg)
ALGORITHMS.register("fednova", FedNova)
