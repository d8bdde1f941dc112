"""The evaluation of any TFF model, on clients that are datasets of batches."""

from __future__ import annotations

import collections
from typing import Any, Callable, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import check_client
from tff_pmc.aggregation.tff_utils import (
    federated_struct,
    members_by_name,
    without_autograph,
)
from tff_pmc.clients.dataset_training import (
    add_examples,
    count_averaged,
    count_examples,
    unstar,
)
from tff_pmc.models.functional import count_correct
from tff_pmc.models.positions import has_positions
from tff_pmc.models.tff_types.packed_model import split_batch


def with_client_number(dataset: tf.data.Dataset, number: int) -> tf.data.Dataset:
    """Adds a client's number in the federation to every batch of its dataset.

    Args:
        dataset: the client's batches.
        number: its number, 0 to K - 1.

    Returns:
        The dataset as an evaluation that is built with `num_clients` takes it.

    Raises:
        ValueError: the number is negative.
    """
    if number < 0:
        raise ValueError(f"a client's number must be 0 or more, got {number}")
    constant = tf.constant(number, tf.int32)
    return dataset.map(lambda *batch: (unstar(batch), constant))


def build_dataset_evaluation(
    model_fn: Callable[[], tff.learning.models.VariableModel],
    num_clients: Optional[int] = None,
    *,
    metrics: Optional[tff.Computation] = None,
) -> tff.Computation:
    """Builds the evaluation on datasets of batches of `build_federated_evaluation`."""
    with tf.Graph().as_default():
        spec_model = model_fn()
        has_classes = _has_classes(spec_model)
    weights_type = tff.learning.models.weights_type_from_model(spec_model)
    data_spec = spec_model.input_spec
    if num_clients is not None:
        data_spec = (data_spec, tf.TensorSpec([], tf.int32))
    data_type = tff.SequenceType(tff.types.tensorflow_to_type(data_spec))

    @tf.function
    def evaluate_client(model, weights, dataset):
        variables = tff.learning.models.ModelWeights.from_model(model)
        tf.nest.map_structure(lambda v, w: v.assign(w), variables, weights)
        batches, client = dataset, tf.constant(0)
        if num_clients is not None:
            client = dataset.take(1).reduce(0, lambda _, element: element[1])
            batches = dataset.map(lambda batch, _: batch)
        read, examples, correct, loss_sum = 0, 0, 0, 0.0
        for batch in iter(batches):
            output = model.forward_pass(batch, training=False)
            labels = split_batch(batch)[1]
            count = count_averaged(output, labels)
            read = add_examples(read, count_examples(output))
            examples += count
            loss = tf.cast(output.loss, tf.float32)
            loss_sum += loss * tf.cast(count, tf.float32)
            if has_classes:
                correct += _count_correct(output.predictions, labels)
        totals = collections.OrderedDict(examples=examples, loss_sum=loss_sum)
        if has_classes:
            totals["correct"] = correct
        if num_clients is not None:
            client = check_client(num_clients, client)
            # `tf.scatter_nd`, because a product would carry NaNs to other clients.
            totals = tf.nest.map_structure(
                lambda value: tf.scatter_nd([[client]], [value], [num_clients]), totals
            )
        output = collections.OrderedDict(figures=totals)
        if metrics is not None:
            output["metrics"] = model.report_local_unfinalized_metrics()
        return output

    @tff.tensorflow.computation(weights_type, data_type)
    def evaluate_locally(weights, dataset):
        return evaluate_client(model_fn(), weights, dataset)

    def combine(outputs):
        result = members_by_name(tff.federated_sum(outputs["figures"]))
        if metrics is not None:
            result["metrics"] = metrics(outputs["metrics"])
        return federated_struct(**result)

    return map_and_aggregate(evaluate_locally, combine)


def map_and_aggregate(
    client_fn: tff.Computation, combine: Callable[[Any], Any] = tff.federated_sum
) -> tff.Computation:
    """Builds `(<W@SERVER, D@CLIENTS> -> R@SERVER)` from `client_fn: (<W, D> -> L)`.

    It broadcasts the weights, applies `client_fn` at the clients, and aggregates the
    results by `combine`.
    """
    weights_type, data_type = client_fn.type_signature.parameter

    @tff.federated_computation(
        tff.FederatedType(weights_type, tff.SERVER),
        tff.FederatedType(data_type, tff.CLIENTS),
    )
    def evaluate(weights, clients):
        received = tff.federated_broadcast(weights)
        return combine(tff.federated_map(client_fn, (received, clients)))

    return evaluate


def _has_classes(model: tff.learning.models.VariableModel) -> bool:
    """Returns whether the model outputs class scores, for one label or each position.

    Only then the number of correctly classified examples is defined.
    """

    @tf.function
    def trace(batch):
        return model.forward_pass(batch, training=False).predictions

    predictions = trace.get_concrete_function(model.input_spec).structured_outputs
    _, labels = split_batch(model.input_spec)
    if not all(
        isinstance(t, (tf.Tensor, tf.TensorSpec)) for t in (predictions, labels)
    ):
        return False
    is_one_label_each = predictions.shape.rank == 2 and labels.shape.rank == 1
    has_scores = predictions.dtype.is_floating and labels.dtype.is_integer
    is_labelled = (is_one_label_each and has_scores) or has_positions(
        predictions, labels
    )
    return is_labelled and predictions.shape[-1] != 1


@without_autograph
def _count_correct(scores: Any, labels: Any) -> tf.Tensor:
    return tf.reduce_sum(count_correct(scores, labels))
