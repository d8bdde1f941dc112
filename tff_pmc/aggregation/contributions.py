"""The contribution of one client to the round's sums."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tff_pmc.aggregation.building import without_autograph
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.scores import Basis


class Contribution(NamedTuple):
    """One client's contribution; all but `raw` is zero when the client is left out.

    Attributes:
        raw: the raw criteria as measured, float32 [m].
        criteria: the same, after a normalization that the client applies.
        monomials: `r_S` for each sum of the basis, float32 [B].
        update: received minus trained weights: TFF's sign, a server optimizer's
            gradient.
        included: bool; not where it is not finite, or the update is too large.
    """

    raw: tf.Tensor
    criteria: tf.Tensor
    monomials: tf.Tensor
    update: Any
    included: tf.Tensor


@without_autograph
def contribution_of(plan: SumPlan, raw: tf.Tensor, update: Any) -> Contribution:
    """A client's contribution, from its raw criteria [m] and its update, in its graph.

    A client whose update or criteria are not finite, or whose update has a norm above
    the plan's `max_update_norm`, contributes zeros: one diverged client must not
    destroy the round.
    """
    values = raw
    if plan.normalization.method == "range":
        low, high = (
            tf.constant(x, tf.float32) for x in zip(*plan.normalization.ranges)
        )
        values = tf.clip_by_value((raw - low) / (high - low), 0.0, 1.0)
    monomials = basis_values(plan.basis, values)
    if plan.clip_norm is not None:
        update = _clip(update, plan.clip_norm)
    # One pass over the update: the norm is not finite where one of its numbers is not.
    norm = tf.linalg.global_norm([tf.cast(t, tf.float32) for t in _floats(update)])
    # A product may overflow where its factors are finite.
    largest = tf.reduce_max(monomials) * norm
    parts = [raw, values, monomials, largest]
    finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(p)) for p in parts])
    included = tf.logical_and(finite, norm <= plan.max_update_norm)
    zeros = tf.nest.map_structure(tf.zeros_like, (values, monomials, update))
    # A branch, because a choice number by number would copy the update.
    values, monomials, update = tf.cond(
        included, lambda: (values, monomials, update), lambda: zeros
    )
    return Contribution(raw, values, monomials, update, included)


@without_autograph
def basis_values(basis: Basis, values: tf.Tensor) -> tf.Tensor:
    """The products and minima of criteria [..., m] that the basis names, [..., B]."""
    members = tf.constant(basis.membership())
    values = values[..., tf.newaxis, :]
    products = tf.reduce_prod(tf.where(members, values, 1.0), axis=-1)
    if not basis.minima:
        return products
    minima = tf.reduce_min(tf.where(members, values, np.inf), axis=-1)
    return tf.where(np.arange(len(basis)) < len(basis.summed), products, minima)


@without_autograph
def check_not_negative(code: str, value: tf.Tensor) -> tf.Tensor:
    """The value, checked in the graph; NaN passes: such a client is left out."""
    # Spelled out, because TensorFlow's optimizer rewrites `not (value < 0)` to
    # `value >= 0`.
    allowed = tf.reduce_all(tf.logical_or(value >= 0, tf.math.is_nan(value)))
    message = f"the criterion {code} gave a negative value"
    with tf.control_dependencies([tf.debugging.Assert(allowed, [message, value])]):
        return tf.identity(value)


def _floats(update: Any) -> list[tf.Tensor]:
    return [t for t in tf.nest.flatten(update) if t.dtype.is_floating]


def _peak(update: Any) -> tf.Tensor:
    """The largest absolute value."""
    return tf.reduce_max([tf.reduce_max(tf.abs(t)) for t in _floats(update)])


def _clip(update: Any, clip_norm: float) -> Any:
    """Scales an update to at most the norm; a huge finite one does not overflow."""
    flat = tf.nest.flatten(update)
    peak = tf.maximum(_peak(update), 1e-30)
    norm = peak * tf.linalg.global_norm([t / tf.cast(peak, t.dtype) for t in flat])
    scale = tf.minimum(1.0, clip_norm / norm)
    return tf.nest.map_structure(lambda t: t * tf.cast(scale, t.dtype), update)
