"""Local training of packed clients: many whole clients in one pack.

One TensorFlow loop trains the clients of a pack one after another, from
explicit weights, and adds each one's contribution to B running sums, so that memory
does not grow with the cohort and only sums leave the pack.
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
    averaged,
    check_room,
)
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.tff_utils import method_with_autograph
from tff_pmc.aggregation.two_stage_sums import append_update, no_updates, stack_updates
from tff_pmc.clients.client_work import (
    build_client_work,
    measure_contribution,
    once_each,
    row_of,
    with_learning_rate,
    with_proximal_term,
)
from tff_pmc.clients.model_metrics import metrics_of_included
from tff_pmc.clients.pack_reader import PackedClients
from tff_pmc.clients.packing import element_spec
from tff_pmc.clients.training_options import Training
from tff_pmc.criteria import Criterion, LocalClient, example_attributes
from tff_pmc.models import PackedModel, weights_type
from tff_pmc.models.functional import mean_of_batches, reduce_range
from tff_pmc.models.tff_types.packed_model import split_batch
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

    With `num_weighted_classes` clients receive not the weights W but `<weights=W,
    class_weights=float32[classes]>`. Where the plan has two stages nothing is weighted
    or summed yet, and the result is that of `stack_updates`.
    """
    if not isinstance(split_batch(model.input_spec)[1], tf.TensorSpec):
        raise ValueError(
            "packed clients have one tensor of labels, and the model's are several: "
            "give packed=False, and each client's dataset of batches"
        )
    spec = element_spec(
        model.input_spec, training.client_attributes, example_attributes(criteria)
    )
    updates_wait = plan.two_stage
    plan = plan.unweighted() if updates_wait else plan
    num_criteria = plan.basis.num_criteria
    received_type = weights_type(model)
    if num_weighted_classes:
        received_type = weighted_type(received_type, num_weighted_classes)
    kept = training.remembered

    @tf.function(autograph=False)
    def train_pack(state, received, pack):
        class_weights = None
        if num_weighted_classes:
            received, class_weights = received["weights"], received["class_weights"]
        remembered = state.get("memory", ())
        memory = kept.nothing(remembered)
        sums = RunningSums.of_nobody(plan.basis)
        like = averaged(received)
        models = ModelSums(0 if updates_wait else len(plan.basis), like)
        waiting = no_updates(like, num_criteria) if updates_wait else ()
        own_metrics = no_metrics = ()
        if metrics is not None:
            no_metrics = model.initialize_metrics_state()
            own_metrics = tf.nest.map_structure(tf.zeros_like, no_metrics)
        by_client = tf.zeros([training.report_cohort or 0, num_criteria + 1])
        rate = training.client_rate(state["round"])
        round_seed = tf.stack([state["seed"], state["round"]])
        fold_in = tf.random.experimental.stateless_fold_in
        clients = PackedClients.read(pack)

        def train_client(place, carried):
            memory, sums, waiting, own_metrics, by_client = carried
            element = clients[place]
            x, y, number = element["x"], element["y"], element["client"]
            size = tf.shape(y)[0]
            start = kept.start(remembered, number, received)
            trained, loss, found = train_locally(
                model,
                optimizer,
                start,
                x,
                y,
                training=training,
                seed=fold_in(round_seed, number),
                class_weights=class_weights,
                with_metrics=metrics is not None,
                learning_rate=rate,
            )
            client = LocalClient(
                x=x,
                y=y,
                initial_weights=received,
                trained_weights=trained,
                attributes=element.get("attributes", {}),
                example_attributes=element.get("example_attributes", {}),
                steps=training.num_steps(size),
                mean_on_received=once_each(
                    functools.partial(mean_of_batches, model, received, x, y)
                ),
                memory=kept.of_client(remembered, number),
                num_examples=size,
                mean_on_trained=once_each(
                    functools.partial(mean_of_batches, model, trained, x, y)
                ),
            )
            memory = kept.remember(memory, number, client)
            contribution = measure_contribution(criteria, plan, client, size, number)
            sums = sums.plus(contribution, size, loss)
            models.add(contribution)
            if metrics is not None:
                found = metrics_of_included(contribution, found, no_metrics)
                own_metrics = tf.nest.map_structure(tf.add, own_metrics, found)
            if updates_wait:
                waiting = append_update(waiting, contribution)
            if training.report_cohort is not None:
                row = check_room(
                    f"report_cohort={training.report_cohort}",
                    element["place"],
                    training.report_cohort,
                    "the place of a client in the cohort",
                )
                by_client = tf.tensor_scatter_nd_add(
                    by_client, [[row]], row_of(contribution)
                )
            return memory, sums, waiting, own_metrics, by_client

        carried = memory, sums, waiting, own_metrics, by_client
        memory, sums, waiting, own_metrics, by_client = reduce_range(
            clients.count, 1, carried, train_client
        )
        message = sums.message(plan, models.read(), own_metrics)
        output = message.outputs()
        if updates_wait:  # The message is computed when the totals are known.
            output["result"] = stack_updates(waiting, like)
        if training.report_cohort is not None:
            output["measurements"]["criteria_by_client"] = by_client[:, :-1]
            output["measurements"]["excluded_by_client"] = by_client[:, -1]
        if kept.size:
            output["memory"] = memory
        return output

    first = tff.learning.models.ModelWeights(*model.initial_weights)
    return build_client_work(
        received_type,
        tff.SequenceType(tff.types.tensorflow_to_type(spec)),
        train_pack,
        seed=training.seed,
        memory=kept.initial(first) if kept.size else None,
        settled=kept.settled,
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
    class_weights: tf.Tensor | None = None,
    with_metrics: bool = False,
    learning_rate: tf.Tensor | None = None,
) -> tuple[tff.learning.models.ModelWeights, tf.Tensor, Any]:
    """Trains on one client's examples, x `[n, ...]` and y `[n]` (PMC's client update).

    The optimizer's state and the model's local weights start anew; B = 0 is one batch
    of all examples. The seed, int32 [2], is the client's in this round, of the batches
    and the dropout. FedProx's term is of the trainable weights without the local ones;
    see `with_proximal_term`. Class weights, float32 [classes], are factors of the
    examples' losses before the mean over the batch, as Keras's `class_weight`. A
    `learning_rate` is in the place of the optimizer's.

    Gives the trained weights; the sum of the examples' losses over the last epoch (each
    batch's taken before its step, with the model's penalties); and the state of the
    model's metrics after all batches of all epochs, as in TFF's algorithms, or `()`.
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
    step = tf.maximum(size, 1) if batch_size == 0 else tf.constant(batch_size)
    metrics = model.initialize_metrics_state() if with_metrics else ()

    def train_epoch(epoch, carried):
        epoch_seed = fold_in(seed, epoch)
        if batch_size == 0:
            order = tf.range(size)
        else:
            order = tf.random.experimental.stateless_shuffle(tf.range(size), epoch_seed)

        def train_batch(start, carried):
            state, weights, non_trainable, metrics, loss_sum = carried
            if batch_size == 0:
                batch_x, batch_y = x, y
            else:
                batch = order[start : start + step]
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
            state, weights = next_step(state, weights, gradients)
            count = tf.shape(batch_y)[0]
            loss_sum += tf.cast(loss, tf.float32) * tf.cast(count, tf.float32)
            if with_metrics:
                metrics = model.update_metrics_state(
                    metrics,
                    labels=batch_y,
                    batch_output=tff.learning.models.BatchOutput(
                        loss=loss, predictions=output, num_examples=count
                    ),
                )
            return state, weights, non_trainable, metrics, loss_sum

        *carried, _ = carried
        first = *carried, tf.constant(0.0)
        return reduce_range(size, step, first, train_batch)

    carried = state, weights, non_trainable, metrics, tf.constant(0.0)
    _, weights, non_trainable, metrics, loss_sum = reduce_range(
        training.local_epochs, 1, carried, train_epoch
    )
    trained = weights[: len(received.trainable)]
    weights_type = tff.learning.models.ModelWeights
    return weights_type(trained, non_trainable), loss_sum, metrics


def weighted_type(model_type: tff.Type, num_classes: int) -> tff.Type:
    """Returns the type of the weights and class weights that clients receive."""
    return tff.to_type(
        collections.OrderedDict(
            weights=model_type, class_weights=tff.TensorType(np.float32, [num_classes])
        )
    )
