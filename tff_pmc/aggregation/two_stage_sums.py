"""Weighted sums that need the cohort's totals first: two aggregations in turn."""

from __future__ import annotations

import collections
import dataclasses

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.basis_sums import build_basis_sums
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.waiting_updates import sum_of_stacked_updates
from tff_pmc.scores import Normalization


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
    because the criteria are normalized, and `totals` are of what came in. A broadcast
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

    @tff.tensorflow.computation
    def ones():
        return tf.ones([columns])

    @tff.tensorflow.computation(scales_type, stacked_type, criteria_type)
    def weighted_sums(scales, updates, criteria):
        return sum_of_stacked_updates(plan.basis, scales, updates, criteria)

    @tff.federated_computation(
        inner.initialize.type_signature.result,
        tff.FederatedType(stacked_type, tff.CLIENTS),
        tff.FederatedType(criteria_type, tff.CLIENTS),
    )
    def next_fn(state, updates, criteria):
        totals = tff.federated_sum(tff.federated_map(total, criteria))
        if method == "sum":
            scales = totals
        elif method == "max":
            scales = tff.federated_max(tff.federated_map(largest, criteria))
        else:
            scales = tff.federated_eval(ones, tff.SERVER)
        weighted = tff.federated_map(
            weighted_sums, (tff.federated_broadcast(scales), updates, criteria)
        )
        output = inner.next(state, weighted.update, weighted.update_weight)
        measured = output.measurements
        measurements = collections.OrderedDict(
            totals=totals,
            monomials=measured.monomials,
            model_sums=measured.model_sums,
            scalar_sums=measured.scalar_sums,
        )
        return tff.templates.MeasuredProcessOutput(
            output.state, output.result, tff.federated_zip(measurements)
        )

    return tff.templates.AggregationProcess(inner.initialize, next_fn)
