"""Every client's local accuracy, as exact integer counts."""

from __future__ import annotations

import collections
import math
from typing import Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
from tff_pmc import models
from tff_pmc.clients import packing


def build_federated_evaluation(
    model: tff.learning.models.FunctionalModel,
    num_clients: Optional[int] = None,
    *,
    batch_size: int = 500,
) -> tff.Computation:
    """Builds the evaluation of one model on all clients' local examples.

    The examples of many clients are evaluated in common batches; the type is

        (<W@SERVER, <x=uint8[?, ...], y=int32[?], client=int32[?]>@CLIENTS>
         -> int32[num_clients]@SERVER)

    Args:
        model: a classifier whose output is a score per class.
        num_clients: the number of clients in the federation, K, to count for each
            client; None counts in all, and the result is one int32.
        batch_size: examples in a forward pass.

    Returns:
        A computation that gives how many examples the model classifies correctly
        (PMC eq. 10 divides their sum by the number of examples). Counts, so that
        comparisons are exact.
    """
    weights_type = models.weights_type(model)
    x_spec, y_spec = model.input_spec
    examples_type = tff.types.tensorflow_to_type(
        collections.OrderedDict(
            x=x_spec, y=y_spec, client=tf.TensorSpec([None], tf.int32)
        )
    )

    @tf.function
    def count(weights, examples):
        x, y, client = examples["x"], examples["y"], examples["client"]
        correct = tf.zeros([num_clients or 1], tf.int32)
        if num_clients is None:
            client = tf.zeros_like(client)
        parameters = (weights.trainable, weights.non_trainable)
        for start in tf.range(0, tf.shape(y)[0], batch_size):
            rows = slice(start, start + batch_size)
            output = model.predict_on_batch(parameters, x[rows], False)
            predicted = tf.argmax(output, axis=-1, output_type=tf.int32)
            hits = tf.cast(tf.equal(predicted, y[rows]), tf.int32)
            correct += tf.math.unsorted_segment_sum(
                hits, client[rows], num_clients or 1
            )
        return correct[0] if num_clients is None else correct

    @tff.tensorflow.computation(weights_type, examples_type)
    def count_locally(weights, examples):
        return count(weights, examples)

    @tff.federated_computation(
        tff.FederatedType(weights_type, tff.SERVER),
        tff.FederatedType(examples_type, tff.CLIENTS),
    )
    def evaluate(weights, examples):
        correct = tff.federated_map(
            count_locally, (tff.federated_broadcast(weights), examples)
        )
        return tff.federated_sum(correct)

    return evaluate


def build_federated_prediction(
    model: tff.learning.models.FunctionalModel,
    num_examples: int,
    *,
    batch_size: int = 500,
) -> tff.Computation:
    """Builds what shows every answer of a model, for simulation only.

    The type is

        (<W@SERVER, <x=uint8[?, ...], row=int32[?]>@CLIENTS>
         -> int32[num_examples]@SERVER)

    Args:
        model: a classifier whose output is a score per class.
        num_examples: of all clients together, N.
        batch_size: examples in a forward pass.

    Returns:
        A computation that gives the predicted label of each example, at its row.
    """
    weights_type = models.weights_type(model)
    x_spec, _ = model.input_spec
    examples_type = tff.types.tensorflow_to_type(
        collections.OrderedDict(x=x_spec, row=tf.TensorSpec([None], tf.int32))
    )

    @tf.function
    def predict(weights, x, row):
        predicted = tf.zeros([num_examples], tf.int32)
        parameters = (weights.trainable, weights.non_trainable)
        for start in tf.range(0, tf.shape(row)[0], batch_size):
            batch = slice(start, start + batch_size)
            output = model.predict_on_batch(parameters, x[batch], False)
            labels = tf.argmax(output, axis=-1, output_type=tf.int32)
            predicted = tf.tensor_scatter_nd_update(
                predicted, row[batch][:, tf.newaxis], labels
            )
        return predicted

    @tff.tensorflow.computation(weights_type, examples_type)
    def predict_locally(weights, examples):
        return predict(weights, examples["x"], examples["row"])

    @tff.federated_computation(
        tff.FederatedType(weights_type, tff.SERVER),
        tff.FederatedType(examples_type, tff.CLIENTS),
    )
    def predict_all(weights, examples):
        predicted = tff.federated_map(
            predict_locally, (tff.federated_broadcast(weights), examples)
        )
        return tff.federated_sum(predicted)  # Each row is at one placement.

    return predict_all


def prediction_shards(examples: leaf_data.Examples, **options) -> list:
    """Cuts all clients' examples into shards for `build_federated_prediction`.

    Args:
        examples: of all clients; row r of the result is their row r.
        **options: of `evaluation_shards`.
    """
    start, shards = 0, []
    for shard in evaluation_shards(examples, **options):
        stop = start + len(shard["y"])
        rows = np.arange(start, stop, dtype=np.int32)
        shards.append(collections.OrderedDict(x=shard["x"], row=rows))
        start = stop
    return shards


def evaluation_shards(
    examples: leaf_data.Examples,
    *,
    num_shards: int = 2,
    max_bytes: int = packing.MAX_SHARD_BYTES,
) -> list[collections.OrderedDict]:
    """Cuts all clients' examples into shards for `build_federated_evaluation`.

    Args:
        examples: of all clients.
        num_shards: how many shards of about equal size to make; more where one
            would exceed `max_bytes`.
        max_bytes: the most bytes of inputs in a shard.

    Returns:
        A list of `OrderedDict(x, y, client)` of arrays; a client may lie in two.
    """
    num_rows = len(examples.y)
    rows_per_shard = max(1, max_bytes // max(1, examples.x.nbytes // max(1, num_rows)))
    num_shards = max(num_shards, math.ceil(num_rows / rows_per_shard))
    client = np.repeat(
        np.arange(len(examples.row_splits) - 1, dtype=np.int32),
        np.diff(examples.row_splits),
    )
    shards = np.array_split(np.arange(len(client)), num_shards)
    return [
        collections.OrderedDict(
            x=examples.x[rows[0] : rows[-1] + 1],
            y=examples.y[rows[0] : rows[-1] + 1],
            client=client[rows[0] : rows[-1] + 1],
        )
        for rows in shards
        if len(rows)
    ]
