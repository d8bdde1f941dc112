"""The metrics that a model brings along, aggregated as in TFF's algorithms.

A `tff.learning.models.VariableModel` reports them (such as Keras metrics) unfinalized,
as sums over a client's examples; a `FunctionalModel` may have functions for them. A
`metrics_aggregator` of TFF's sums them over the clients and finalizes the sums.
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
"""From a model's metric finalizers to the computation that aggregates its metrics, as
`tff.learning.metrics.sum_then_finalize` is."""


class ModelMetrics(NamedTuple):
    """The metrics of a model.

    The `finalizers`, as a `metrics_aggregator` of TFF's takes them, and the `specs` of
    what a client reports, by name; without tensors if the model has no metrics.
    """

    finalizers: Any
    specs: Any

    @classmethod
    def from_model(cls, model: Any) -> ModelMetrics:
        """Returns the metrics of a functional model, or of what a `model_fn` makes."""
        with tf.Graph().as_default():
            if isinstance(model, tff.learning.models.FunctionalModel):
                finalizers = model.finalize_metrics
                found = model.initialize_metrics_state()
            else:
                made = model()
                check_keras_metrics(made)
                finalizers = made.metric_finalizers()
                found = made.report_local_unfinalized_metrics()
            specs = tf.nest.map_structure(
                lambda t: tf.TensorSpec(t.shape, t.dtype), found
            )
        return cls(finalizers, specs)


def build_aggregation(
    model: Any, aggregator: Optional[MetricsAggregator] = None, *, hidden: bool = False
) -> Optional[tff.Computation]:
    """Builds `(specs@CLIENTS -> <name=..., ...>@SERVER)` of a model's metrics.

    It is None where the model has none, and where nothing may be in the clear
    (`hidden`) and there is no aggregator: the default one sums in the clear.
    """
    finalizers, specs = ModelMetrics.from_model(model)
    if not tf.nest.flatten(specs) or (hidden and aggregator is None):
        return None
    if isinstance(specs, Mapping):  # Here an empty name is not lost yet.
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
                "metrics_aggregator sums in the clear, which scalar_sum_factory "
                "excludes: give tff.learning.metrics.secure_sum_then_finalize, or none"
            ) from error
    result = aggregate_metrics.type_signature.result
    result = result.member if isinstance(result, tff.FederatedType) else result
    named = isinstance(result, tff.StructType)
    if not named or None in [name for name, _ in tff.structure.iter_elements(result)]:
        raise ValueError(
            f"metrics_aggregator must give each metric a name; its result is {result}"
        )
    _check_names(result)
    return aggregate_metrics


def _check_names(metrics_type: tff.Type) -> None:
    """Checks the names in a type of metrics, at each of its levels."""
    if isinstance(metrics_type, tff.StructType):
        check_metric_names(tff.structure.name_list(metrics_type))
        for _, member_type in tff.structure.iter_elements(metrics_type):
            _check_names(member_type)


@without_autograph
def metrics_if_included(own: Contribution, found: Any, none: Any) -> Any:
    """Returns a client's metrics; `none` if it is left out, as in TFF's algorithms."""
    return tf.nest.map_structure(
        lambda some, no: tf.where(own.included, some, no), found, none
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
        ValueError: the metrics have no names, or such as `check_metric_names` refuses.
            What a metric raises on such labels and outputs is passed on.
    """
    if not tf.nest.flatten(ModelMetrics.from_model(model).specs):
        return {}

    def measure(output: Any, labels: Any) -> Any:
        state = update_metrics(model, model.initialize_metrics_state(), labels, output)
        return model.finalize_metrics(state)

    (found,) = evaluate_initial_model(model, x, y, output_fn=measure)
    if not isinstance(found, Mapping):
        raise ValueError("they have no names: give a dict of them")
    return dict(found)


def as_model_fn(model: Any) -> Any:
    """Wraps either kind of model as a function that makes a `VariableModel`."""
    if isinstance(model, tff.learning.models.FunctionalModel):
        return lambda: _FunctionalWithMetrics(model)
    return lambda: with_penalties(model())


class _FunctionalWithMetrics(tff.learning.models.VariableModel):
    """A functional model as a `VariableModel` with the model's metrics.

    `tff.learning.models.model_from_functional` replaces them by the loss.
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
