"""Local training of packed clients: many whole clients at one placement.

One TensorFlow loop trains the clients of a shard one after another, from
explicit weights, and adds each one's part to B running sums, so that memory does
not grow with the cohort and only sums leave the shard.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, Callable

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import models
from tff_pmc.clients import contribution, kept
from tff_pmc.clients.client_work import build_client_work
from tff_pmc.clients.own_models import OwnModels
from tff_pmc.clients.packing import element_spec
from tff_pmc.criteria import LocalClient, example_attributes


def train_locally(
    model: tff.learning.models.FunctionalModel,
    optimizer: tff.learning.optimizers.Optimizer,
    received: tff.learning.models.ModelWeights,
    x: tf.Tensor,
    y: tf.Tensor,
    *,
    local_epochs: int,
    batch_size: int,
    seed: tf.Tensor,
    class_weights: tf.Tensor | None = None,
) -> tuple[tff.learning.models.ModelWeights, tf.Tensor]:
    """Trains on one client's examples (PMC's client update).

    A plain functional model changes no non-trainable weights. A model with a function
    `forward_in_training(weights, non_trainable, x, seed) -> (output, non_trainable)`
    may, and may drop units by the seed. With `local_weights`, arrays, it has trainable
    weights that begin anew in every client's training and are never sent: they follow
    the received ones in `weights`.

    Args:
        model: gives the forward pass and the loss.
        optimizer: the client's optimizer; its state starts anew.
        received: the weights to start from.
        x: inputs `[n, ...]`.
        y: labels `[n]`.
        local_epochs: passes over the examples, E.
        batch_size: B; 0 is one batch of all examples.
        seed: int32 [2], of this client's batches, and of its dropout, in this round.
        class_weights: float32 [classes], what an example's loss is multiplied by
            before the mean over the batch, as Keras's `class_weight`; None for 1. It
            needs a model with `example_losses`.

    Returns:
        The trained weights, and the sum of the examples' losses over the last
        epoch (each batch's loss taken before its step).
    """
    local = tuple(tf.constant(w) for w in getattr(model, "local_weights", ()))
    weights = (*received.trainable, *local)
    non_trainable = received.non_trainable
    specs = tf.nest.map_structure(lambda w: tf.TensorSpec(w.shape, w.dtype), weights)
    state = optimizer.initialize(specs)
    forward, fold_in = _forward_of(model), tf.random.experimental.stateless_fold_in
    loss_of = _loss_of(model, class_weights)
    size = tf.shape(y)[0]
    step = tf.maximum(size, 1) if batch_size == 0 else tf.constant(batch_size)
    loss_sum = tf.constant(0.0)
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
                output, non_trainable = forward(
                    weights, non_trainable, batch_x, fold_in(epoch_seed, start)
                )
                loss = loss_of(output, batch_y)
            gradients = tape.gradient(loss, weights)
            state, weights = optimizer.next(state, weights, gradients)
            loss_sum += loss * tf.cast(tf.shape(batch_y)[0], tf.float32)
    trained = weights[: len(received.trainable)]
    return tff.learning.models.ModelWeights(trained, non_trainable), loss_sum


def _forward_of(model: tff.learning.models.FunctionalModel) -> Callable[..., Any]:
    """`(weights, non_trainable, x, seed) -> (output, non_trainable)` in training."""
    if hasattr(model, "forward_in_training"):
        return model.forward_in_training
    return lambda weights, non_trainable, x, seed: (
        model.predict_on_batch((weights, non_trainable), x, True),
        non_trainable,
    )


def _loss_of(
    model: tff.learning.models.FunctionalModel, class_weights: tf.Tensor | None
) -> Callable[[tf.Tensor, tf.Tensor], tf.Tensor]:
    """The mean loss of a batch."""
    if class_weights is None:
        return model.loss
    return lambda output, y: tf.reduce_mean(
        model.example_losses(output, y) * tf.gather(class_weights, y)
    )


def build_packed_client_work(
    model: tff.learning.models.FunctionalModel,
    rule: contribution.Rule,
    optimizer: tff.learning.optimizers.Optimizer,
    *,
    local_epochs: int,
    batch_size: int,
    seed: int,
    client_attributes: Sequence[str] = (),
    report_num_clients: int | None = None,
    only_counts: bool = False,
    num_weighted_classes: int = 0,
    keep_own_model: Sequence[int] = (),
    keep_updates: bool = False,
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work for shards of packed clients.

    Its type is that of `build_client_work`, with the data

        {<x=..., y=..., client=int32, attributes=<name=float32, ...>,
          example_attributes=<name=float32[n], ...>>*}@CLIENTS

    Args:
        model: the model; its `input_spec` types the packed element.
        rule: how a client enters the sums.
        optimizer: of the client.
        local_epochs: E.
        batch_size: B; 0 is full batch.
        seed: of the batches; with round and client it fixes their order.
        client_attributes: names of the attributes that travel with a client.
        report_num_clients: for simulation only: the number of clients in the
            federation. The measurements then have `criteria_by_client`, float32
            [clients, m], raw, and `excluded_by_client`, float32 [clients], 1 for a
            client left out: they show the server what it must not see in a
            deployment.
        only_counts: see `contribution.shard_output`.
        num_weighted_classes: above 0, clients receive not the weights W but
            `<weights=W, class_weights=float32[classes]>`; see `train_locally`.
        keep_own_model: for simulation: numbers of clients that do not start from the
            weights received, but from those they had themselves; see `own_models`.
        keep_updates: the result is not the sums but `clients.kept`'s: every client's
            update, so that memory grows with the shard; for simulation only.

    Returns:
        A `tff.learning.templates.ClientWorkProcess`.
    """
    spec = element_spec(
        model.input_spec, client_attributes, example_attributes(rule.criteria)
    )
    num_criteria = rule.basis.num_criteria
    received_type = models.weights_type(model)
    if num_weighted_classes:
        received_type = weighted_type(received_type, num_weighted_classes)
    own = OwnModels.of(keep_own_model)

    @tf.function
    def train_shard(state, received, shard):
        class_weights = None
        if num_weighted_classes:
            received, class_weights = received["weights"], received["class_weights"]
        own_models = state.get("memory", ())
        memory = own.nothing(own_models)
        sums = contribution.no_clients(rule.basis, received, models=not keep_updates)
        updates = kept.none(received, num_criteria) if keep_updates else ()
        by_client = tf.zeros([report_num_clients or 0, num_criteria + 1])
        round_seed = tf.stack([state["seed"], state["round"]])
        fold_in = tf.random.experimental.stateless_fold_in
        for element in iter(shard):
            x, y = element["x"], element["y"]
            start = own.start(own_models, element["client"], received)
            trained, loss = train_locally(
                model,
                optimizer,
                start,
                x,
                y,
                local_epochs=local_epochs,
                batch_size=batch_size,
                seed=fold_in(round_seed, element["client"]),
                class_weights=class_weights,
            )
            memory = own.remember(memory, element["client"], trained)
            part = contribution.measure(
                rule,
                LocalClient(
                    x,
                    y,
                    received,
                    trained,
                    element.get("attributes", {}),
                    element.get("example_attributes", {}),
                ),
            )
            sums = contribution.add_client(sums, part, tf.shape(y)[0], loss)
            if keep_updates:
                updates = kept.keep(updates, part)
            if report_num_clients is not None:
                left_out = tf.cast(tf.logical_not(part.included), tf.float32)
                by_client = tf.tensor_scatter_nd_add(
                    by_client,
                    [[element["client"]]],
                    tf.concat([part.raw, [left_out]], 0)[tf.newaxis],
                )
        result, measured = contribution.shard_output(
            sums, rule.normalization, only_counts=only_counts
        )
        if report_num_clients is not None:
            measured["criteria_by_client"] = by_client[:, :-1]
            measured["excluded_by_client"] = by_client[:, -1]
        if keep_updates:
            result = kept.stack(updates, received)
        return (result, measured, memory) if own.clients else (result, measured)

    first = tff.learning.models.ModelWeights(*model.initial_weights)
    return build_client_work(
        received_type,
        tff.SequenceType(tff.types.tensorflow_to_type(spec)),
        train_shard,
        seed=seed,
        memory=own.initial(first) if own.clients else None,
    )


def weighted_type(weights_type: tff.Type, num_classes: int) -> tff.Type:
    """What clients receive when their loss is weighted by class."""
    return tff.to_type(
        collections.OrderedDict(
            weights=weights_type,
            class_weights=tff.TensorType(np.float32, [num_classes]),
        )
    )
