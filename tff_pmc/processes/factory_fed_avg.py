"""Federated averaging around any TFF aggregation factory (Dual's baselines).

One round is that of `build_prioritized_fed_avg` with the sums replaced:

    broadcast w -> each client trains w_k, and may take a step with it
    -> the factory aggregates (w - w_k, n_k) -> server optimizer -> new w

The factory sees each client's update, which a median needs and a sum does not show.
So each pack must hold exactly one client; a round in which one holds more fails.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional, Union

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation import SumOptions
from tff_pmc.aggregation.baseline_parts import WEIGHT_TYPE
from tff_pmc.aggregation.baselines import ClientStep
from tff_pmc.aggregation.contributions import averaged, update_type
from tff_pmc.clients.training_options import TrainingOptions
from tff_pmc.processes.round_parts import build_finalizer, build_round_parts
from tff_pmc.scores import Basis, single

Factory = Union[
    tff.aggregators.WeightedAggregationFactory,
    tff.aggregators.UnweightedAggregationFactory,
]


def build_factory_fed_avg(
    model: tff.learning.models.FunctionalModel,
    factory: Factory,
    *,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS",),
    client_step: Optional[ClientStep] = None,
    **training_options: Any,
) -> tff.learning.templates.LearningProcess:
    """Builds the learning process of one aggregation factory.

    `next` takes packed clients, one in each pack:
    `pack(examples, cohort, num_packs=len(cohort))`. The metrics are those of
    `build_prioritized_fed_avg`, with the factory's measurements as `aggregator`.

    Args:
        model: a functional model.
        factory: `aggregation.BASELINES[name]()`, or any of TFF's. The weight
            of an update is the client's number of examples, float32. A client whose
            update is not finite comes as 0 with the weight 0: an unweighted factory
            cannot tell it from an update of 0.
        criteria: the criteria measured for the record, DS among them; only DS counts.
        client_step: what a client does with its trained model before the factory sees
            its update, `aggregation.quantize_parameters(8)` for example; by default
            nothing.
        **training_options: the attributes of `TrainingOptions`. Of its `sums` only
            `clip_norm` can be given, because the factory takes the place of the sums.

    Returns:
        A `tff.learning.templates.LearningProcess`.

    Raises:
        ValueError: as `build_prioritized_fed_avg`; DS is not among the criteria, or
            `sums` has more than `clip_norm`.
        TypeError: the factory or an optimizer is not TFF's.

    Example:
        >>> process = build_factory_fed_avg(
        ...     models.mnist_cnn(),
        ...     BASELINES["median"](),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        ... )
    """
    found = criteria_lib.resolve(criteria)
    only_size = single("DS", [criterion.code for criterion in found])
    options = TrainingOptions(**training_options)
    if options.sums != SumOptions(clip_norm=options.sums.clip_norm):
        raise ValueError(
            "the factory takes the place of the sums: of these only clip_norm can be "
            f"given, got {options.sums}"
        )
    options = dataclasses.replace(options, packed=True)
    basis = Basis.of(len(found), [only_size])
    parts = build_round_parts(model, found, basis, options)
    weights_type = parts.weights_type
    if isinstance(factory, tff.aggregators.UnweightedAggregationFactory):
        factory = tff.aggregators.as_weighted_aggregator(factory)
    elif not isinstance(factory, tff.aggregators.WeightedAggregationFactory):
        raise TypeError(
            f"factory must be one of tff.aggregators, got {type(factory).__name__}"
        )
    return tff.learning.templates.compose_learning_process(
        parts.initial_weights,
        tff.learning.templates.build_broadcast_process(weights_type),
        _one_client_each(parts.client_work, client_step),
        factory.create(update_type(weights_type), WEIGHT_TYPE),
        build_finalizer(parts.server_optimizer, weights_type),
    )


def _one_client_each(
    inner: tff.learning.templates.ClientWorkProcess, client_step: Optional[ClientStep]
) -> tff.learning.templates.ClientWorkProcess:
    """The client work whose results are a client's update and its size.

    `inner` sends the sum over a pack's clients of `n_k d_k`, and of `n_k`. Of one
    client they give `d_k` back. One that is left out sends an update of 0 all the same.
    """
    _, weights_type, data_type = inner.next.type_signature.parameter
    sums_type = inner.next.type_signature.result.result.member

    @tff.tensorflow.computation(sums_type, data_type.member, weights_type.member)
    def divide(sums, pack, received):
        clients = pack.reduce(0, lambda count, _: count + 1)
        message = (
            "each pack must hold exactly one client (make as many packs as the cohort "
            "has clients), but one holds"
        )
        one = tf.debugging.Assert(tf.equal(clients, 1), [message, clients])
        with tf.control_dependencies([one]):
            size = tf.identity(sums.update_weight["monomials"][0])
        update = tf.nest.map_structure(
            lambda total: tf.math.divide_no_nan(total, tf.cast(size, total.dtype)),
            sums.update[0],
        )
        if client_step is not None:
            update = tf.nest.map_structure(
                lambda part: tf.where(size > 0, part, tf.zeros_like(part)),
                client_step(averaged(received), update),
            )
        return tff.learning.templates.ClientResult(update, size)

    @tff.federated_computation(
        inner.next.type_signature.parameter[0], weights_type, data_type
    )
    def next_fn(state, received, packs):
        output = inner.next(state, received, packs)
        results = tff.federated_map(divide, (output.result, packs, received))
        return tff.templates.MeasuredProcessOutput(
            output.state, results, output.measurements
        )

    return tff.learning.templates.ClientWorkProcess(inner.initialize, next_fn)
