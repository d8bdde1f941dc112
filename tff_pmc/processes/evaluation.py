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
from tff_pmc.models.prediction import BATCH_SIZE, over_batches, predicted_labels


def build_federated_evaluation(
    model: tff.learning.models.FunctionalModel,
    num_clients: Optional[int] = None,
    *,
    batch_size: int = BATCH_SIZE,
) -> tff.Computation:
    """Builds the evaluation of one model on all clients' local examples.

    The examples of many clients are evaluated in common batches; the type is

        (<W@SERVER, <x=uint8[?, ...], y=int32[?], client=int32[?]>@CLIENTS>
         -> int32[num_clients]@SERVER)

    Args:
        model: a classifier whose output is a score per class.
        num_clients: the number of clients in the federation, K, to count for each
            client; None counts in all, and the result is one int32.
        batch_size: the number of examples in a forward pass.

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
        if num_clients is None:
            client = tf.zeros_like(client)

        def add(correct, rows, output):
            hits = tf.cast(tf.equal(predicted_labels(output), y[rows]), tf.int32)
            return correct + tf.math.unsorted_segment_sum(
                hits, client[rows], num_clients or 1
            )

        none = tf.zeros([num_clients or 1], tf.int32)
        correct = over_batches(
            model, weights, x, tf.shape(y)[0], none, add, batch_size=batch_size
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
    batch_size: int = BATCH_SIZE,
) -> tff.Computation:
    """Builds the computation of a model's every prediction, for simulation only.

    The type is

        (<W@SERVER, <x=uint8[?, ...], row=int32[?]>@CLIENTS>
         -> int32[num_examples]@SERVER)

    Args:
        model: a classifier whose output is a score per class.
        num_examples: the number of examples of all clients together, N.
        batch_size: the number of examples in a forward pass.

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
        def add(predicted, rows, output):
            return tf.tensor_scatter_nd_update(
                predicted, row[rows][:, tf.newaxis], predicted_labels(output)
            )

        none = tf.zeros([num_examples], tf.int32)
        return over_batches(
            model, weights, x, tf.shape(row)[0], none, add, batch_size=batch_size
        )

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
        return tff.federated_sum(predicted)  # Each row is in one pack.

    return predict_all


def prediction_packs(examples: leaf_data.Examples, **options) -> list:
    """Cuts all clients' examples into packs for `build_federated_prediction`.

    Args:
        examples: the examples of all clients; row r of the result is their row r.
        **options: the options of `evaluation_packs`.
    """
    start, packs = 0, []
    for pack in evaluation_packs(examples, **options):
        stop = start + len(pack["y"])
        rows = np.arange(start, stop, dtype=np.int32)
        packs.append(collections.OrderedDict(x=pack["x"], row=rows))
        start = stop
    return packs


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
    num_rows = len(examples.y)
    rows_per_pack = max(1, max_bytes // max(1, examples.x.nbytes // max(1, num_rows)))
    num_packs = max(num_packs, math.ceil(num_rows / rows_per_pack))
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
