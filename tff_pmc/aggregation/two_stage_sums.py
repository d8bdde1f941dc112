"""Weighted sums that need the cohort's totals first: two aggregations per round."""

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
    """Builds the aggregation that sums the criteria, then the updates weighted by them.

    The clients' values are not weighted yet: for each pack its updates, stacked as
    `U[n]` (U with a leading axis n), and its criteria, float32 [n, m], raw or in
    declared ranges. The server broadcasts the totals or maxima of the criteria; the
    clients normalize their criteria by them, weight their updates and send the sums.
    The type of `next` is

        (<state@SERVER, U[n]@CLIENTS, float32[n, m]@CLIENTS>
         -> <state@SERVER, result=..., measurements=...>)

    State, result and measurements are those of `build_basis_sums`, with `scales` of 1,
    because the criteria are normalized; `totals` and `normalization` are those of the
    clients' values. A broadcast that depends on an aggregate compiles to none of TFF's
    deployment forms.

    Args:
        update_type: the type of one update, U, a structure of float tensors.
        plan: the plan of the sums, with the basis of the second stage.

    Raises:
        ValueError: the plan has a `scalar_sum_factory`, and the first stage sums in the
            clear.
    """
    if plan.scalar_sum_factory is not None:
        raise ValueError(
            "scalar_sum_factory cannot be combined with two stages, which send the "
            "totals in the clear: remove it, or declare ranges, with which one "
            "stage is enough"
        )
    num_criteria, method = plan.basis.num_criteria, plan.normalization.method
    # The inner sums receive normalized criteria in [0, 1], as with declared ranges.
    normalized = Normalization("range", ((0.0, 1.0),) * num_criteria)
    inner = build_basis_sums(
        update_type, dataclasses.replace(plan, normalization=normalized)
    )
    specs = tff.types.type_to_tf_tensor_specs(update_type)
    stacked_type = tff.types.tensorflow_to_type(
        tf.nest.map_structure(lambda t: tf.TensorSpec([None, *t.shape], t.dtype), specs)
    )
    criteria_type = tff.TensorType(np.float32, [None, num_criteria])
    scales_type = tff.TensorType(np.float32, [num_criteria])

    @tff.tensorflow.computation(criteria_type)
    def total(criteria):
        return tf.reduce_sum(criteria, axis=0)

    @tff.tensorflow.computation(criteria_type)
    def largest(criteria):
        return tf.maximum(tf.reduce_max(criteria, axis=0), 0.0)  # 0 without clients.

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
        measurements = collections.OrderedDict(
            members_by_name(output.measurements),
            totals=totals,
            normalization=measured_normalization(plan.normalization, scales),
        )
        return tff.templates.MeasuredProcessOutput(
            output.state, output.result, federated_struct(**measurements)
        )

    return build_aggregation_process(
        inner.initialize, next_fn, stacked_type, criteria_type
    )


UpdateBuffer = tuple  # A `tf.TensorArray` per tensor of an update, and the criteria's.


def empty_update_buffer(weights: Any, num_criteria: int) -> UpdateBuffer:
    """Returns a buffer without updates, for updates of the structure of `weights`."""
    shapes = [(t.dtype, t.shape) for t in tf.nest.flatten(weights)]
    return tuple(
        tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)
        for dtype, shape in [*shapes, (tf.float32, [num_criteria])]
    )


def append_update(buffer: UpdateBuffer, added: Contribution) -> UpdateBuffer:
    """Appends a client's update and criteria; those of an excluded client are zeros."""
    values = [*tf.nest.flatten(added.update), added.criteria]
    return tuple(array.write(array.size(), t) for array, t in zip(buffer, values))


def stack_updates(
    buffer: UpdateBuffer, weights: Any
) -> tff.learning.templates.ClientResult:
    """Stacks a buffer's updates, [n, ...], and their criteria, float32 [n, m]."""
    *updates, criteria = [array.stack() for array in buffer]
    return tff.learning.templates.ClientResult(
        tf.nest.pack_sequence_as(weights, updates), criteria
    )


def sum_stacked_updates(
    basis: Basis, scales: tf.Tensor, updates: Any, criteria: tf.Tensor
) -> ClientMessage:
    """Computes a pack's second message from the scales, float32 [m].

    `updates` and `criteria` come from `stack_updates`; the result has the form of
    `RunningSums.message`. A criterion whose scale is 0 becomes 0.
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
