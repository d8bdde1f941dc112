"""The one-stage aggregation of a round: sums of weighted updates and of monomials."""

from __future__ import annotations

import collections
import functools
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.client_message import ClientMessage
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.tff_utils import (
    build_aggregation_process,
    federated_struct,
    members_by_name,
)
from tff_pmc.scores import Basis, Normalization, Score


def build_basis_sums(
    update_type: tff.Type, plan: SumPlan
) -> tff.templates.AggregationProcess:
    """Builds the aggregation whose result is the sums; `combine` turns them into means.

    Clients send a `ClientMessage`. With `U` the update's type and `U*B` a tuple of B of
    them, `next` has the type

        (<state=<model_sums=..., scalar_sums=...>@SERVER,
          U*B@CLIENTS, <criteria=float32[m], monomials=float32[B]>@CLIENTS>
         -> <state@SERVER,
             result=<models=U*B, scales=float32[m], monomials=float32[B]>@SERVER,
             measurements=<totals=float32[m], monomials=float32[B], normalization=...,
                           model_sums=..., scalar_sums=...>@SERVER>)

    where the second value also has `maxima=float32[m]` for the normalization `max`.
    `scales` are the divisors that normalize the criteria; `combine` computes the mean
    update of any score from the result. `normalization` has the scales under the name
    of the method, as `<sum=float32[m]>`, or the declared ranges,
    `<range=float32[m, 2]>`.

    Args:
        update_type: the type of one update, a structure of float tensors.
        plan: the plan of the sums.

    Raises:
        ValueError: the basis has minima without declared ranges.
    """
    basis, normalization = plan.basis, plan.normalization
    basis.check_computable(normalization)
    message = ClientMessage.of_sums(
        update_type, basis.num_criteria, len(basis), normalization.method
    )
    scalars_type = tff.to_type(message._replace(maxima=()).update_weight)
    plain = tff.aggregators.SumFactory()
    model_sums = (plan.model_sum_factory or plain).create(message.updates)
    scalar_sums = (plan.scalar_sum_factory or plain).create(scalars_type)

    @tff.federated_computation
    def initialize():
        return federated_struct(
            model_sums=model_sums.initialize(), scalar_sums=scalar_sums.initialize()
        )

    def next_fn(state, updates, weights):
        models = model_sums.next(state.model_sums, updates)
        scalar_values = federated_struct(
            criteria=weights.criteria, monomials=weights.monomials
        )
        scalars = scalar_sums.next(state.scalar_sums, scalar_values)
        totals, monomials = scalars.result.criteria, scalars.result.monomials
        largest = weights.maxima if message.maxima else None
        scales = normalization_scales(normalization.method, totals, largest)
        return tff.templates.MeasuredProcessOutput(
            federated_struct(model_sums=models.state, scalar_sums=scalars.state),
            federated_struct(models=models.result, scales=scales, monomials=monomials),
            federated_struct(
                totals=totals,
                monomials=monomials,
                normalization=measured_normalization(normalization, scales),
                model_sums=models.measurements,
                scalar_sums=scalars.measurements,
            ),
        )

    weights_type = tff.to_type(message.update_weight)
    return build_aggregation_process(initialize, next_fn, message.updates, weights_type)


def normalization_scales(
    method: str, totals: tff.Value, largest: Optional[tff.Value]
) -> Any:
    """Returns the divisors that normalize the criteria, float32 [m] at the server.

    `largest` are the largest criteria per client or pack, for the normalization `max`.
    """
    if method == "sum":
        return totals
    if method == "max":
        return tff.federated_max(largest)
    # The clients have applied the ranges.
    ones = np.ones(totals.type_signature.member.shape, np.float32)
    return tff.federated_value(ones, tff.SERVER)


def measured_normalization(normalization: Normalization, scales: tff.Value) -> Any:
    """Returns the scales or ranges of the criteria at the server, under the method."""
    values = scales
    if normalization.method == "range":
        ranges = np.array(normalization.ranges, np.float32)
        values = tff.federated_value(ranges, tff.SERVER)
    return federated_struct(**{normalization.method: values})


def named_coefficients(basis: Basis, coefficients: tf.Tensor) -> Any:
    """Returns the coefficient of each sum, float32, by the sum's kind and name."""
    values = iter(tf.unstack(coefficients[: len(basis)], num=len(basis)))
    return collections.OrderedDict(
        (kind, collections.OrderedDict((name, next(values)) for name in names))
        for kind, names in basis.names.items()
    )


def build_scored_mean(
    sums: tff.templates.AggregationProcess, basis: Basis, score: Score
) -> tff.templates.AggregationProcess:
    """Builds the aggregation of updates under one score, around an aggregation of sums.

    The state is `coefficients`, then the state of `sums`. Coefficients of 0 select
    `score`, so that a state carries no score from one process to another unless
    `processes.with_score` set it: then they are that score's `a_S` for each S of the
    basis (and the powers of its step). The result is one update. The measurements
    contain `score`, the sum of the clients' scores, and the current `coefficients` by
    the names of their sums: for an ordering of two criteria
    `<products=<LD=1, DS.LD=1>>`.

    Args:
        sums: the aggregation of `build_basis_sums` or `build_two_stage_sums`.
        basis: the basis of the sums.
        score: the score that the initial state selects.

    Raises:
        ValueError: the basis does not cover the score.
    """
    default_coefficients = basis.coefficients(score)
    client_types = [t.member for t in sums.next.type_signature.parameter[1:]]
    result_type = sums.next.type_signature.result.result.member

    @tff.federated_computation
    def initialize():
        coefficients = tff.federated_value(
            np.zeros_like(default_coefficients), tff.SERVER
        )
        return federated_struct(
            coefficients=coefficients, **members_by_name(sums.initialize())
        )

    @tff.tensorflow.computation(
        tff.TensorType(np.float32, default_coefficients.shape), result_type
    )
    def mean_update(state_coefficients, sums_result):
        coefficients = tf.where(
            tf.reduce_any(tf.not_equal(state_coefficients, 0)),
            state_coefficients,
            default_coefficients,
        )
        update, score = combine(
            basis,
            coefficients,
            sums_result["scales"],
            sums_result["monomials"],
            sums_result["models"],
        )
        return update, score, named_coefficients(basis, coefficients)

    def next_fn(state, updates, weights):
        sums_state = members_by_name(state)
        coefficients = sums_state.pop("coefficients")
        output = sums.next(federated_struct(**sums_state), updates, weights)
        sums_result = tff.federated_map(mean_update, (coefficients, output.result))
        update, score, current_coefficients = sums_result
        measurements = members_by_name(output.measurements)
        totals, monomials = measurements.pop("totals"), measurements.pop("monomials")
        return tff.templates.MeasuredProcessOutput(
            federated_struct(
                coefficients=coefficients, **members_by_name(output.state)
            ),
            update,
            federated_struct(
                totals=totals,
                monomials=monomials,
                score=score,
                coefficients=current_coefficients,
                **measurements,
            ),
        )

    return build_aggregation_process(initialize, next_fn, *client_types)


with_score_in_force = build_scored_mean
"""The earlier name of `build_scored_mean`, for one more release."""


def combine(
    basis: Basis,
    coefficients: tf.Tensor,
    scales: tf.Tensor,
    monomials: tf.Tensor,
    sums: Sequence[Any],
) -> tuple[Any, tf.Tensor]:
    """Returns the weighted mean of the clients' updates under a score.

    `sum_k p_k d_k = sum_S f_S * (sum_k r_S[k] d_k)` with
    `f_S = a_S / T_S / sum_k s_k`: no client's score is needed. Minima are taken of
    normalized criteria, whose scales are 1.

    Args:
        basis: the monomials and minima that were summed, in the order of the vectors
            below.
        coefficients: the score's coefficients `a_S`, float32 [B]; if the basis scales
            the step, followed by the powers of the step, [B + m]; see
            `Basis.coefficients`.
        scales: the divisor of each criterion, float32 [m]: the totals `T_i` in the
            papers' normalization.
        monomials: `sum_k r_S[k]`, float32 [B].
        sums: `sum_k r_S[k] d_k`, B structures like one update.

    Returns:
        The mean update, times the score's step length if it has one, and `sum_k s_k`
        (float32). If that is not above 0 (all clients excluded, all scores 0, or
        noise), or the length is not finite, the update is 0.
    """
    # Products of totals exceed float32's range long before float64's.
    coefficients, scales, monomials = (
        tf.cast(value, tf.float64) for value in (coefficients, scales, monomials)
    )
    powers = coefficients[len(basis) :]
    coefficients = coefficients[: len(basis)]
    weights, score = weights_of_sums(basis, coefficients, scales, monomials)
    mean = tf.nest.map_structure(tf.zeros_like, sums[0])
    # Adds one sum after another and skips those with factor 0: an ordering of 3
    # criteria uses 3 of 7 sums, and each product allocates a model.
    for weight, total in zip(tf.unstack(weights, num=len(sums)), sums):
        mean = tf.cond(
            tf.not_equal(weight, 0.0),
            functools.partial(_add_scaled, mean, weight, total),
            functools.partial(tf.nest.map_structure, tf.identity, mean),
        )
    if basis.scales_step:
        ones = tf.ones_like(scales)
        raised = tf.where(tf.equal(powers, 0.0), ones, tf.pow(scales, powers))
        mean = _times(mean, tf.reduce_prod(raised))
    return mean, tf.cast(score, tf.float32)


def weights_of_sums(
    basis: Basis, coefficients: tf.Tensor, scales: tf.Tensor, monomials: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the weight of each sum in the mean update, and the sum of the scores.

    The weight of the sum S is `f_S = a_S / T_S / sum_k s_k`, [B], where `T_S` is the
    product of the scales in S. So client k has the weight `p_k = sum_S f_S r_S[k]` of
    PMC's equation 5. The arguments are those of `combine`, without the powers.
    """
    members = tf.constant(basis.membership())
    products = tf.reduce_prod(tf.where(members, scales, tf.ones_like(scales)), axis=1)
    raw_coefficients = tf.math.divide_no_nan(coefficients, products)
    score = tf.maximum(tf.reduce_sum(raw_coefficients * monomials), 0.0)
    return tf.math.divide_no_nan(raw_coefficients, score), score


def _times(mean: Any, length: tf.Tensor) -> Any:
    """Multiplies the trainable weights of a mean update by a step length."""
    length = tf.where(tf.math.is_finite(length), length, 0.0)
    if isinstance(mean, tff.learning.models.ModelWeights):
        trainable = _times(mean.trainable, length)
        return tff.learning.models.ModelWeights(trainable, mean.non_trainable)
    return tf.nest.map_structure(lambda m: m * tf.cast(length, m.dtype), mean)


def _add_scaled(mean: Any, factor: tf.Tensor, total: Any) -> Any:
    return tf.nest.map_structure(
        lambda m, t: m + tf.cast(factor, t.dtype) * t, mean, total
    )
