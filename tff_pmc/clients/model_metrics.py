"""The metrics of a model, aggregated as in TFF's algorithms.

A `tff.learning.models.VariableModel` reports its metrics (such as Keras metrics)
unfinalized, as sums over a client's examples; a `FunctionalModel` may have functions
for them. A TFF `metrics_aggregator` sums them over the clients and finalizes the sums.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import Contribution
from tff_pmc.aggregation.tff_utils import without_autograph
from tff_pmc.models.tff_types.keras_metrics import (
    check_keras_metrics,
    check_metric_names,
)
from tff_pmc.models.tff_types.keras_models import with_penalties
from tff_pmc.models.tff_types.packed_model import evaluate_initial_model, split_batch

MetricsAggregator = Callable[[Any], tff.Computation]
"""A function from a model's metric finalizers to the computation that aggregates its
metrics, such as `tff.learning.metrics.sum_then_finalize`."""


class ModelMetrics(NamedTuple):
    """The metrics of a model: their finalizers and types.

    Attributes:
        finalizers: the model's metric finalizers, as a `metrics_aggregator` takes them.
        specs: the `tf.TensorSpec`s of a client's unfinalized metrics, by name; without
            tensors if the model has no metrics.
    """

    finalizers: Any
    specs: Any

    @classmethod
    def from_model(cls, model: Any) -> ModelMetrics:
        """Returns the metrics of a functional model, or of a `model_fn`'s model."""
        with tf.Graph().as_default():
            if isinstance(model, tff.learning.models.FunctionalModel):
                finalizers = model.finalize_metrics
                unfinalized = model.initialize_metrics_state()
            else:
                variable_model = model()
                check_keras_metrics(variable_model)
                finalizers = variable_model.metric_finalizers()
                unfinalized = variable_model.report_local_unfinalized_metrics()
            specs = tf.nest.map_structure(
                lambda t: tf.TensorSpec(t.shape, t.dtype), unfinalized
            )
        return cls(finalizers, specs)


def build_aggregation(
    model: Any, aggregator: Optional[MetricsAggregator] = None, *, hidden: bool = False
) -> Optional[tff.Computation]:
    """Builds `(specs@CLIENTS -> <name=..., ...>@SERVER)` of a model's metrics.

    Returns None if the model has no metrics, or if `hidden` is set without an
    aggregator, because the default aggregator sums in the clear.
    """
    finalizers, specs = ModelMetrics.from_model(model)
    if not tf.nest.flatten(specs) or (hidden and aggregator is None):
        return None
    if isinstance(specs, Mapping):  # TFF's type below drops an empty name.
        check_metric_names(specs)
    aggregate = (aggregator or tff.learning.metrics.sum_then_finalize)(finalizers)
    specs_type = tff.types.tensorflow_to_type(specs)
    _check_names(specs_type)

    @tff.federated_computation(tff.FederatedType(specs_type, tff.CLIENTS))
    def aggregate_metrics(unfinalized):
        return aggregate(unfinalized)

    if hidden:
        try:
            tff.test.assert_not_contains_unsecure_aggregation(aggregate_metrics)
        except AssertionError as error:
            raise ValueError(
                "metrics_aggregator sums in the clear and cannot be combined with "
                "scalar_sum_factory: use "
                "tff.learning.metrics.secure_sum_then_finalize, or None"
            ) from error
    result = aggregate_metrics.type_signature.result
    result = result.member if isinstance(result, tff.FederatedType) else result
    has_names = isinstance(result, tff.StructType)
    if not has_names or None in [
        name for name, _ in tff.structure.iter_elements(result)
    ]:
        raise ValueError(
            f"metrics_aggregator must return named metrics; its result is {result}"
        )
    _check_names(result)
    return aggregate_metrics


def _check_names(metrics_type: tff.Type) -> None:
    """Checks the names in a type of metrics, at all levels."""
    if isinstance(metrics_type, tff.StructType):
        check_metric_names(tff.structure.name_list(metrics_type))
        for _, member_type in tff.structure.iter_elements(metrics_type):
            _check_names(member_type)


@without_autograph
def metrics_if_included(
    contribution: Contribution, unfinalized: Any, zero_metrics: Any
) -> Any:
    """Returns a client's metrics; `zero_metrics` if the client is excluded.

    TFF's algorithms do the same.
    """
    return tf.nest.map_structure(
        lambda value, zero: tf.where(contribution.included, value, zero),
        unfinalized,
        zero_metrics,
    )


def update_metrics(model: Any, state: Any, labels: Any, output: Any) -> Any:
    """Returns the state of a functional model's metrics after one more batch."""
    batch = tff.learning.models.BatchOutput(
        loss=model.loss(output, labels),
        predictions=output,
        num_examples=tf.shape(labels)[0],
    )
    return model.update_metrics_state(state, labels=labels, batch_output=batch)


def metrics_on(model: Any, x: Any, y: Any) -> dict[str, Any]:
    """Returns the metrics of an initial functional model on a batch, by name.

    Args:
        model: a functional model; its metrics are finalized.
        x: the inputs, [n, ...].
        y: the labels, [n] or [n, ...].

    Returns:
        A number by name; empty for a model without metrics.

    Raises:
        ValueError: the metrics have no names, or names that `check_metric_names`
            rejects. An error of a metric on these labels and outputs is passed on.
    """
    if not tf.nest.flatten(ModelMetrics.from_model(model).specs):
        return {}

    def measure(output: Any, labels: Any) -> Any:
        state = update_metrics(model, model.initialize_metrics_state(), labels, output)
        return model.finalize_metrics(state)

    (metrics,) = evaluate_initial_model(model, x, y, output_fn=measure)
    if not isinstance(metrics, Mapping):
        raise ValueError(
            "the model's metrics have no names: their finalizer must return a dict"
        )
    return dict(metrics)


def as_model_fn(model: Any) -> Any:
    """Returns a function that builds a `VariableModel`, from either kind of model."""
    if isinstance(model, tff.learning.models.FunctionalModel):
        return lambda: _FunctionalWithMetrics(model)
    return lambda: with_penalties(model())


class _FunctionalWithMetrics(tff.learning.models.VariableModel):
    """A functional model as a `VariableModel` with the model's metrics.

    `tff.learning.models.model_from_functional` drops these metrics for the loss.
    """

    def __init__(self, model: tff.learning.models.FunctionalModel) -> None:
        self._functional = model
        self._inner = tff.learning.models.model_from_functional(model)
        self._metrics = tf.nest.map_structure(
            lambda t: tf.Variable(t, trainable=False), model.initialize_metrics_state()
        )

    @property
    def trainable_variables(self) -> Any:
        return self._inner.trainable_variables

    @property
    def non_trainable_variables(self) -> Any:
        return self._inner.non_trainable_variables

    @property
    def local_variables(self) -> Any:
        return [*self._inner.local_variables, *tf.nest.flatten(self._metrics)]

    @property
    def input_spec(self) -> Any:
        return self._inner.input_spec

    @tf.function
    def predict_on_batch(self, x: Any, training: bool = True) -> Any:
        return self._inner.predict_on_batch(x, training)

    @tf.function
    def forward_pass(self, batch_input: Any, training: bool = True) -> Any:
        output = self._inner.forward_pass(batch_input, training)
        _, labels = split_batch(batch_input)
        self._assign(
            self._functional.update_metrics_state(
                self.report_local_unfinalized_metrics(),
                labels=labels,
                batch_output=output,
            )
        )
        return output

    @tf.function
    def report_local_unfinalized_metrics(self) -> collections.OrderedDict:
        return tf.nest.map_structure(lambda v: v.read_value(), self._metrics)

    def metric_finalizers(self) -> Any:
        return self._functional.finalize_metrics

    @tf.function
    def reset_metrics(self) -> None:
        self._assign(self._functional.initialize_metrics_state())

    def _assign(self, state: Any) -> None:
        tf.nest.map_structure(lambda v, t: v.assign(t), self._metrics, state)
