"""Federated averaging around any TFF aggregation factory (Dual's baselines).

One round is that of `build_prioritized_fed_avg` with the sums replaced:

    broadcast w -> each client trains w_k -> the factory aggregates (w - w_k, n_k)
    -> server optimizer -> new w

The factory sees each client's update, which a median needs and a sum does not show.
So each placement must hold exactly one client; a round in which one holds more fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc import models
from tff_pmc.aggregation.baselines import WEIGHT_TYPE
from tff_pmc.clients import packing
from tff_pmc.clients.packed import train_locally
from tff_pmc.processes.finalizer import build_finalizer
from tff_pmc.processes.training import build_training
from tff_pmc.scores import Basis, single

Factory = Union[
    tff.aggregators.WeightedAggregationFactory,
    tff.aggregators.UnweightedAggregationFactory,
]


def build_baseline_fed_avg(
    model: tff.learning.models.FunctionalModel,
    factory: Factory,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    server_optimizer_fn: Optional[tff.learning.optimizers.Optimizer] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS",),
    local_epochs: int = 1,
    batch_size: int = 0,
    seed: int = 0,
    clip_norm: Optional[float] = None,
    report_num_clients: Optional[int] = None,
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of one aggregation factory.

    `next` takes packed clients, one at each placement:
    `packing.pack(examples, cohort, num_shards=len(cohort))`. The metrics are those of
    `build_prioritized_fed_avg`, with the factory's measurements as `aggregator`.

    Args:
        model: a functional model.
        factory: `aggregation.baselines.BASELINES[name]()`, or any of TFF's. The weight
            of an update is the client's number of examples, float32. A client whose
            update is not finite comes as 0 with the weight 0: an unweighted factory
            cannot tell it from an update of 0.
        client_optimizer_fn: the clients' optimizer.
        server_optimizer_fn: the server's; by default SGD with rate 1, which takes the
            factory's result as it is.
        criteria: what is measured for the record, DS among them; only DS counts.
        local_epochs: E.
        batch_size: B; 0 trains on all examples in one batch.
        seed: of the order of the batches.
        clip_norm: the L2 norm to which each client clips its update; None does not.
        report_num_clients: simulation only: the federation's size; the metrics then
            show each client's criteria.

    Returns:
        A `tff.learning.templates.LearningProcess`.

    Raises:
        ValueError: as `build_prioritized_fed_avg`; DS is not among the criteria.
        TypeError: the factory or an optimizer is not TFF's.

    Example:
        >>> process = build_baseline_fed_avg(
        ...     models.mnist_cnn(),
        ...     BASELINES["median"](),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        ... )
    """
    found = criteria_lib.resolve(criteria)
    only_size = single("DS", [criterion.code for criterion in found])
    training = build_training(
        model,
        found,
        Basis.of(len(found), [only_size]),
        client_optimizer_fn=client_optimizer_fn,
        server_optimizer_fn=server_optimizer_fn,
        packed=True,
        local_epochs=local_epochs,
        batch_size=batch_size,
        seed=seed,
        clip_norm=clip_norm,
        report_num_clients=report_num_clients,
    )
    weights_type = training.weights_type
    if isinstance(factory, tff.aggregators.UnweightedAggregationFactory):
        factory = tff.aggregators.as_weighted_aggregator(factory)
    elif not isinstance(factory, tff.aggregators.WeightedAggregationFactory):
        raise TypeError(
            f"factory must be one of tff.aggregators, got {type(factory).__name__}"
        )
    return tff.learning.templates.compose_learning_process(
        training.initial_weights,
        tff.learning.templates.build_broadcast_process(weights_type),
        _one_client_each(training.client_work),
        factory.create(weights_type, WEIGHT_TYPE),
        build_finalizer(training.server_optimizer, weights_type),
    )


def _one_client_each(
    inner: tff.learning.templates.ClientWorkProcess,
) -> tff.learning.templates.ClientWorkProcess:
    """The client work whose results are a client's update and its size.

    `inner` sends the sum over a shard's clients of `n_k d_k`, and of `n_k`. Of one
    client they give `d_k` back.
    """
    _, weights_type, data_type = inner.next.type_signature.parameter
    sums_type = inner.next.type_signature.result.result.member

    @tff.tensorflow.computation(sums_type, data_type.member)
    def divide(sums, shard):
        clients = shard.reduce(0, lambda count, _: count + 1)
        message = (
            "each placement must hold exactly one client (pack with as many shards as "
            "the cohort has clients), but one holds"
        )
        one = tf.debugging.Assert(tf.equal(clients, 1), [message, clients])
        with tf.control_dependencies([one]):
            size = tf.identity(sums.update_weight["monomials"][0])
        update = tf.nest.map_structure(
            lambda total: tf.math.divide_no_nan(total, tf.cast(size, total.dtype)),
            sums.update[0],
        )
        return tff.learning.templates.ClientResult(update, size)

    @tff.federated_computation(
        inner.next.type_signature.parameter[0], weights_type, data_type
    )
    def next_fn(state, received, shards):
        output = inner.next(state, received, shards)
        results = tff.federated_map(divide, (output.result, shards))
        return tff.templates.MeasuredProcessOutput(
            output.state, results, output.measurements
        )

    return tff.learning.templates.ClientWorkProcess(inner.initialize, next_fn)


def build_local_tuning_prediction(
    model: tff.learning.models.FunctionalModel,
    num_clients: int,
    num_examples: int,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    local_epochs: int = 1,
    batch_size: int = 0,
    seed: int = 0,
    prediction_batch_size: int = 500,
) -> tff.Computation:
    """Builds what the clients' own models answer after one more local training.

    It is the personalized baseline by Dual's text (`aggregation.baselines.personalized`
    with `form="text"`), for simulation only. The type is

        (<W@SERVER, {D*}@CLIENTS, x=uint8[?, ...]@SERVER>
         -> int32[num_clients, num_examples]@SERVER)

    with the packed clients D of `build_prioritized_fed_avg`, many or one at a
    placement. No model comes back to the server.

    Args:
        model: a functional model whose output is a score per class.
        num_clients: of the federation, K.
        num_examples: of x, N.
        client_optimizer_fn: the clients' optimizer.
        local_epochs: E of the further training.
        batch_size: B; 0 is one batch of all examples.
        seed: of the order of the batches.
        prediction_batch_size: examples in a forward pass.

    Returns:
        A computation that gives the label each client's tuned model predicts for each
        example; -1 for a client without data in the call.
    """
    weights_type = models.weights_type(model)
    spec, x_spec = packing.element_spec(model.input_spec), model.input_spec[0]
    data_type = tff.SequenceType(tff.types.tensorflow_to_type(spec))
    x_type = tff.types.tensorflow_to_type(x_spec)

    @tf.function
    def predict(weights, x):
        parameters = (weights.trainable, weights.non_trainable)
        predicted = tf.zeros([num_examples], tf.int32)
        for start in tf.range(0, num_examples, prediction_batch_size):
            rows = tf.range(
                start, tf.minimum(start + prediction_batch_size, num_examples)
            )
            output = model.predict_on_batch(parameters, tf.gather(x, rows), False)
            labels = tf.argmax(output, axis=-1, output_type=tf.int32)
            predicted = tf.tensor_scatter_nd_update(
                predicted, rows[:, tf.newaxis], labels
            )
        return predicted

    @tf.function
    def tune(received, shard, x):
        # One more than the label, so that a sum tells class 0 from no answer.
        answers = tf.zeros([num_clients, num_examples], tf.int32)
        for element in iter(shard):
            tuned, _ = train_locally(
                model,
                client_optimizer_fn,
                received,
                element["x"],
                element["y"],
                local_epochs=local_epochs,
                batch_size=batch_size,
                seed=tf.stack([seed, element["client"]]),
            )
            answers = tf.tensor_scatter_nd_add(
                answers, [[element["client"]]], predict(tuned, x)[tf.newaxis] + 1
            )
        return answers

    @tff.tensorflow.computation(weights_type, data_type, x_type)
    def tune_shard(received, shard, x):
        return tune(received, shard, x)

    @tff.tensorflow.computation(tff.TensorType(np.int32, [num_clients, num_examples]))
    def labels(answers):
        return answers - 1

    @tff.federated_computation(
        tff.FederatedType(weights_type, tff.SERVER),
        tff.FederatedType(data_type, tff.CLIENTS),
        tff.FederatedType(x_type, tff.SERVER),
    )
    def predict_all(weights, clients, x):
        sent = tff.federated_broadcast(weights), clients, tff.federated_broadcast(x)
        answers = tff.federated_sum(tff.federated_map(tune_shard, sent))
        return tff.federated_map(labels, answers)

    return predict_all
