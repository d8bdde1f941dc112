"""Local training of packed clients, and the TFF client work around it.

One TensorFlow loop trains the clients of a shard one after another, from
explicit weights, and adds each one's contribution to B running sums, so that
memory does not grow with the cohort and only sums leave the shard.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import models
from tff_pmc.clients import contribution as contribution_lib
from tff_pmc.clients.packing import element_spec
from tff_pmc.criteria import Criterion, LocalClient
from tff_pmc.scores import Basis


def train_locally(
    model: tff.learning.models.FunctionalModel,
    optimizer: tff.learning.optimizers.Optimizer,
    weights: Any,
    x: tf.Tensor,
    y: tf.Tensor,
    *,
    local_epochs: int,
    batch_size: int,
    seed: tf.Tensor,
) -> tuple[Any, tf.Tensor]:
    """Trains on one client's examples (PMC's client update).

    Args:
        model: gives the forward pass and the loss.
        optimizer: the client's optimizer; its state starts anew.
        weights: the received trainable weights, a tuple of tensors.
        x: inputs `[n, ...]`.
        y: labels `[n]`.
        local_epochs: passes over the examples, E.
        batch_size: B; 0 is one batch of all examples.
        seed: int32 [2], of this client's batches in this round.

    Returns:
        The trained weights, and the sum of the examples' losses over the last
        epoch (each batch's loss taken before its step).
    """
    specs = tf.nest.map_structure(lambda w: tf.TensorSpec(w.shape, w.dtype), weights)
    state = optimizer.initialize(specs)
    size = tf.shape(y)[0]
    step = tf.maximum(size, 1) if batch_size == 0 else tf.constant(batch_size)
    loss_sum = tf.constant(0.0)
    for epoch in tf.range(local_epochs):
        if batch_size == 0:
            order = tf.range(size)
        else:
            epoch_seed = tf.random.experimental.stateless_fold_in(seed, epoch)
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
                output = model.predict_on_batch((weights, ()), batch_x, True)
                loss = model.loss(output, batch_y)
            gradients = tape.gradient(loss, weights)
            state, weights = optimizer.next(state, weights, gradients)
            loss_sum += loss * tf.cast(tf.shape(batch_y)[0], tf.float32)
    return weights, loss_sum


def build_packed_client_work(
    model: tff.learning.models.FunctionalModel,
    criteria: Sequence[Criterion],
    basis: Basis,
    optimizer: tff.learning.optimizers.Optimizer,
    *,
    local_epochs: int,
    batch_size: int,
    seed: int,
    report_num_clients: int | None = None,
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work: local training and the sums over a shard.

    With `W` the type of the model's weights and `W*B` a tuple of B of them, the
    `next` of the result has the type

        (<state=<seed=int32,round=int32>@SERVER, W@CLIENTS,
          {<x=..., y=..., client=int32>*}@CLIENTS>
         -> <state@SERVER,
             result=<update=W*B, update_weight=<criteria=float32[m],
                     monomials=float32[B]>>@CLIENTS,
             measurements=<clients=int32, excluded=int32, examples=int32,
                           loss=float32>@SERVER>)

    Args:
        model: the model; its `input_spec` types the packed element.
        criteria: the m criteria, in the order of the basis's columns.
        basis: the monomials to sum.
        optimizer: of the client.
        local_epochs: E.
        batch_size: B; 0 is full batch.
        seed: of the batches; with round and client it fixes their order.
        report_num_clients: for simulation only: the number of clients in the
            federation. The measurements then have `criteria_by_client`, float32
            [clients, m], which shows the server what it must not see in a
            deployment.

    Returns:
        A `tff.learning.templates.ClientWorkProcess`.
    """
    weights_type = models.weights_type(model)
    spec = element_spec(model.input_spec)
    state_type = tff.to_type(collections.OrderedDict(seed=_INT32, round=_INT32))

    @tf.function
    def run_shard(state, received, shard):
        sums = contribution_lib.zero_sums(received, len(basis))
        totals = tf.zeros([basis.num_criteria])
        monomials = tf.zeros([len(basis)])
        clients, excluded, examples, loss = 0, 0, 0, 0.0
        by_client = tf.zeros([report_num_clients or 0, basis.num_criteria])
        round_seed = tf.stack([state["seed"], state["round"]])
        for element in iter(shard):
            x, y = element["x"], element["y"]
            trained, client_loss = train_locally(
                model,
                optimizer,
                received.trainable,
                x,
                y,
                local_epochs=local_epochs,
                batch_size=batch_size,
                seed=tf.random.experimental.stateless_fold_in(
                    round_seed, element["client"]
                ),
            )
            after = tff.learning.models.ModelWeights(trained, received.non_trainable)
            part = contribution_lib.contribution(
                criteria, basis, LocalClient(x, y, received, after)
            )
            sums = contribution_lib.add_weighted(sums, part.update, part.monomials)
            totals += part.criteria
            monomials += part.monomials
            clients += 1
            excluded += tf.cast(tf.logical_not(part.included), tf.int32)
            examples += tf.shape(y)[0]
            loss += tf.where(part.included, client_loss, 0.0)
            if report_num_clients is not None:
                by_client = tf.tensor_scatter_nd_add(
                    by_client, [[element["client"]]], part.criteria[tf.newaxis]
                )
        result = tff.learning.templates.ClientResult(
            update=sums,
            update_weight=collections.OrderedDict(criteria=totals, monomials=monomials),
        )
        measured = collections.OrderedDict(
            clients=clients, excluded=excluded, examples=examples, loss=loss
        )
        if report_num_clients is not None:
            measured["criteria_by_client"] = by_client
        return result, measured

    @tff.tensorflow.computation(
        state_type, weights_type, tff.SequenceType(tff.types.tensorflow_to_type(spec))
    )
    def work(state, received, shard):
        return run_shard(state, received, shard)

    @tff.tensorflow.computation(state_type)
    def advance(state):
        return collections.OrderedDict(seed=state["seed"], round=state["round"] + 1)

    @tff.federated_computation
    def initialize():
        return tff.federated_value(
            collections.OrderedDict(seed=seed, round=0), tff.SERVER
        )

    @tff.federated_computation(
        tff.FederatedType(state_type, tff.SERVER),
        tff.FederatedType(weights_type, tff.CLIENTS),
        tff.FederatedType(work.type_signature.parameter[2], tff.CLIENTS),
    )
    def next_fn(state, received, shards):
        results, measured = tff.federated_map(
            work, (tff.federated_broadcast(state), received, shards)
        )
        return tff.templates.MeasuredProcessOutput(
            tff.federated_map(advance, state), results, tff.federated_sum(measured)
        )

    return tff.learning.templates.ClientWorkProcess(initialize, next_fn)


_INT32 = tff.TensorType(np.int32)
