"""The options of local training, and the decorator that documents them on builders."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Collection, Sequence
from typing import Any, Callable, ClassVar, Optional, TypedDict, TypeVar

import tensorflow as tf
import tensorflow_federated as tff

from declared_settings import (
    AT_LEAST_1,
    check_value,
    require_sequence,
    unknown_name_message,
)
from tff_pmc.aggregation.tff_utils import check_type
from tff_pmc.clients.client_memory import ClientMemory, PersistentModels
from tff_pmc.clients.model_metrics import MetricsAggregator
from tff_pmc.criteria import Criterion, check_attribute_name
from tff_pmc.settings.training_settings import LocalTraining

Builder = TypeVar("Builder", bound=Callable[..., Any])


class TrainingOptions(TypedDict, total=False):
    """The options of local training, which each builder takes by name.

    Your own function passes them on with `**training: Unpack[TrainingOptions]`.

    Attributes:
        local_epochs: Local epochs, E. By default 5.
        batch_size: Local batch size, B; 0 is full batch. By default 0.
        seed: Seed of the order of the examples in the local batches, and of the random
            draws of layers in training. By default 0.
        prox_mu: FedProx's mu: clients train on their loss + mu/2 ||w - w_received||^2
            (Li et al. 2020, arXiv 1812.06127, eq. 2), which holds them near the model
            that they received; 0 omits the term. By default 0.0.
        packed: the form of the data; by default packed for a functional model
            and datasets of batches for a `model_fn`.
        client_learning_rate_fn: a function from the round number, an int32 tensor that
            starts at 0, to the clients' learning rate, as in TFF's
            `build_weighted_fed_avg_with_optimizer_schedule`. It replaces the
            optimizer's rate, and the metrics report it as `client_learning_rate`.
        client_attributes: the names of the attributes in each client's data;
            `criteria.attribute(name)` makes one a criterion.
        epochs_by_client: packed clients only: whether each client's data has its number
            of local epochs, as `pack(local_epochs=...)` adds it, which replaces
            `local_epochs`. A client with 0 epochs is excluded. By default False.
        report_cohort: simulation only: the maximum size of a cohort; the metrics then
            contain each client's raw criteria, in the order of the cohort that `pack`
            took, or of the datasets (`tff_pmc.cohort_weights`). With None (the default)
            the server receives sums only.
        keep_own_model: packed simulation only, without privacy or a
            `scalar_sum_factory`: the numbers of the clients that ignore the received
            model and continue with the one they trained, as AdaFed's adversaries do.
            Their models are kept in the client work's state: TFF's clients are
            stateless.
        memory: packed simulation only, and not with `keep_own_model`: the per-client
            state to keep between rounds, by default none; see
            `clients.client_memory.AgnosticWeights`.
        metrics_aggregator: how the model's metrics (such as those of a Keras model)
            are aggregated over the clients, as in TFF's algorithms; by default
            `tff.learning.metrics.sum_then_finalize`. They are reported with the
            measurements, under their names. With a `scalar_sum_factory` it must sum
            securely (`tff.learning.metrics.secure_sum_then_finalize`), and by default
            no metrics are reported; with `privacy` they never are. The metrics of
            packed clients are first summed within a pack, so there it must sum.
    """

    local_epochs: int
    batch_size: int
    seed: int
    prox_mu: float
    packed: Optional[bool]
    client_learning_rate_fn: Optional[Callable[[tf.Tensor], Any]]
    client_attributes: Sequence[str]
    epochs_by_client: bool
    report_cohort: Optional[int]
    keep_own_model: Sequence[int]
    memory: Optional[ClientMemory]
    metrics_aggregator: Optional[MetricsAggregator]


@dataclasses.dataclass(frozen=True)
class Training(LocalTraining):
    """The options of local training: `TrainingOptions`, checked, with defaults.

    `local_epochs`, `batch_size`, `seed` and `prox_mu` are declared once, with range,
    default and help, as flags of the command: see `LocalTraining`.

    Raises:
        ValueError: (constructor) a value is not a number or is out of range, the name
            of an attribute is not valid, or options exclude each other; the message
            names them.
        TypeError: (constructor) `memory` is not a `ClientMemory`.
    """

    errors_name_fields: ClassVar[bool] = True

    packed: Optional[bool] = None
    client_learning_rate_fn: Optional[Callable[[tf.Tensor], Any]] = None
    client_attributes: Sequence[str] = ()
    epochs_by_client: bool = False
    report_cohort: Optional[int] = None
    keep_own_model: Sequence[int] = ()
    memory: Optional[ClientMemory] = None
    metrics_aggregator: Optional[MetricsAggregator] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.packed is not None:
            check_value("packed", self.packed, bool)
        check_value("epochs_by_client", self.epochs_by_client, bool)
        if self.report_cohort is not None:
            check_value("report_cohort", self.report_cohort, int, AT_LEAST_1)
        for name in ("client_attributes", "keep_own_model"):
            value = getattr(self, name)
            if not isinstance(value, (list, tuple)):
                object.__setattr__(self, name, require_sequence(name, value))
        for attribute in self.client_attributes:
            check_attribute_name(attribute)
        for client in self.keep_own_model:
            check_value("a client of keep_own_model", client, int)
        if self.memory is not None:
            check_type("memory", self.memory, ClientMemory, "a ClientMemory")
            if self.keep_own_model:
                raise ValueError(
                    "memory cannot be combined with keep_own_model: each defines the "
                    "state that is kept of clients"
                )

    @classmethod
    def from_options(cls, options: TrainingOptions) -> Training:
        """Returns the training with these options, and defaults for the rest.

        Raises:
            TypeError: an option is unknown.
            ValueError: see the class.
        """
        names = [field.name for field in dataclasses.fields(cls)]
        for name in options:
            if name not in names:
                raise TypeError(
                    f"got an unexpected keyword argument {name!r}: "
                    + unknown_name_message("training option", name, names)
                )
        return cls(**options)

    def check_sums(self, hiding: Collection[str]) -> None:
        """Raises a `ValueError` for options that would reveal what the sums hide.

        `hiding` has the names of the options that hide: `SumOptions.hiding_options`.
        """
        if "privacy" in hiding and self.metrics_aggregator is not None:
            raise ValueError(
                "metrics_aggregator cannot be combined with privacy, because it adds "
                "no noise: remove it"
            )
        if hiding and self.report_cohort is not None:
            raise ValueError(
                "report_cohort cannot be combined with privacy or scalar_sum_factory, "
                "because it reveals each client's criteria: remove it"
            )
        if hiding and (self.memory is not None or self.keep_own_model):
            raise ValueError(
                "memory and keep_own_model cannot be combined with privacy or "
                "scalar_sum_factory, because they are summed in the clear: remove them"
            )

    def codes_shown(self, criteria: Sequence[Criterion]) -> tuple[str, ...]:
        """Returns the codes of the criteria that the metrics contain per client."""
        if self.report_cohort is None:
            return ()
        return tuple(criterion.code for criterion in criteria)

    @property
    def arguments(self) -> dict[str, Any]:
        """The options by name, as keyword arguments of a builder."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}

    @property
    def client_memory(self) -> ClientMemory:
        """The per-client state that packed clients keep between rounds."""
        if self.keep_own_model:
            return PersistentModels(self.keep_own_model)
        return self.memory or ClientMemory()

    def client_rate(self, round_num: tf.Tensor) -> Optional[tf.Tensor]:
        """Returns the clients' learning rate in a round; None for the optimizer's."""
        if self.client_learning_rate_fn is None:
            return None
        return tf.cast(tf.function(self.client_learning_rate_fn)(round_num), tf.float32)

    def num_steps(self, size: Any, epochs: Any) -> Any:
        """Returns the number of optimizer steps of a packed client, one per batch.

        `size` is the client's number of examples, and `epochs` that of its epochs.
        """
        batch = self.batch_size or tf.maximum(size, 1)
        return epochs * ((size + batch - 1) // batch)

    def is_packed(self, model: Any) -> bool:
        """Returns whether the clients are packed; raises if the model excludes it."""
        is_functional = isinstance(model, tff.learning.models.FunctionalModel)
        packed = is_functional if self.packed is None else self.packed
        if packed and not is_functional:
            raise ValueError(
                "packed clients need a tff.learning.models.FunctionalModel; with a "
                "model_fn, pass each client's dataset of batches (packed=False)"
            )
        packed_only = {
            "batch_size": self.batch_size,
            "epochs_by_client": self.epochs_by_client,
            "keep_own_model": tuple(self.keep_own_model),
            "memory": self.memory,
        }
        for name, value in packed_only.items():
            if value and not packed:
                raise ValueError(
                    f"{name} only applies to packed clients: a dataset of batches "
                    "fixes the batches and their order, and has no client number"
                )
        return packed


def takes_training(build: Builder) -> Builder:
    """Adds the training options to a builder's run-time signature and docstring.

    `inspect.signature` then has an argument with its default for each option, instead
    of `**training`, and the docstring the declared help. Type checkers read the options
    from `TrainingOptions`.
    """
    signature = inspect.signature(build)
    parameters = [
        *list(signature.parameters.values())[:-1],
        *(
            inspect.Parameter(
                field.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=field.default,
                annotation=field.type,
            )
            for field in dataclasses.fields(Training)
        ),
    ]
    build.__signature__ = signature.replace(parameters=parameters)
    lines = [
        f"    {declared.name}: {declared.help} By default {declared.default}."
        for declared in LocalTraining.declared()
    ]
    wrapped = (
        textwrap.fill(line, width=88, initial_indent="    ", subsequent_indent=" " * 12)
        for line in lines
    )
    build.__doc__ = "\n".join(
        [(build.__doc__ or "").rstrip(), "", "    Of `Training`:", *wrapped, ""]
    )
    return build
