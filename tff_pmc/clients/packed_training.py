"""Local training of packed clients: many whole clients in one pack.

One TensorFlow loop trains the clients of a pack one after another, from
explicit weights, and adds each one's contribution to B running sums, so that memory
does not grow with the cohort and only sums leave the pack.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.as_written import method_as_written
from tff_pmc.aggregation.model_sums import ModelSums
from tff_pmc.aggregation.running_sums import (
    add_contribution,
    client_result,
    measurements,
    sums_of_no_clients,
)
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.waiting_updates import (
    append_update,
    no_updates,
    stack_updates,
)
from tff_pmc.clients.client_work import build_client_work
from tff_pmc.clients.measuring import measure_contribution
from tff_pmc.clients.own_models import OwnModels
from tff_pmc.clients.packing import element_spec
from tff_pmc.clients.unpacking import PackedClients
from tff_pmc.criteria import Criterion, LocalClient, example_attributes
from tff_pmc.models import PackedModel, weights_type


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
) -> tuple[tff.learning.models.ModelWeights, tf.Tensor]:
    """Trains on one client's examples (PMC's client update).

    Args:
        model: gives the forward pass, the loss and the weights that begin anew here.
        optimizer: the client's optimizer; its state starts anew.
        received: the weights to start from.
        x: the inputs `[n, ...]`.
        y: the labels `[n]`.
        local_epochs: the number of passes over the examples, E.
        batch_size: B; 0 is one batch of all examples.
        seed: the seed, int32 [2], of this client's batches and of its dropout in this
            round.
        class_weights: the factors, float32 [classes], of the examples' losses before
            the mean over the batch, as Keras's `class_weight`; None for 1. They need a
            model with `example_losses`.

    Returns:
        The trained weights, and the sum of the examples' losses over the last
        epoch (each batch's loss taken before its step).
    """
    local = tuple(tf.constant(w) for w in model.local_weights)
    weights = (*received.trainable, *local)
    non_trainable = received.non_trainable
    specs = tf.nest.map_structure(lambda w: tf.TensorSpec(w.shape, w.dtype), weights)
    state = method_as_written(optimizer, "initialize")(specs)
    next_step = method_as_written(optimizer, "next")
    fold_in = tf.random.experimental.stateless_fold_in
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
                output, non_trainable = model.forward_in_training(
                    weights, non_trainable, batch_x, fold_in(epoch_seed, start)
                )
                if class_weights is None:
                    loss = model.loss(output, batch_y)
                else:
                    loss = model.weighted_loss(output, batch_y, class_weights)
            gradients = tape.gradient(loss, weights)
            state, weights = next_step(state, weights, gradients)
            loss_sum += loss * tf.cast(tf.shape(batch_y)[0], tf.float32)
    trained = weights[: len(received.trainable)]
    return tff.learning.models.ModelWeights(trained, non_trainable), loss_sum


def build_packed_client_work(
    model: PackedModel,
    criteria: Sequence[Criterion],
    plan: SumPlan,
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
    updates_wait: bool = False,
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work for packs of packed clients.

    Its type is that of `build_client_work`, with the data

        {<x=..., y=..., client=int32, attributes=<name=float32, ...>,
          example_attributes=<name=float32[n], ...>>*}@CLIENTS

    Args:
        model: the model; its `input_spec` types the packed element.
        criteria: the m criteria, in the order of the basis's columns.
        plan: the plan of the sums.
        optimizer: the client's optimizer.
        local_epochs: the number of passes over a client's examples, E.
        batch_size: B; 0 is full batch.
        seed: the seed of the batches; with round and client it fixes their order.
        client_attributes: the names of the attributes that travel with a client.
        report_num_clients: for simulation only: the number of clients in the
            federation. The measurements then have `criteria_by_client`, float32
            [clients, m], raw, and `excluded_by_client`, float32 [clients], 1 for a
            client left out: they show the server what it must not see in a
            deployment.
        only_counts: see `running_sums.measurements`.
        num_weighted_classes: above 0, clients receive not the weights W but
            `<weights=W, class_weights=float32[classes]>`; see `train_locally`.
        keep_own_model: for simulation: the numbers of the clients that do not start
            from the weights received, but from their own; see `own_models`.
        updates_wait: for simulation: nothing is weighted or summed yet, and the result
            is that of `waiting_updates.stack_updates`: every client's update, so that
            memory grows with the pack.

    Returns:
        A `tff.learning.templates.ClientWorkProcess`.
    """
    spec = element_spec(
        model.input_spec, client_attributes, example_attributes(criteria)
    )
    plan = plan.unweighted() if updates_wait else plan
    num_criteria = plan.basis.num_criteria
    received_type = weights_type(model)
    if num_weighted_classes:
        received_type = weighted_type(received_type, num_weighted_classes)
    own = OwnModels.of(keep_own_model)

    @tf.function
    def train_pack(state, received, pack):
        class_weights = None
        if num_weighted_classes:
            received, class_weights = received["weights"], received["class_weights"]
        own_models = state.get("memory", ())
        memory = own.nothing(own_models)
        sums = sums_of_no_clients(plan.basis)
        models = ModelSums(0 if updates_wait else len(plan.basis), received)
        waiting = no_updates(received, num_criteria) if updates_wait else ()
        by_client = tf.zeros([report_num_clients or 0, num_criteria + 1])
        round_seed = tf.stack([state["seed"], state["round"]])
        fold_in = tf.random.experimental.stateless_fold_in
        clients = PackedClients.read(pack)
        for place in tf.range(clients.count):
            element = clients[place]
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
            client = LocalClient(
                x,
                y,
                received,
                trained,
                element.get("attributes", {}),
                element.get("example_attributes", {}),
            )
            contribution = measure_contribution(criteria, plan, client)
            sums = add_contribution(sums, contribution, tf.shape(y)[0], loss)
            models.add(contribution)
            if updates_wait:
                waiting = append_update(waiting, contribution)
            if report_num_clients is not None:
                left_out = tf.cast(tf.logical_not(contribution.included), tf.float32)
                by_client = tf.tensor_scatter_nd_add(
                    by_client,
                    [[element["client"]]],
                    tf.concat([contribution.raw, [left_out]], 0)[tf.newaxis],
                )
        measured = measurements(sums, only_counts=only_counts)
        if report_num_clients is not None:
            measured["criteria_by_client"] = by_client[:, :-1]
            measured["excluded_by_client"] = by_client[:, -1]
        if updates_wait:
            result = stack_updates(waiting, received)
        else:
            result = client_result(models.read(), sums, plan.normalization)
        return (result, measured, memory) if own.clients else (result, measured)

    first = tff.learning.models.ModelWeights(*model.initial_weights)
    return build_client_work(
        received_type,
        tff.SequenceType(tff.types.tensorflow_to_type(spec)),
        train_pack,
        seed=seed,
        memory=own.initial(first) if own.clients else None,
    )


def weighted_type(model_type: tff.Type, num_classes: int) -> tff.Type:
    """The type of the weights and class weights that clients receive together."""
    return tff.to_type(
        collections.OrderedDict(
            weights=model_type,
            class_weights=tff.TensorType(np.float32, [num_classes]),
        )
    )
