"""Weighted sums that need the cohort's totals first: two aggregations in turn."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.basis_sums import (
    build_basis_sums,
    measured_normalization,
    normalization_scales,
)
from tff_pmc.aggregation.client_message import ClientMessage
from tff_pmc.aggregation.contributions import Contribution, client_weights
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.tff_utils import (
    build_aggregation_process,
    federated_struct,
    members_by_name,
)
from tff_pmc.scores import Basis, Normalization


def build_two_stage_sums(
    update_type: tff.Type, plan: SumPlan
) -> tff.templates.AggregationProcess:
    """Builds the aggregation that gives the sums of `build_basis_sums` for any score.

    What comes in is not weighted yet: a stack of the updates of each pack (`U[n]`: of
    the structure of U, with a leading axis) and the criteria, float32 [n, m], raw or
    of declared ranges. Their totals, or maxima, go back to the clients, which
    normalize them, weight the updates and send sums: the type of `next` is

        (<state@SERVER, U[n]@CLIENTS, float32[n, m]@CLIENTS>
         -> <state@SERVER, result=..., measurements=...>)

    with state, result and measurements of `build_basis_sums`, where `scales` is 1,
    because the criteria are normalized; `totals` and `normalization` are of what came
    in. A broadcast
    that depends on an aggregate compiles to none of TFF's deployment forms.

    Args:
        update_type: the type of one update, U, a structure of float tensors.
        plan: the plan of the sums; the basis is of normalized criteria.

    Raises:
        ValueError: the plan has a `scalar_sum_factory`: the totals are summed in the
            clear.
    """
    if plan.scalar_sum_factory is not None:
        raise ValueError(
            "the two-stage form sends the totals in the clear: leave out "
            "scalar_sum_factory, or declare ranges and take one stage"
        )
    columns, method = plan.basis.num_criteria, plan.normalization.method
    # To the sums the criteria are what they are with declared ranges: in [0, 1].
    in_range = Normalization("range", ((0.0, 1.0),) * columns)
    inner = build_basis_sums(
        update_type, dataclasses.replace(plan, normalization=in_range)
    )
    specs = tff.types.type_to_tf_tensor_specs(update_type)
    stacked_type = tff.types.tensorflow_to_type(
        tf.nest.map_structure(lambda t: tf.TensorSpec([None, *t.shape], t.dtype), specs)
    )
    criteria_type = tff.TensorType(np.float32, [None, columns])
    scales_type = tff.TensorType(np.float32, [columns])

    @tff.tensorflow.computation(criteria_type)
    def total(criteria):
        return tf.reduce_sum(criteria, axis=0)

    @tff.tensorflow.computation(criteria_type)
    def largest(criteria):
        return tf.maximum(tf.reduce_max(criteria, axis=0), 0.0)  # Of no clients, 0.

    @tff.tensorflow.computation(scales_type, stacked_type, criteria_type)
    def weighted_sums(scales, updates, criteria):
        message = sum_stacked_updates(plan.basis, scales, updates, criteria)
        return message.client_result

    def next_fn(state, updates, criteria):
        totals = tff.federated_sum(tff.federated_map(total, criteria))
        maxima = tff.federated_map(largest, criteria) if method == "max" else None
        scales = normalization_scales(method, totals, maxima)
        weighted = tff.federated_map(
            weighted_sums, (tff.federated_broadcast(scales), updates, criteria)
        )
        output = inner.next(state, weighted.update, weighted.update_weight)
        measured = collections.OrderedDict(
            members_by_name(output.measurements),
            totals=totals,
            normalization=measured_normalization(plan.normalization, scales),
        )
        return tff.templates.MeasuredProcessOutput(
            output.state, output.result, federated_struct(**measured)
        )

    return build_aggregation_process(
        inner.initialize, next_fn, stacked_type, criteria_type
    )


UpdateBuffer = tuple  # Of `tf.TensorArray`s: each tensor of an update, the criteria.


def empty_update_buffer(weights: Any, num_criteria: int) -> UpdateBuffer:
    """Returns the empty list of updates, of the structure of `weights`."""
    shapes = [(t.dtype, t.shape) for t in tf.nest.flatten(weights)]
    return tuple(
        tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)
        for dtype, shape in [*shapes, (tf.float32, [num_criteria])]
    )


def append_update(waiting: UpdateBuffer, added: Contribution) -> UpdateBuffer:
    """Appends a client's update and criteria, zeros if the client is left out."""
    values = [*tf.nest.flatten(added.update), added.criteria]
    return tuple(array.write(array.size(), t) for array, t in zip(waiting, values))


def stack_updates(
    waiting: UpdateBuffer, weights: Any
) -> tff.learning.templates.ClientResult:
    """Stacks updates, like `weights` [n, ...], and their criteria, float32 [n, m]."""
    *updates, criteria = [array.stack() for array in waiting]
    return tff.learning.templates.ClientResult(
        tf.nest.pack_sequence_as(weights, updates), criteria
    )


def sum_stacked_updates(
    basis: Basis, scales: tf.Tensor, updates: Any, criteria: tf.Tensor
) -> ClientMessage:
    """Computes a pack's second message, once the scales are known, float32 [m].

    Updates and criteria are those of `stack_updates`. A criterion whose scale is 0
    becomes 0.
    """
    normalized = tf.math.divide_no_nan(criteria, scales)
    weights = client_weights(basis, normalized)
    weighted_updates = tuple(
        tf.nest.map_structure(
            lambda u, w=w: tf.tensordot(tf.cast(w, u.dtype), u, 1), updates
        )
        for w in tf.unstack(weights, num=len(basis), axis=1)
    )
    return ClientMessage(
        updates=weighted_updates,
        criteria=tf.reduce_sum(normalized, 0),
        monomials=tf.reduce_sum(weights, 0),
    )
