"""The options of the clients' training that every process shares."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Sequence
from typing import Any, Callable, Optional

import tensorflow as tf
import tensorflow_federated as tff

from leaf_data.settings import A_SEED, AT_LEAST_1, Range, check_value
from tff_pmc.aggregation.building import check_kind
from tff_pmc.aggregation.sum_options import PLAIN_SUMS, SumOptions
from tff_pmc.clients.client_memory import ClientMemory, OwnModels
from tff_pmc.clients.model_metrics import MetricsAggregator

_VALUES = {
    "packed": (bool, None),
    "local_epochs": (int, AT_LEAST_1),
    "batch_size": (int, Range(lambda n: n >= 0, "0 (all) or more")),
    "seed": (int, A_SEED),
    "prox_mu": (float, Range(lambda mu: 0 <= mu < math.inf, "0 or more, finite")),
    "report_cohort": (int, AT_LEAST_1),
}


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """The keyword arguments that every learning process takes.

    Attributes:
        client_optimizer_fn: the clients' optimizer, for example
            `tff.learning.optimizers.build_sgdm(0.1)`. Its state begins anew in every
            round, so that TFF's `schedule_learning_rate` is refused: it would count a
            client's steps, and not the rounds.
        client_learning_rate_fn: the clients' learning rate by round, of the number of
            the round from 0, an int32 tensor, as of TFF's
            `build_weighted_fed_avg_with_optimizer_schedule`. It takes the place of the
            optimizer's, and the metrics report it as `client_learning_rate`.
        server_optimizer_fn: the server's optimizer; by default SGD with rate 1, which
            takes the weighted mean as it is (PMC eq. 2 has the rate).
        packed: the form of the data; by default packed for a functional model
            and datasets of batches for a `model_fn`.
        local_epochs: the number of passes over a client's examples, E (beside any
            repetition that a dataset makes by itself).
        batch_size: packed only: B; 0 trains on all examples in one batch.
        seed: the seed of the order of packed clients' batches, and of what layers of a
            model draw in training (dropout, noise, augmentation).
        prox_mu: FedProx's mu (Li et al. 2020, arXiv 1812.06127, eq. 2): a client
            trains on its loss + mu/2 ||w - w_start||^2 over the trainable weights, with
            w_start the model that it received, or went on with. 0, the default, leaves
            it out. Recorded losses are without it.
        client_attributes: the names of attributes that travel with each client;
            `criteria.attribute(name)` makes one a criterion.
        report_cohort: packed simulation only: the most clients in a round; the metrics
            then show each one's raw criteria, in the order in which `pack` was given
            them. None (the default) keeps everything but sums from the server.
        keep_own_model: packed simulation only, without privacy or a
            `scalar_sum_factory`: the numbers of the clients that ignore the model
            received and go on with their own, as AdaFed's adversaries do. Their models
            travel in the client work's state, because TFF's clients keep nothing.
        memory: packed simulation only, and not beside `keep_own_model`: what is
            remembered of clients; see `clients.client_memory.AgnosticWeights`.
        metrics_aggregator: how the model's own metrics (those of its Keras model, say)
            are aggregated over the clients, as TFF's algorithms take it; by default
            `tff.learning.metrics.sum_then_finalize`. They stand beside the
            measurements, under their names. With a `scalar_sum_factory` it must sum
            securely (`tff.learning.metrics.secure_sum_then_finalize`), and by default
            the metrics are left out; with `privacy` they always are. Packed clients'
            metrics are summed within a pack first, so that there it must sum.
        sums: the options of the sums over the clients.

    Raises:
        ValueError: (constructor) a number is none or out of range, or an option would
            show what the sums hide; the message names it.
        TypeError: (constructor) an optimizer is not a
            `tff.learning.optimizers.Optimizer`, or sums or memory not of its class.
    """

    client_optimizer_fn: tff.learning.optimizers.Optimizer
    server_optimizer_fn: Optional[tff.learning.optimizers.Optimizer] = None
    packed: Optional[bool] = None
    local_epochs: int = 1
    batch_size: int = 0
    seed: int = 0
    prox_mu: float = 0.0
    client_attributes: Sequence[str] = ()
    report_cohort: Optional[int] = None
    keep_own_model: Sequence[int] = ()
    memory: Optional[ClientMemory] = None
    metrics_aggregator: Optional[MetricsAggregator] = None
    sums: SumOptions = PLAIN_SUMS
    client_learning_rate_fn: Optional[Callable[[tf.Tensor], Any]] = None

    def __post_init__(self) -> None:
        for name, (kind, within) in _VALUES.items():
            value = getattr(self, name)
            if value is not getattr(TrainingOptions, name):
                check_value(name, value, kind, within)
        for name in ("client_attributes", "keep_own_model"):
            value = getattr(self, name)
            if isinstance(value, str) or not isinstance(value, Collection):
                raise ValueError(f"{name} must be a sequence, got {value!r}")
        for client in self.keep_own_model:
            check_value("a client of keep_own_model", client, int)
        kind = tff.learning.optimizers.Optimizer
        words = "a tff.learning.optimizers.Optimizer"
        check_kind("client_optimizer_fn", self.client_optimizer_fn, kind, words)
        check_kind("server_optimizer_fn", self.server_optimizer, kind, words)
        check_kind("sums", self.sums, SumOptions, "a SumOptions")
        memory = ClientMemory() if self.memory is None else self.memory
        check_kind("memory", memory, ClientMemory, "a ClientMemory")
        if self.sums.privacy is not None and self.metrics_aggregator is not None:
            raise ValueError(
                "metrics_aggregator would aggregate without noise: privacy excludes it"
            )
        if self.sums.hiding and self.report_cohort is not None:
            raise ValueError(
                "report_cohort shows each client's criteria: it excludes privacy "
                "and scalar_sum_factory"
            )
        remembered = [self.memory is not None, bool(self.keep_own_model)]
        if all(remembered) or (any(remembered) and self.sums.hiding):
            raise ValueError(
                "memory and keep_own_model are summed in the clear, in one place: each "
                "excludes the other, privacy and scalar_sum_factory"
            )

    @property
    def server_optimizer(self) -> tff.learning.optimizers.Optimizer:
        """The server's optimizer: the one given, or the default."""
        if self.server_optimizer_fn is None:
            return tff.learning.optimizers.build_sgdm(1.0)
        return self.server_optimizer_fn

    @property
    def only_counts(self) -> bool:
        """Whether nothing but a count may be measured: the rest is not hidden."""
        return bool(self.sums.hiding)

    @property
    def remembered(self) -> ClientMemory:
        """What is remembered of packed clients."""
        own = tuple(self.keep_own_model)
        return self.memory or (OwnModels(own) if own else ClientMemory())

    def client_rate(self, round_num: tf.Tensor) -> Optional[tf.Tensor]:
        """Returns the clients' rate in a round, float32; None for the optimizer's."""
        if self.client_learning_rate_fn is None:
            return None
        return tf.cast(tf.function(self.client_learning_rate_fn)(round_num), tf.float32)

    def num_steps(self, size: Any) -> Any:
        """The steps of a packed client of so many examples (tensors), one a batch."""
        batch = self.batch_size or tf.maximum(size, 1)
        return self.local_epochs * ((size + batch - 1) // batch)

    def is_packed(self, model: Any) -> bool:
        """Whether this model's clients are packed; a `ValueError` where they cannot."""
        is_functional = isinstance(model, tff.learning.models.FunctionalModel)
        packed = is_functional if self.packed is None else self.packed
        if packed and not is_functional:
            raise ValueError(
                "packed clients need a tff.learning.models.FunctionalModel; with a "
                "model_fn, pass each client's dataset of batches (packed=False)"
            )
        of_packed_clients = {
            "batch_size": self.batch_size,
            "report_cohort": self.report_cohort,
            "keep_own_model": tuple(self.keep_own_model),
            "memory": self.memory,
        }
        for name, value in of_packed_clients.items():
            if value and not packed:
                raise ValueError(
                    f"{name} is of packed clients only: a dataset of batches has its "
                    "own batches and order, and no client number"
                )
        return packed
