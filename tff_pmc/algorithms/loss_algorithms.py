"""Algorithms that weight clients by the received model's loss on their examples.

A client's weight is its number of examples n_k times one further criterion: the factor
of its gradient in the gradient of a fair objective.
"""

from __future__ import annotations

import abc
import dataclasses
import math
from typing import TYPE_CHECKING, Any

from declared_settings import ABOVE_0, Range, SettingError, setting
from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc._lazy import tf
from tff_pmc.algorithms.algorithm import ALGORITHMS
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.algorithms.scored_algorithms import ScoredAlgorithm
from tff_pmc.criteria import Criterion, LocalClient
from tff_pmc.criteria.client_criteria import received_loss
from tff_pmc.criteria.criterion import nan_if_underflowed
from tff_pmc.criteria.server_criteria import example_accuracy
from tff_pmc.models.positions import count_labels
from tff_pmc.settings.run_settings import RunSettings

if TYPE_CHECKING:
    from tff_pmc.clients.client_memory import AgnosticWeights

_LARGEST = criteria_lib.LARGEST_EXPONENT
EXPONENT_RANGE = Range(lambda q: 0 <= q <= _LARGEST, f"from 0 to {_LARGEST}")


@dataclasses.dataclass(frozen=True)
class OwnCriteriaAlgorithm(ScoredAlgorithm):
    """A scored algorithm with own criteria; a subclass defines them and `score`."""

    @abc.abstractmethod
    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns the algorithm's criteria."""

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` for declared ranges, and for codes that it defines.

        Its criteria have no declared ranges. One of `--criteria` with the code of one
        of them would be ambiguous.
        """
        for criterion in self.own_criteria(settings):
            is_registered = criterion.code.partition("^")[0] in criteria_lib.REGISTRY
            if not is_registered and criterion.code in settings.aggregation.criteria:
                raise SettingError(
                    f"--criteria lists {criterion.code}, which the algorithm "
                    f"{settings.algorithm_name} adds by itself: remove it"
                )
        if settings.aggregation.normalization == "range":
            raise SettingError(
                "--normalization=range cannot be used with the algorithm "
                f"{settings.algorithm_name}: its criteria have no declared ranges"
            )
        super().check(settings)


@dataclasses.dataclass(frozen=True)
class _SizeTimesFactor(OwnCriteriaAlgorithm):
    """The product of n_k and one criterion."""

    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns DS and the factor."""
        return criteria_lib.resolve(["DS", self.factor()])

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the product of n_k and the factor."""
        members = [criterion.code for criterion in self.own_criteria(settings)]
        return scores.product(settings.criterion_codes, members=members)

    @abc.abstractmethod
    def factor(self) -> str | Criterion:
        """Returns the criterion that multiplies n_k."""


@dataclasses.dataclass(frozen=True)
class QFFL(_SizeTimesFactor):
    """Clients weighted by `n_k F_k^q` (q-FFL, Li et al. 2020, eq. 2).

    *Fair Resource Allocation in Federated Learning*, arXiv 1905.10497. F_k is the loss
    of the received model on the client's examples, and these are the weights in the
    gradient of `sum_k n_k F_k^(q+1) / (q+1)`. The paper's algorithm, which also
    estimates the step length, is `q_fedavg`.
    """

    name = "q-FFL"

    q: float = setting(
        1.0,
        "The exponent of the client's loss; 0 is federated averaging.",
        flag="qffl_q",
        within=EXPONENT_RANGE,
    )

    def factor(self) -> str:
        """Returns the loss to the power q."""
        return f"LOSS^{self.q:.15g}"


@dataclasses.dataclass(frozen=True)
class Term(_SizeTimesFactor):
    """Clients weighted by `n_k exp(t F_k)` (TERM, Li et al. 2021, Lemma 1).

    *Tilted Empirical Risk Minimization*, arXiv 2007.01162. These are the weights in the
    gradient of `log(sum_k n_k exp(t F_k) / n) / t`, the loss that is tilted between
    clients. A client whose exponential overflows or underflows in
    float32 is excluded.
    """

    name = "TERM"

    t: float = setting(
        1.0,
        "The tilt: above 0, clients with high losses have more weight, below 0 less.",
        flag="term_t",
        within=Range(
            lambda t: -_LARGEST <= t <= _LARGEST, f"from -{_LARGEST} to {_LARGEST}"
        ),
    )

    def factor(self) -> Criterion:
        """Returns the exponential."""

        def value(client: LocalClient) -> Any:
            return nan_if_underflowed(tf.exp(self.t * received_loss(client)), True)

        source = "Li et al. 2021, Lemma 1"
        return Criterion("exp_tF", "tilted loss", source, value, needs_model=True)


@dataclasses.dataclass(frozen=True)
class PropFair(_SizeTimesFactor):
    """Clients weighted by `n_k / max(M - F_k, epsilon)`.

    PropFair (Zhang et al. 2022, arXiv 2202.01666).

    These are the weights in the gradient of `-sum_k n_k log(M - F_k)`, whose logarithm
    is continued linearly where M - F_k is below epsilon. In the paper, clients train on
    this loss of each batch; here they train on the usual loss, and the weights follow
    from the received model.
    """

    name = "PropFair"

    bound: float = setting(
        5.0,
        "M, the loss at which a client has no utility.",
        flag="propfair_bound",
        within=ABOVE_0,
    )
    epsilon: float = setting(
        0.2,
        "The utility M - F_k below which a client's weight does not grow.",
        flag="propfair_epsilon",
        within=ABOVE_0,
    )

    def factor(self) -> Criterion:
        """Returns the inverse of the utility."""

        def value(client: LocalClient) -> Any:
            return 1.0 / tf.maximum(self.bound - received_loss(client), self.epsilon)

        source = "Zhang et al. 2022"
        return Criterion("propfair", "inverse utility", source, value, needs_model=True)


def _accuracy(output: Any, y: Any) -> Any:
    correct = tf.reduce_sum(example_accuracy(output.predictions, y))
    count = tf.cast(count_labels(output.predictions, y), tf.float32)
    return tf.math.divide_no_nan(correct, count)


@dataclasses.dataclass(frozen=True)
class InverseAccuracy(_SizeTimesFactor):
    """Clients weighted by `n_k / (A_k + epsilon)`, A_k the received model's accuracy.

    This is ours: the form of AdaFed's class weights (its section 3.1), for clients.
    """

    name = "Inverse accuracy"

    epsilon: float = setting(
        0.1,
        "Added to a client's accuracy, so that the factor is at most 1 / epsilon.",
        flag="inverse_accuracy_epsilon",
        within=Range(lambda x: 0 < x < math.inf, "above 0, and finite"),
    )

    @property
    def needs_classes(self) -> bool:
        """True: it measures accuracy."""
        return True

    def factor(self) -> Criterion:
        """Returns the inverse of the accuracy on the client's examples."""

        def value(client: LocalClient) -> Any:
            return 1.0 / (client.mean_on_received(_accuracy) + self.epsilon)

        name = "inverse of the received model's accuracy"
        return Criterion("inverse_accuracy", name, "ours", value, needs_model=True)


@dataclasses.dataclass(frozen=True)
class AgnosticFL(OwnCriteriaAlgorithm):
    """AFL (Mohri, Sivek, Suresh 2019): clients have learned weights lambda_k.

    *Agnostic Federated Learning*, arXiv 1902.00146, Algorithm 1. After each round
    `lambda <- projection(lambda + rate * F)` onto the simplex, with F_k the loss of the
    received model. The state keeps the lambda of every client; a round normalizes those
    of its cohort to the sum 1. The projection sets small lambdas to 0. If the whole
    cohort has 0, the model does not change (`update_rejected`); three such rounds in a
    row end the run, unless --most_lost_rounds is 0.
    """

    name = "AFL"

    rate: float = setting(
        0.01,
        "The learning rate of the clients' weights.",
        flag="afl_rate",
        within=ABOVE_0,
    )

    def check(self, settings: RunSettings) -> None:
        """Raises a `SettingError` if clients ignore the global model."""
        if settings.training.keep_own_model:
            raise SettingError(
                "--keep_own_model cannot be combined with the algorithm "
                f"{settings.algorithm_name}: its client weights follow the losses of "
                "the global model, which these clients ignore"
            )
        super().check(settings)

    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns lambda_k, which the server keeps."""

        def value(client: LocalClient) -> Any:
            return client.memory

        source = "Mohri et al. 2019, Algorithm 1"
        return (Criterion("lambda", "AFL's weight", source, value, needs_model=True),)

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns lambda alone."""
        return scores.single("lambda", settings.criterion_codes)

    def build_client_memory(self, context: RunContext) -> AgnosticWeights:
        """Builds the memory of each client's lambda."""
        from tff_pmc.clients.client_memory import AgnosticWeights

        return AgnosticWeights(len(context.data.client_ids), self.rate)


ALGORITHMS.register("qffl", QFFL)
ALGORITHMS.register("term", Term)
ALGORITHMS.register("propfair", PropFair)
ALGORITHMS.register("inverse_accuracy", InverseAccuracy)
ALGORITHMS.register("afl", AgnosticFL)
