"""Local training of packed clients: many whole clients in one pack.

One TensorFlow loop trains the clients of a pack one after another, from explicit
weights, and adds each contribution to B running sums, so that memory does not grow with
the cohort and only sums leave the pack.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import (
    ModelSums,
    RunningSums,
    aggregated_weights,
    check_room,
)
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.tff_utils import method_with_autograph
from tff_pmc.aggregation.two_stage_sums import (
    append_update,
    empty_update_buffer,
    stack_updates,
)
from tff_pmc.clients.client_work import (
    build_client_work,
    cached_by_function,
    criteria_row,
    measure_contribution,
    with_correction,
    with_learning_rate,
    with_proximal_term,
)
from tff_pmc.clients.model_metrics import metrics_if_included
from tff_pmc.clients.pack_reader import PackedClients
from tff_pmc.clients.packing import element_spec
from tff_pmc.clients.training_options import Training
from tff_pmc.criteria import Criterion, LocalClient, example_attributes
from tff_pmc.models import PackedModel, weights_type
from tff_pmc.models.functional import mean_of_batches, reduce_range
from tff_pmc.models.positions import count_labels
from tff_pmc.models.tff_types.packed_model import predicts_positions, split_batch
from tff_pmc.settings.training_settings import LocalTraining


def build_packed_client_work(
    model: PackedModel,
    optimizer: tff.learning.optimizers.Optimizer,
    criteria: Sequence[Criterion],
    plan: SumPlan,
    training: Training,
    metrics: tff.Computation | None = None,
    *,
    num_weighted_classes: int = 0,
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work for packs of packed clients; see `build_client_work`.

    With `num_weighted_classes` the server's message is `<weights=W,
    class_weights=float32[classes]>` instead of the weights W. If the plan has two
    stages, the result is that of `stack_updates`: updates that are neither weighted nor
    summed.
    """
    if not isinstance(split_batch(model.input_spec)[1], tf.TensorSpec):
        raise ValueError(
            "packed clients have one tensor of labels, but the model has several: "
            "use packed=False, and pass each client's dataset of batches"
        )
    spec = element_spec(
        model.input_spec,
        training.client_attributes,
        example_attributes(criteria),
        epochs_by_client=training.epochs_by_client,
    )
    two_stage = plan.two_stage
    plan = plan.first_stage() if two_stage else plan
    num_criteria = plan.basis.num_criteria
    message_type = weights_type(model)
    if num_weighted_classes:
        message_type = weighted_type(message_type, num_weighted_classes)
    client_memory = training.client_memory
    has_positions = predicts_positions(model)

    @tf.function(autograph=False)
    def train_pack(state, received, pack):
        class_weights = None
        if num_weighted_classes:
            received, class_weights = received["weights"], received["class_weights"]
        memory_rows = state.get("memory", ())
        row_updates = client_memory.zero_updates(memory_rows)
        sums = RunningSums.zeros(plan.basis)
        template = aggregated_weights(received)
        model_sums = ModelSums(0 if two_stage else len(plan.basis), template)
        update_buffer = empty_update_buffer(template, num_criteria) if two_stage else ()
        metric_totals = zero_metrics = ()
        if metrics is not None:
            zero_metrics = model.initialize_metrics_state()
            metric_totals = tf.nest.map_structure(tf.zeros_like, zero_metrics)
        by_client = tf.zeros([training.report_cohort or 0, num_criteria + 1])
        rate = training.client_rate(state["round"])
        round_seed = tf.stack([state["seed"], state["round"]])
        fold_in = tf.random.experimental.stateless_fold_in
        clients = PackedClients.read(pack)

        def train_client(index, loop_vars):
            row_updates, sums, update_buffer, metric_totals, by_client = loop_vars
            element = clients[index]
            x, y, number = element["x"], element["y"], element["client"]
            size = num_labels = tf.shape(y)[0]
            if has_positions:
                num_labels = tf.math.count_nonzero(y >= 0, dtype=tf.int32)
            epochs = training.local_epochs
            if training.epochs_by_client:
                epochs = element["local_epochs"]
                # A client that did not train is excluded, as one without examples is.
                num_labels = tf.where(epochs > 0, num_labels, 0)
            start = client_memory.start(memory_rows, number, received)
            correction = client_memory.correction(memory_rows, number)
            trained, loss, client_metrics = train_locally(
                model,
                optimizer,
                start,
                x,
                y,
                training=training,
                epochs=epochs,
                seed=fold_in(round_seed, number),
                class_weights=class_weights,
                with_metrics=metrics is not None,
                learning_rate=rate,
                correction=correction,
            )
            client = LocalClient(
                x=x,
                y=y,
                initial_weights=received,
                trained_weights=trained,
                attributes=element.get("attributes", {}),
                example_attributes=element.get("example_attributes", {}),
                steps=training.num_steps(size, epochs),
                mean_on_received=cached_by_function(
                    functools.partial(mean_of_batches, model, received, x, y)
                ),
                memory=client_memory.read_row(memory_rows, number),
                num_examples=size,
                mean_on_trained=cached_by_function(
                    functools.partial(mean_of_batches, model, trained, x, y)
                ),
            )
            contribution = measure_contribution(
                criteria, plan, client, num_labels, number
            )
            row_updates = client_memory.record_client(
                row_updates,
                number,
                client,
                included=contribution.included,
                correction=correction,
                rate=rate,
            )
            sums = sums.add(contribution, num_labels, loss)
            model_sums.add(contribution)
            if metrics is not None:
                client_metrics = metrics_if_included(
                    contribution, client_metrics, zero_metrics
                )
                metric_totals = tf.nest.map_structure(
                    tf.add, metric_totals, client_metrics
                )
            if two_stage:
                update_buffer = append_update(update_buffer, contribution)
            if training.report_cohort is not None:
                row = check_room(
                    f"report_cohort={training.report_cohort}",
                    element["place"],
                    training.report_cohort,
                    "the place of a client in the cohort",
                )
                by_client = tf.tensor_scatter_nd_add(
                    by_client, [[row]], criteria_row(contribution)
                )
            return row_updates, sums, update_buffer, metric_totals, by_client

        loop_vars = row_updates, sums, update_buffer, metric_totals, by_client
        row_updates, sums, update_buffer, metric_totals, by_client = reduce_range(
            clients.count, 1, loop_vars, train_client
        )
        message = sums.message(plan, model_sums.read(), metric_totals)
        output = message.outputs()
        if two_stage:  # The message is computed when the totals are known.
            output["result"] = stack_updates(update_buffer, template)
        if training.report_cohort is not None:
            output["measurements"]["criteria_by_client"] = by_client[:, :-1]
            output["measurements"]["excluded_by_client"] = by_client[:, -1]
        if client_memory.size:
            output["memory"] = row_updates
        return output

    initial_weights = tff.learning.models.ModelWeights(*model.initial_weights)
    return build_client_work(
        message_type,
        tff.SequenceType(tff.types.tensorflow_to_type(spec)),
        train_pack,
        seed=training.seed,
        memory=(client_memory.initial(initial_weights) if client_memory.size else None),
        after_round=client_memory.after_round,
        metrics=metrics,
        client_rate=training.client_learning_rate_fn and training.client_rate,
        codes_by_client=training.codes_shown(criteria),
    )


def train_locally(
    model: PackedModel,
    optimizer: tff.learning.optimizers.Optimizer,
    received: tff.learning.models.ModelWeights,
    x: tf.Tensor,
    y: tf.Tensor,
    *,
    training: LocalTraining,
    seed: tf.Tensor,
    epochs: tf.Tensor | int | None = None,
    class_weights: tf.Tensor | None = None,
    with_metrics: bool = False,
    learning_rate: tf.Tensor | None = None,
    correction: Sequence[tf.Tensor] = (),
) -> tuple[tff.learning.models.ModelWeights, tf.Tensor, Any]:
    """Trains on one client's examples, x `[n, ...]` and y `[n]` (PMC's client update).

    Labels may also be `[n, T]`, one for each position; see `models.positions`.

    Each client starts with a fresh optimizer state and fresh local weights.
    `batch_size` 0 means one batch of all examples. `seed`, int32 [2], belongs to this
    client and round, and determines shuffling and dropout. FedProx's term covers the
    trainable weights but not the local ones; see `with_proximal_term`. Class weights,
    float32 [classes], are factors of the examples' losses before the mean over the
    batch, as Keras's `class_weight`. A `learning_rate` replaces the optimizer's, and
    `epochs`, an int32 scalar, the training's `local_epochs`: the batches of fewer
    epochs are the first ones of more.

    Returns the trained weights; the sum of the losses of the examples, or of the
    positions that count, over the last epoch (that of each batch before its step, with
    the model's penalties); and the state of the model's metrics after all batches of
    all epochs, as in TFF's algorithms, or `()`.
    """
    local = tuple(tf.constant(w) for w in model.local_weights)
    weights = (*received.trainable, *local)
    non_trainable = received.non_trainable
    specs = tf.nest.map_structure(lambda w: tf.TensorSpec(w.shape, w.dtype), weights)
    state = method_with_autograph(optimizer, "initialize")(specs)
    state = with_learning_rate(optimizer, state, learning_rate)
    next_step = method_with_autograph(optimizer, "next")
    fold_in = tf.random.experimental.stateless_fold_in
    size = tf.shape(y)[0]
    batch_size = training.batch_size
    stride = tf.maximum(size, 1) if batch_size == 0 else tf.constant(batch_size)
    metrics = model.initialize_metrics_state() if with_metrics else ()

    def train_epoch(epoch, loop_vars):
        epoch_seed = fold_in(seed, epoch)
        if batch_size == 0:
            order = tf.range(size)
        else:
            order = tf.random.experimental.stateless_shuffle(tf.range(size), epoch_seed)

        def train_batch(start, loop_vars):
            state, weights, non_trainable, metrics, loss_sum = loop_vars
            if batch_size == 0:
                batch_x, batch_y = x, y
            else:
                batch = order[start : start + stride]
                batch_x, batch_y = tf.gather(x, batch), tf.gather(y, batch)
            with tf.GradientTape() as tape:
                tape.watch(weights)
                output, non_trainable, penalty = model.forward_in_training(
                    weights, non_trainable, batch_x, fold_in(epoch_seed, start)
                )
                if class_weights is None:
                    loss = model.loss(output, batch_y)
                else:
                    loss = model.weighted_loss(output, batch_y, class_weights)
                if penalty is not None:
                    loss += tf.cast(penalty, loss.dtype)
            gradients = with_proximal_term(
                tape.gradient(loss, weights),
                weights,
                received.trainable,
                training.prox_mu,
            )
            gradients = with_correction(gradients, correction)
            state, weights = next_step(state, weights, gradients)
            count = tf.shape(batch_y)[0]
            num_labels = tf.cast(count_labels(output, batch_y), tf.float32)
            loss_sum += tf.cast(loss, tf.float32) * num_labels
            if with_metrics:
                metrics = model.update_metrics_state(
                    metrics,
                    labels=batch_y,
                    batch_output=tff.learning.models.BatchOutput(
                        loss=loss, predictions=output, num_examples=count
                    ),
                )
            return state, weights, non_trainable, metrics, loss_sum

        *loop_vars, _ = loop_vars
        initial_loop_vars = *loop_vars, tf.constant(0.0)
        return reduce_range(size, stride, initial_loop_vars, train_batch)

    loop_vars = state, weights, non_trainable, metrics, tf.constant(0.0)
    _, weights, non_trainable, metrics, loss_sum = reduce_range(
        training.local_epochs if epochs is None else epochs,
        1,
        loop_vars,
        train_epoch,
    )
    trained = weights[: len(received.trainable)]
    weights_type = tff.learning.models.ModelWeights
    return weights_type(trained, non_trainable), loss_sum, metrics


def weighted_type(model_type: tff.Type, num_classes: int) -> tff.Type:
    """Returns the type of the server's message of weights and class weights."""
    return tff.to_type(
        collections.OrderedDict(
            weights=model_type, class_weights=tff.TensorType(np.float32, [num_classes])
        )
    )
