"""Sums whose weights need the totals first: two aggregations, one after the other."""

from __future__ import annotations

import collections
from typing import Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.basis_sums import SumFactory, build_basis_sums
from tff_pmc.clients import kept
from tff_pmc.scores import SUM, Basis, Normalization


def build_two_stage_sums(
    update_type: tff.Type,
    basis: Basis,
    *,
    normalization: Normalization = SUM,
    model_sum_factory: Optional[SumFactory] = None,
) -> tff.templates.AggregationProcess:
    """Builds what gives the sums of `build_basis_sums` for any score.

    What comes in is not weighted yet: a stack of updates at each placement (`U[n]`: of
    the structure of U, with a leading axis) and the criteria, float32 [n, m], raw or
    of declared ranges. Their totals, or maxima, go back to the placements, which
    normalize and weigh, and then send sums: the type of `next` is

        (<state@SERVER, U[n]@CLIENTS, float32[n, m]@CLIENTS>
         -> <state@SERVER, result=..., measurements=...>)

    with state, result and measurements of `build_basis_sums`, where `scales` is 1,
    because the criteria are normalized, and `totals` are of what came in. A broadcast
    that depends on an aggregate compiles to none of TFF's deployment forms.

    Args:
        update_type: the type of one update, U, a structure of float tensors.
        basis: the monomials and minima of normalized criteria.
        normalization: of the criteria.
        model_sum_factory: sums the weighted updates; plain sums by default.
    """
    columns, method = basis.num_criteria, normalization.method
    inner = build_basis_sums(
        update_type,
        basis,
        # To the sums the criteria are what they are with declared ranges: in [0, 1].
        normalization=Normalization("range", ((0.0, 1.0),) * columns),
        model_sum_factory=model_sum_factory,
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
    def weigh(scales, updates, criteria):
        return kept.weigh(basis, scales, updates, criteria)

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
            weigh, (tff.federated_broadcast(scales), updates, criteria)
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
