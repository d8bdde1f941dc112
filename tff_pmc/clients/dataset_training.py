"""Local training of a client that is a `tf.data.Dataset` of batches.

This is the form of TFF's tutorials: one dataset for each client, batched (and
shuffled, and perhaps repeated) by the user, and any TFF model.
"""

from __future__ import annotations

import collections
import functools
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import RunningSums, weighted_updates
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.tff_utils import without_autograph
from tff_pmc.clients.client_work import (
    build_client_work,
    cached_by_function,
    criteria_row,
    measure_contribution,
    with_learning_rate,
    with_proximal_term,
)
from tff_pmc.clients.model_metrics import metrics_if_included
from tff_pmc.clients.packing import attribute_spec, check_attribute
from tff_pmc.clients.training_options import Training
from tff_pmc.criteria import Criterion
from tff_pmc.models.positions import count_labels, has_positions
from tff_pmc.models.tff_types.packed_model import split_batch

MAX_EXPECTED_EXAMPLES = 1_000_000
"""The number of a client's examples above which a warning asks whether they end."""
ModelFn = Callable[[], tff.learning.models.VariableModel]


class _DatasetClient:
    """A `criteria.LocalClient` that reads its examples on first use.

    A criterion that runs the model overwrites the model's variables.
    """

    def __init__(
        self, batches, model, local_epochs, num_examples, received, trained, attributes
    ):
        self._batches, self._model, self._epochs = batches, model, local_epochs
        self.num_examples = num_examples
        self.initial_weights = received
        self.trained_weights = trained
        self.attributes = attributes
        self.mean_on_received = cached_by_function(
            lambda batch_metric: tf.function(self._mean)(received, batch_metric)
        )
        self.mean_on_trained = cached_by_function(
            lambda batch_metric: tf.function(self._mean)(trained, batch_metric)
        )

    @property
    def steps(self) -> tf.Tensor:
        """The number of optimizer steps, one per batch of each epoch."""
        return self._epochs * self._batches.reduce(0, lambda count, *_: count + 1)

    def _mean(self, weights, batch_metric):
        variables = tff.learning.models.ModelWeights.from_model(self._model)
        tf.nest.map_structure(lambda v, w: v.assign(w), variables, weights)
        total, examples = 0.0, 0.0
        for batch in iter(self._batches):
            output = self._model.forward_pass(batch, training=False)
            labels = split_batch(batch)[1]
            count = tf.cast(count_averaged(output, labels), tf.float32)
            batch_mean = batch_metric(output, labels)
            total += tf.cast(batch_mean, tf.float32) * count
            examples += count
        return tf.math.divide_no_nan(total, examples)

    x = property(lambda self: self._examples[0])
    y = property(lambda self: self._examples[1])

    @functools.cached_property
    def _examples(self) -> tuple[Any, Any]:
        """Concatenates the inputs, and the labels, of all batches, `[n, ...]`.

        Both come from one pass, because a dataset that shuffles changes its order in
        each. Where lengths differ between batches, zeros are appended to the shorter.
        """
        pairs = self._batches.map(lambda *batch: split_batch(unstar(batch)))
        empty = tf.nest.map_structure(
            lambda spec: tf.zeros([0, *(n or 0 for n in spec.shape[1:])], spec.dtype),
            pairs.element_spec,
        )
        return pairs.reduce(
            empty,
            lambda joined, batch: tf.nest.map_structure(_concat_padded, joined, batch),
        )


@without_autograph
def _concat_padded(first: tf.Tensor, second: tf.Tensor) -> tf.Tensor:
    if None not in second.shape[1:]:
        return tf.concat([first, second], 0)
    sizes = [tf.shape(part)[1:] for part in (first, second)]
    padded = []
    for part, size in zip((first, second), sizes):
        after = tf.concat([[0], tf.maximum(*sizes) - size], 0)
        padded.append(tf.pad(part, tf.stack([tf.zeros_like(after), after], 1)))
    return tf.concat(padded, 0)


def with_attributes(
    dataset: tf.data.Dataset, attributes: Mapping[str, float]
) -> tf.data.Dataset:
    """Adds a client's attributes to every batch of its dataset.

    Args:
        dataset: the client's batches.
        attributes: the values by name, boolean or in [0, 1].

    Returns:
        The dataset as a process built with `client_attributes` takes it.

    Raises:
        ValueError: a value is not in [0, 1]; the message names the attribute.
    """
    for name, value in attributes.items():
        check_attribute(name, value)
    constants = collections.OrderedDict(
        (name, tf.constant(float(value))) for name, value in sorted(attributes.items())
    )
    return dataset.map(lambda *batch: (unstar(batch), constants))


def build_dataset_client_work(
    model_fn: ModelFn,
    optimizer: tff.learning.optimizers.Optimizer,
    criteria: Sequence[Criterion],
    plan: SumPlan,
    training: Training,
    metrics: Optional[tff.Computation] = None,
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work for clients that are datasets of batches.

    The data of a client is `{batch*}`, with client attributes `{<batch, attributes>*}`.
    See `build_client_work`.
    """
    with tf.Graph().as_default():
        spec_model = model_fn()
    data_spec = spec_model.input_spec
    client_attributes = training.client_attributes
    if client_attributes:
        data_spec = (data_spec, attribute_spec(client_attributes))

    @tf.function
    def train(model, received, dataset, round_num):
        attributes = {}
        batches = dataset
        if client_attributes:
            attributes = _first_attributes(dataset, client_attributes)
            batches = dataset.map(lambda batch, _: batch)
        variables = tff.learning.models.ModelWeights.from_model(model)
        tf.nest.map_structure(lambda v, w: v.assign(w), variables, received)
        specs = tf.nest.map_structure(
            lambda v: tf.TensorSpec(v.shape, v.dtype), variables.trainable
        )
        state = optimizer.initialize(specs)
        rate = training.client_rate(round_num)
        state = with_learning_rate(optimizer, state, rate)
        loss_sum, examples, averaged = 0.0, 0, 0
        for _ in tf.range(training.local_epochs):
            loss_sum, examples, averaged = 0.0, 0, 0
            for batch in iter(batches):
                with tf.GradientTape() as tape:
                    output = model.forward_pass(batch, training=True)
                gradients = with_proximal_term(
                    tape.gradient(output.loss, variables.trainable),
                    variables.trainable,
                    received.trainable,
                    training.prox_mu,
                )
                state, stepped = optimizer.next(state, variables.trainable, gradients)
                tf.nest.map_structure(
                    lambda v, w: v.assign(w), variables.trainable, stepped
                )
                examples = add_examples(examples, count_examples(output))
                count = count_averaged(output, split_batch(batch)[1])
                averaged += count
                loss = tf.cast(output.loss, tf.float32)
                loss_sum += loss * tf.cast(count, tf.float32)
        trained = tf.nest.map_structure(lambda v: v.read_value(), variables)
        client_metrics = ()
        if metrics is not None:  # Read before a criterion runs the model again.
            reported = model.report_local_unfinalized_metrics()
            unfinalized_metrics = tf.nest.map_structure(tf.identity, reported)
        client = _DatasetClient(
            batches=batches,
            model=model,
            local_epochs=training.local_epochs,
            num_examples=examples,
            received=received,
            trained=trained,
            attributes=attributes,
        )
        contribution = measure_contribution(criteria, plan, client, averaged)
        sums = RunningSums.zeros(plan.basis).add(contribution, averaged, loss_sum)
        if metrics is not None:
            model.reset_metrics()
            zero_metrics = model.report_local_unfinalized_metrics()
            client_metrics = metrics_if_included(
                contribution, unfinalized_metrics, zero_metrics
            )
        message = sums.message(plan, weighted_updates(contribution), client_metrics)
        output = message.outputs()
        if training.report_cohort is not None:
            output["row"] = criteria_row(contribution)
        return output

    def train_pack(state, received, dataset):
        return train(model_fn(), received, dataset, state["round"])

    return build_client_work(
        tff.learning.models.weights_type_from_model(spec_model),
        tff.SequenceType(tff.types.tensorflow_to_type(data_spec)),
        train_pack,
        seed=training.seed,  # It seeds dropout; the dataset fixes its own order.
        metrics=metrics,
        client_rate=training.client_learning_rate_fn and training.client_rate,
        codes_by_client=training.codes_shown(criteria),
        sends_rows=training.report_cohort is not None,
    )


@without_autograph
def count_examples(output: tff.learning.models.BatchOutput) -> tf.Tensor:
    """Returns the number of examples of a batch, int32, from the model's output."""
    if output.num_examples is None:  # As in TFF's algorithms.
        return tf.shape(output.predictions)[0]
    return tf.cast(output.num_examples, tf.int32)


@without_autograph
def count_averaged(output: tff.learning.models.BatchOutput, labels: Any) -> tf.Tensor:
    """Returns the number of losses of which the loss of a batch is the mean, int32.

    It is the number of positions that count, or the number of examples.
    """
    predictions = output.predictions
    if has_positions(predictions, labels):
        return count_labels(predictions, labels)
    return count_examples(output)


@without_autograph
def add_examples(examples: Any, count: tf.Tensor) -> tf.Tensor:
    """Adds to the number of examples; warns of a dataset that seems not to end."""
    total = examples + count
    just_passed = (total > MAX_EXPECTED_EXAMPLES) & (examples <= MAX_EXPECTED_EXAMPLES)
    warning = (
        f"WARNING: a client's dataset has not ended after {MAX_EXPECTED_EXAMPLES} "
        "examples: is there a .repeat() without a count?"
    )
    tf.cond(just_passed, lambda: tf.print(warning, output_stream=sys.stderr), tf.no_op)
    return total


def _first_attributes(dataset: tf.data.Dataset, names: Sequence[str]) -> Any:
    zeros = collections.OrderedDict((name, tf.constant(0.0)) for name in sorted(names))
    return dataset.take(1).reduce(zeros, lambda _, element: element[1])


def unstar(batch: tuple) -> Any:
    """Returns an element as one value, from the arguments of `Dataset.map`."""
    return batch if len(batch) > 1 else batch[0]
