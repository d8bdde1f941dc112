"""From sums over the basis to a candidate's update, on the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tff_pmc.scores import Basis


def combine(
    basis: Basis,
    candidate: tf.Tensor,
    totals: tf.Tensor,
    monomials: tf.Tensor,
    sums: Sequence[Any],
) -> tuple[Any, tf.Tensor]:
    """The weighted mean of the clients' updates under a candidate.

    `sum_k p_k d_k = sum_S f_S * (sum_k r_S[k] d_k)` with
    `f_S = a_S / T_S / sum_k s_k`: no client's score is needed.

    Args:
        basis: the monomials S summed, in the order of the vectors below.
        candidate: `a_S`, float32 [B]; see `Basis.vector`.
        totals: `T_i`, float32 [m].
        monomials: `sum_k r_S[k]`, float32 [B].
        sums: `sum_k r_S[k] d_k`, B structures like one update.

    Returns:
        The mean update, and `sum_k s_k` (float32). Where that is 0 (all clients
        left out, or all scores 0) the update is 0.
    """
    # Products of totals leave float32's range long before float64's.
    candidate, totals, monomials = (
        tf.cast(value, tf.float64) for value in (candidate, totals, monomials)
    )
    ones = tf.ones_like(totals)
    members = tf.constant(basis.membership())
    products = tf.reduce_prod(tf.where(members, totals, ones), axis=1)
    coefficients = tf.math.divide_no_nan(candidate, products)
    score = tf.reduce_sum(coefficients * monomials)
    factors = tf.math.divide_no_nan(coefficients, score)

    def mean(*totals):
        weights = tf.unstack(tf.cast(factors, totals[0].dtype), num=len(totals))
        return tf.add_n([weight * total for weight, total in zip(weights, totals)])

    return tf.nest.map_structure(mean, *sums), tf.cast(score, tf.float32)
