"""Every single prediction of a model, for simulation only."""

from __future__ import annotations

import collections

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data
from tff_pmc import models
from tff_pmc.models.prediction import BATCH_SIZE, over_batches, predicted_labels
from tff_pmc.processes.evaluation import evaluation_packs


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
