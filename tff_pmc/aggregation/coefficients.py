"""The server's computation of the update under a score from the basis sums."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tff_pmc.scores import Basis


def combine(
    basis: Basis,
    coefficients: tf.Tensor,
    scales: tf.Tensor,
    monomials: tf.Tensor,
    sums: Sequence[Any],
) -> tuple[Any, tf.Tensor]:
    """The weighted mean of the clients' updates under a score.

    `sum_k p_k d_k = sum_S f_S * (sum_k r_S[k] d_k)` with
    `f_S = a_S / T_S / sum_k s_k`: no client's score is needed. Minima are of
    criteria that are normalized already, whose scales are 1.

    Args:
        basis: the monomials and minima summed, in the order of the vectors below.
        coefficients: the score's coefficients `a_S`, float32 [B]; see
            `Basis.coefficients`.
        scales: the divisor of each criterion, float32 [m]: the totals `T_i`
            in the papers' normalization.
        monomials: `sum_k r_S[k]`, float32 [B].
        sums: `sum_k r_S[k] d_k`, B structures like one update.

    Returns:
        The mean update, and `sum_k s_k` (float32). Where that is not above 0
        (all clients left out, all scores 0, or noise) the update is 0.
    """
    # Products of totals leave float32's range long before float64's.
    coefficients, scales, monomials = (
        tf.cast(value, tf.float64) for value in (coefficients, scales, monomials)
    )
    members = tf.constant(basis.membership())
    ones = tf.ones_like(scales)
    products = tf.reduce_prod(tf.where(members, scales, ones), axis=1)
    of_raw = tf.math.divide_no_nan(coefficients, products)
    score = tf.maximum(tf.reduce_sum(of_raw * monomials), 0.0)
    factors = tf.math.divide_no_nan(of_raw, score)
    mean = tf.nest.map_structure(tf.zeros_like, sums[0])
    # One after another, and only those that count: an ordering of 3 criteria needs 3
    # of 7 sums, and each product is a model of fresh memory.
    for factor, total in zip(tf.unstack(factors, num=len(sums)), sums):
        mean = tf.cond(
            tf.not_equal(factor, 0.0),
            functools.partial(_add_scaled, mean, factor, total),
            functools.partial(tf.nest.map_structure, tf.identity, mean),
        )
    return mean, tf.cast(score, tf.float32)


def _add_scaled(mean: Any, factor: tf.Tensor, total: Any) -> Any:
    return tf.nest.map_structure(
        lambda m, t: m + tf.cast(factor, t.dtype) * t, mean, total
    )
