"""Every client's local accuracy, as exact integer counts."""

from __future__ import annotations

import collections
import math
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
from declared_settings import AT_LEAST_1, check_value
from tff_pmc import models
from tff_pmc.aggregation.contributions import check_client
from tff_pmc.aggregation.tff_utils import check_type, federated_struct
from tff_pmc.clients import model_metrics, packing
from tff_pmc.clients.model_metrics import MetricsAggregator
from tff_pmc.models.functional import BATCH_SIZE, predicted_labels, reduce_predictions
from tff_pmc.models.tff_types.keras_checks import check_model
from tff_pmc.models.tff_types.packed_model import evaluate_initial_model, split_batch
from tff_pmc.processes.dataset_evaluation import (
    build_dataset_evaluation,
    map_and_aggregate,
)
from tff_pmc.processes.round_components import Model

_COUNT_BITS = 31  # Of a client's correct examples, an int32.


def build_federated_evaluation(
    model: Model,
    num_clients: Optional[int] = None,
    *,
    packed: Optional[bool] = None,
    batch_size: int = BATCH_SIZE,
    metrics_aggregator: Optional[MetricsAggregator] = None,
) -> tff.Computation:
    """Builds the evaluation of one model on all clients' local examples.

    *Packed*, the examples of many clients are evaluated in common batches
    (`evaluation_packs`); the type is

        (<W@SERVER, <x=X[?, ...], y=int32[?], client=int32[?]>@CLIENTS>
         -> int32[K]@SERVER)

    the number of examples that the model classifies correctly (PMC eq. 10 divides their
    sum by the number of examples). Counts, so that comparisons are exact. A model with
    metrics gives `<correct=int32[K], metrics=M>`.

    With *datasets of batches*, as of TFF's `build_fed_eval`, B being a batch,

        (<W@SERVER, {B*}@CLIENTS>
         -> <examples=int32, loss_sum=float32, correct=int32, metrics=M>@SERVER)

    where M are the model's metrics (such as those of a Keras model) by name, and
    `loss_sum` is the sum of the losses of all examples. `correct` is there where the
    model gives each example a score per class, and each has one label. With
    `num_clients` the data are `{<B, int32>*}@CLIENTS`, made by `with_client_number`,
    and the first three are of each client, `[K]`. They show the server each client's
    figures: that is for simulation only.

    Args:
        model: a functional model, or a function that makes a
            `tff.learning.models.VariableModel`. Packed, it must be a classifier whose
            output is a score per class.
        num_clients: the number of clients in the federation, K, to count for each
            client; None counts in all, without an axis.
        packed: the form of the data; by default packed for a functional model and
            datasets of batches for a `model_fn`.
        batch_size: packed only: the number of examples in a forward pass.
        metrics_aggregator: as of `Training`; by default
            `tff.learning.metrics.sum_then_finalize`.

    Raises:
        ValueError: packed data without a functional model, or of one that gives no
            score per class, or a number out of range; or the model has what no process
            takes, such as a loss that is a sum over the batch.

    Examples:
        >>> evaluate = build_federated_evaluation(model_fn)
        >>> found = evaluate(process.get_model_weights(state), datasets)
        >>> found["metrics"]["sparse_categorical_accuracy"]
    """
    if num_clients is not None:
        check_value("the argument num_clients", num_clients, int, AT_LEAST_1)
    check_value("batch_size", batch_size, int, AT_LEAST_1)
    is_functional = isinstance(model, tff.learning.models.FunctionalModel)
    if packed and not is_functional:
        raise ValueError(
            "packed examples need a tff.learning.models.FunctionalModel; with a "
            "model_fn, pass each client's dataset of batches"
        )
    check_model(model if is_functional else model())
    metrics = model_metrics.build_aggregation(model, metrics_aggregator)
    if not is_functional or packed is False:
        model_fn = model_metrics.as_model_fn(model)
        return build_dataset_evaluation(model_fn, num_clients, metrics=metrics)
    return build_correct_counts(
        model, num_clients, batch_size=batch_size, metrics=metrics
    )


def num_output_classes(model: tff.learning.models.FunctionalModel) -> int:
    """Returns how many scores a model gives an example: its number of classes.

    Raises:
        ValueError: it does not give a score for each class, of which the highest is
            the one predicted.
    """
    example = tf.nest.map_structure(
        lambda spec: np.zeros(
            [1, *(size or 1 for size in spec.shape[1:])], spec.dtype.as_numpy_dtype
        ),
        split_batch(model.input_spec)[0],
    )
    (output,) = evaluate_initial_model(model, example)
    predicted_labels(output)  # Refuses what is no such output.
    return int(output.shape[-1])


def build_correct_counts(
    model: tff.learning.models.FunctionalModel,
    num_clients: Optional[int] = None,
    *,
    batch_size: int = BATCH_SIZE,
    metrics: Optional[tff.Computation] = None,
    secure: bool = False,
) -> tff.Computation:
    """Builds the packed form of `build_federated_evaluation`, by default counts alone.

    Args:
        model: a classifier with one score for each class.
        num_clients: the number of clients in the federation, K; None for one total
            over all clients.
        batch_size: the most examples in a forward pass.
        metrics: the aggregation of the model's metrics; None for counts alone.
        secure: whether counts are a secure sum, of which the server sees the total
            alone.

    Raises:
        ValueError: the model gives no score for each class, or has several labels of
            an example.
    """
    num_output_classes(model)
    label = split_batch(model.input_spec)[1]
    if not isinstance(label, tf.TensorSpec) or label.shape.rank not in (None, 1):
        raise ValueError(
            "packed examples are judged by one label each, and the model's are "
            f"{label}: give packed=False, and each client's dataset of batches"
        )

    @tf.function(autograph=False)
    def count(weights, examples):
        x, y, client = examples["x"], examples["y"], examples["client"]
        if num_clients is None:
            client = tf.zeros_like(client)
        else:
            client = check_client(num_clients, client)

        def add(found, rows, output):
            correct, state = found
            labels = y[rows]
            hits = tf.cast(tf.equal(predicted_labels(output), labels), tf.int32)
            correct += tf.math.unsorted_segment_sum(
                hits, client[rows], num_clients or 1
            )
            if metrics is not None:
                state = model_metrics.update_metrics(model, state, labels, output)
            return correct, state

        none = tf.zeros([num_clients or 1], tf.int32)
        first = none, model.initialize_metrics_state() if metrics is not None else ()
        correct, state = reduce_predictions(
            model, weights, x, tf.shape(y)[0], first, add, batch_size=batch_size
        )
        return correct[0] if num_clients is None else correct, state

    def combine(found):
        correct = found[0]
        if secure:
            correct = tff.federated_secure_sum_bitwidth(correct, _COUNT_BITS)
        else:
            correct = tff.federated_sum(correct)
        if metrics is None:
            return correct
        return federated_struct(correct=correct, metrics=metrics(found[1]))

    return map_packs_and_aggregate(model, examples_type(model), count, combine)


def build_metrics(
    model: tff.learning.models.FunctionalModel,
    *,
    batch_size: int = BATCH_SIZE,
) -> Optional[tff.Computation]:
    """Builds the evaluation of a model's metrics alone, on `evaluation_packs`.

    The type is

        (<W@SERVER, <x=X[?, ...], y=Y[?, ...], client=int32[?]>@CLIENTS> -> M@SERVER)

    with M as of `build_federated_evaluation`: the states of each metric (its sums) are
    added over all examples of all clients, and then finalized once. It is None for a
    model without metrics.
    """
    aggregate = model_metrics.build_aggregation(model)
    if aggregate is None:
        return None

    @tf.function(autograph=False)
    def measure(weights, examples):
        x, y = examples["x"], examples["y"]

        def add(state, rows, output):
            return model_metrics.update_metrics(model, state, y[rows], output)

        first = model.initialize_metrics_state()
        size = tf.shape(y)[0]
        return reduce_predictions(
            model, weights, x, size, first, add, batch_size=batch_size
        )

    return map_packs_and_aggregate(model, examples_type(model), measure, aggregate)


def map_packs_and_aggregate(
    model: tff.learning.models.FunctionalModel,
    data_type: tff.Type,
    of_pack: Callable[[Any, Any], Any],
    combine: Callable[[Any], Any] = tff.federated_sum,
) -> tff.Computation:
    """Applies `over_clients` to a `tf.function` of model weights and a pack."""
    types = models.weights_type(model), data_type
    return map_and_aggregate(tff.tensorflow.computation(*types)(of_pack), combine)


def examples_type(model: tff.learning.models.FunctionalModel) -> tff.Type:
    """Returns the type of a pack, <x=X[?, ...], y=Y[?, ...], client>."""
    x, y = split_batch(model.input_spec)
    client = tf.TensorSpec([None], tf.int32)
    return tff.types.tensorflow_to_type(
        collections.OrderedDict(x=x, y=y, client=client)
    )


def evaluation_packs(
    examples: leaf_data.Examples,
    *,
    num_packs: int = 2,
    max_bytes: int = packing.MAX_PACK_BYTES,
) -> list[collections.OrderedDict]:
    """Cuts all clients' examples into packs for `build_federated_evaluation`.

    Args:
        examples: the examples of all clients.
        num_packs: the number of packs, of about equal size; more are made where one
            would exceed `max_bytes`.
        max_bytes: the most bytes of inputs in a pack.

    Returns:
        A list of `OrderedDict(x, y, client)` of arrays; a client may lie in two.
    """
    check_type("examples", examples, leaf_data.Examples, packing.EXAMPLES)
    check_value("num_packs", num_packs, int, AT_LEAST_1)
    num_rows = len(examples.y)
    rows_per_pack = max(1, max_bytes // max(1, examples.x.nbytes // max(1, num_rows)))
    num_packs = max(min(num_packs, num_rows), math.ceil(num_rows / rows_per_pack), 1)
    client = np.repeat(
        np.arange(len(examples.row_splits) - 1, dtype=np.int32),
        np.diff(examples.row_splits),
    )
    packs = np.array_split(np.arange(len(client)), num_packs)
    return [
        collections.OrderedDict(
            x=examples.x[rows[0] : rows[-1] + 1],
            y=examples.y[rows[0] : rows[-1] + 1],
            client=client[rows[0] : rows[-1] + 1],
        )
        for rows in packs
        if len(rows)
    ]


def build_loss_sums(
    model: tff.learning.models.FunctionalModel,
    num_clients: int,
    *,
    batch_size: int = BATCH_SIZE,
) -> tff.Computation:
    """Builds the sums of the losses of each client's examples, for simulation only.

    The data are those of `evaluation_packs`; the type is

        (<W@SERVER, <x=X[?, ...], y=Y[?, ...], client=int32[?]>@CLIENTS>
         -> float32[num_clients]@SERVER)

    A model gives the mean loss of a batch and not that of each example, so no batch
    has the examples of two clients.

    Args:
        model: a functional model, whose loss is a mean over the batch.
        num_clients: the number of clients in the federation, K.
        batch_size: the most examples in a forward pass.

    Raises:
        ValueError: the loss is not such a mean.
    """
    check_model(model)

    @tf.function
    def add_up(weights, examples):
        x, y, client = examples["x"], examples["y"], examples["client"]
        parameters = (weights.trainable, weights.non_trainable)
        size, start = tf.shape(client)[0], tf.constant(0)
        losses = tf.zeros([num_clients])
        while start < size:
            owner = client[start]
            # Packs have the clients' examples in the clients' order.
            own = tf.equal(client[start : start + batch_size], owner)
            owner = check_client(num_clients, owner)
            count = tf.math.count_nonzero(own, dtype=tf.int32)
            rows = slice(start, start + count)
            output = model.predict_on_batch(parameters, x[rows], False)
            mean = tf.cast(model.loss(output, y[rows]), tf.float32)
            total = mean * tf.cast(count, tf.float32)
            losses = tf.tensor_scatter_nd_add(losses, [[owner]], [total])
            start += count
        return losses

    return map_packs_and_aggregate(model, examples_type(model), add_up)
