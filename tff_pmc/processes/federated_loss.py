"""Every client's test loss, for the record of a model without classes."""

from __future__ import annotations

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import models
from tff_pmc.models.prediction import BATCH_SIZE
from tff_pmc.processes.evaluation import type_of_examples


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

    A model says the mean loss of a batch and not that of each example, so no batch
    has the examples of two clients.

    Args:
        model: a functional model, whose loss is a mean over the batch.
        num_clients: the number of clients in the federation, K.
        batch_size: the most examples in a forward pass.
    """
    weights_type = models.weights_type(model)
    examples_type = type_of_examples(model)

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
            count = tf.math.count_nonzero(own, dtype=tf.int32)
            rows = slice(start, start + count)
            output = model.predict_on_batch(parameters, x[rows], False)
            total = model.loss(output, y[rows]) * tf.cast(count, tf.float32)
            losses = tf.tensor_scatter_nd_add(losses, [[owner]], [total])
            start += count
        return losses

    @tff.tensorflow.computation(weights_type, examples_type)
    def add_up_locally(weights, examples):
        return add_up(weights, examples)

    @tff.federated_computation(
        tff.FederatedType(weights_type, tff.SERVER),
        tff.FederatedType(examples_type, tff.CLIENTS),
    )
    def evaluate(weights, examples):
        losses = tff.federated_map(
            add_up_locally, (tff.federated_broadcast(weights), examples)
        )
        return tff.federated_sum(losses)

    return evaluate
