"""Algorithms that weigh clients by how well the received model does on their examples.

Each is a product of the client's number of examples n_k and one further criterion, by
which the gradient of a fair objective weighs the clients' gradients.
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
from tff_pmc.settings.run_settings import RunSettings

if TYPE_CHECKING:
    from tff_pmc.clients.client_memory import AgnosticWeights

_LARGEST = criteria_lib.LARGEST_EXPONENT
EXPONENT_RANGE = Range(lambda q: 0 <= q <= _LARGEST, f"from 0 to {_LARGEST}")


@dataclasses.dataclass(frozen=True)
class OwnCriteriaAlgorithm(ScoredAlgorithm):
    """A scored algorithm that brings criteria; it must define these and `score`."""

    @abc.abstractmethod
    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns the criteria."""

    def check(self, settings: RunSettings) -> None:
        """Refuses declared ranges, which its criteria do not have, and their codes.

        One of `--criteria` by such a code would be another.
        """
        for one in self.own_criteria(settings):
            known = one.code.partition("^")[0] in criteria_lib.REGISTRY
            if not known and one.code in settings.aggregation.criteria:
                raise SettingError(
                    f"--criteria: the algorithm {settings.algorithm_name} defines "
                    f"{one.code}: leave it out"
                )
        if settings.aggregation.normalization == "range":
            raise SettingError(
                f"--normalization=range: the criteria of the algorithm "
                f"{settings.algorithm_name} have no ranges"
            )
        super().check(settings)


@dataclasses.dataclass(frozen=True)
class _SizeTimesFactor(OwnCriteriaAlgorithm):
    """The product of n_k and one criterion."""

    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns DS and the factor."""
        return criteria_lib.resolve(["DS", self.factor()])

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the product of both."""
        members = [one.code for one in self.own_criteria(settings)]
        return scores.product(settings.criterion_codes, members=members)

    @abc.abstractmethod
    def factor(self) -> str | Criterion:
        """Returns the criterion with DS."""


@dataclasses.dataclass(frozen=True)
class QFFL(_SizeTimesFactor):
    """Clients weighted by `n_k F_k^q` (q-FFL, Li et al. 2020, eq. 2).

    *Fair Resource Allocation in Federated Learning*, arXiv 1905.10497. F_k is the loss
    of the received model on the client's examples, and these are the weights in the
    gradient of `sum_k n_k F_k^(q+1) / (q+1)`. The paper's algorithm finds the length of
    the step, too: it is the algorithm `q_fedavg`.
    """

    name = "q-FFL"

    q: float = setting(
        1.0,
        "The power of the client's loss; 0 is federated averaging.",
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
    clients. Where float32 does not hold the exponential, infinite or too small, the
    client is left out, and counted as excluded.
    """

    name = "TERM"

    t: float = setting(
        1.0,
        "The tilt; above 0 clients with high losses count more, below 0 less.",
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
    continues as a straight line where M - F_k is below epsilon. The paper's clients
    train on this loss of each batch; here they train on the usual loss, and the weights
    are those of the received model.
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
    return tf.reduce_mean(example_accuracy(output.predictions, y))


@dataclasses.dataclass(frozen=True)
class InverseAccuracy(_SizeTimesFactor):
    """Clients weighted by `n_k / (A_k + epsilon)`, A_k the received model's accuracy.

    The form is that of AdaFed's class weights (its section 3.1), for clients: ours.
    """

    name = "Inverse accuracy"

    epsilon: float = setting(
        0.1,
        "What is added to a client's accuracy: its examples weigh at most 1 / epsilon.",
        flag="inverse_accuracy_epsilon",
        within=Range(lambda x: 0 < x < math.inf, "above 0, and finite"),
    )

    @property
    def needs_classes(self) -> bool:
        """Accuracy does."""
        return True

    def factor(self) -> Criterion:
        """Returns the inverse of the accuracy on the client's examples."""

        def value(client: LocalClient) -> Any:
            return 1.0 / (client.mean_on_received(_accuracy) + self.epsilon)

        name = "inverse of the received model's accuracy"
        return Criterion("inverse_accuracy", name, "ours", value, needs_model=True)


@dataclasses.dataclass(frozen=True)
class AgnosticFL(OwnCriteriaAlgorithm):
    """AFL (Mohri, Sivek, Suresh 2019): clients weighted by a lambda that is learned.

    *Agnostic Federated Learning*, arXiv 1902.00146, Algorithm 1. After each round
    `lambda <- projection(lambda + rate * F)` onto the simplex, of the losses F_k of the
    received model. The state has the lambda of every client; of those drawn they are
    divided by their sum. The projection makes the small ones 0: in a round whose
    clients all have 0 the model stays (`update_rejected`), and three in a row end the
    run, unless --most_lost_rounds is 0.
    """

    name = "AFL"

    rate: float = setting(
        0.01,
        "The learning rate of the clients' weights.",
        flag="afl_rate",
        within=ABOVE_0,
    )

    def check(self, settings: RunSettings) -> None:
        """Refuses clients that keep their models, whose losses would be of others."""
        if settings.training.keep_own_model:
            raise SettingError(
                "--keep_own_model does not go with the algorithm "
                f"{settings.algorithm_name}, which remembers weights of clients"
            )
        super().check(settings)

    def own_criteria(self, settings: RunSettings) -> tuple[Criterion, ...]:
        """Returns lambda."""

        def value(client: LocalClient) -> Any:
            return client.memory

        source = "Mohri et al. 2019, Algorithm 1"
        return (Criterion("lambda", "AFL's weight", source, value, needs_model=True),)

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns lambda alone."""
        return scores.single("lambda", settings.criterion_codes)

    def build_client_memory(self, context: RunContext) -> AgnosticWeights:
        """Returns each client's lambda."""
        from tff_pmc.clients.client_memory import AgnosticWeights

        return AgnosticWeights(len(context.data.client_ids), self.rate)


ALGORITHMS.register("qffl", QFFL)
ALGORITHMS.register("term", Term)
ALGORITHMS.register("propfair", PropFair)
ALGORITHMS.register("inverse_accuracy", InverseAccuracy)
ALGORITHMS.register("afl", AgnosticFL)
