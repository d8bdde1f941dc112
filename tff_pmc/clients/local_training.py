"""The training of one client on its examples, in TensorFlow (PMC's client update)."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.building import method_without_autograph
from tff_pmc.models import PackedModel


def train_locally(
    model: PackedModel,
    optimizer: tff.learning.optimizers.Optimizer,
    received: tff.learning.models.ModelWeights,
    x: tf.Tensor,
    y: tf.Tensor,
    *,
    local_epochs: int,
    batch_size: int,
    seed: tf.Tensor,
    class_weights: tf.Tensor | None = None,
    with_metrics: bool = False,
) -> tuple[tff.learning.models.ModelWeights, tf.Tensor, Any]:
    """Trains on one client's examples, x `[n, ...]` and y `[n]` (PMC's client update).

    The optimizer's state and the model's local weights start anew, and B = 0 is one
    batch of all examples. The seed, int32 [2], is of this client's batches and dropout
    in this round. Class weights, float32 [classes], are factors of the examples' losses
    before the mean over the batch, as Keras's `class_weight`; they need
    `example_losses`.

    Returns:
        The trained weights; the sum of the examples' losses over the last epoch (each
        batch's loss taken before its step); and the state of the model's metrics after
        all batches of all epochs, as TFF's algorithms have it, or `()`.
    """
    local = tuple(tf.constant(w) for w in model.local_weights)
    weights = (*received.trainable, *local)
    non_trainable = received.non_trainable
    specs = tf.nest.map_structure(lambda w: tf.TensorSpec(w.shape, w.dtype), weights)
    state = method_without_autograph(optimizer, "initialize")(specs)
    next_step = method_without_autograph(optimizer, "next")
    fold_in = tf.random.experimental.stateless_fold_in
    size = tf.shape(y)[0]
    step = tf.maximum(size, 1) if batch_size == 0 else tf.constant(batch_size)
    loss_sum = tf.constant(0.0)
    metrics = model.initialize_metrics_state() if with_metrics else ()
    for epoch in tf.range(local_epochs):
        epoch_seed = fold_in(seed, epoch)
        if batch_size == 0:
            order = tf.range(size)
        else:
            order = tf.random.experimental.stateless_shuffle(tf.range(size), epoch_seed)
        loss_sum = tf.constant(0.0)
        for start in tf.range(0, size, step):
            if batch_size == 0:
                batch_x, batch_y = x, y
            else:
                batch = order[start : start + step]
                batch_x, batch_y = tf.gather(x, batch), tf.gather(y, batch)
            with tf.GradientTape() as tape:
                tape.watch(weights)
                output, non_trainable = model.forward_in_training(
                    weights, non_trainable, batch_x, fold_in(epoch_seed, start)
                )
                if class_weights is None:
                    loss = model.loss(output, batch_y)
                else:
                    loss = model.weighted_loss(output, batch_y, class_weights)
            gradients = tape.gradient(loss, weights)
            state, weights = next_step(state, weights, gradients)
            count = tf.shape(batch_y)[0]
            loss_sum += loss * tf.cast(count, tf.float32)
            if with_metrics:
                metrics = model.update_metrics_state(
                    metrics,
                    labels=batch_y,
                    batch_output=tff.learning.models.BatchOutput(
                        loss=loss, predictions=output, num_examples=count
                    ),
                )
    trained = weights[: len(received.trainable)]
    weights_type = tff.learning.models.ModelWeights
    return weights_type(trained, non_trainable), loss_sum, metrics
