"""What one client adds to the round's sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.criteria import Criterion, LocalClient
from tff_pmc.scores import Basis


class Contribution(NamedTuple):
    """One client's part of the sums; all zero when it is left out.

    Attributes:
        criteria: raw criteria, float32 [m].
        monomials: `r_S` for each summed monomial, float32 [B].
        update: received minus trained weights, a `ModelWeights`: TFF's sign, in
            which a server optimizer takes it for a gradient.
        included: bool, False when an update or a criterion is not finite.
    """

    criteria: tf.Tensor
    monomials: tf.Tensor
    update: Any
    included: tf.Tensor


def contribution(
    criteria: Sequence[Criterion], basis: Basis, client: LocalClient
) -> Contribution:
    """Computes a client's contribution, inside its TensorFlow graph.

    A client whose update or criteria are not finite contributes zeros: one
    diverged client must not destroy the round. A negative criterion is an error
    of whoever wrote it and ends the round, by name.

    Raises:
        ValueError: while tracing, when a criterion does not give a scalar.
        tf.errors.InvalidArgumentError: in the graph, on a negative criterion.
    """
    raw = tf.stack([_raw_value(criterion, client) for criterion in criteria])
    membership = tf.constant(basis.membership())
    monomials = tf.reduce_prod(tf.where(membership, raw[tf.newaxis], 1.0), axis=1)
    update = tf.nest.map_structure(
        tf.subtract, client.initial_weights, client.trained_weights
    )
    parts = [raw, monomials, *_floats(update)]
    included = tf.reduce_all([tf.reduce_all(tf.math.is_finite(p)) for p in parts])

    def keep(value):
        return tf.where(included, value, tf.zeros_like(value))

    return Contribution(
        keep(raw), keep(monomials), tf.nest.map_structure(keep, update), included
    )


def zero_sums(weights: tff.learning.models.ModelWeights, size: int) -> tuple:
    """Sums over no clients: B structures like `weights`."""
    return (tf.nest.map_structure(tf.zeros_like, weights),) * size


def add_weighted(sums: tuple, update: Any, monomials: tf.Tensor) -> tuple:
    """Adds `r_S * update` to each of the B sums.

    The sums are B structures and not one with a leading axis of B: tensors of
    one model's size are reused by the allocator, those of seven are mapped and
    zeroed anew for every client (measured: 1.6 times the whole FEMNIST round).
    """

    def add(weight):
        return lambda total, part: total + tf.cast(weight, part.dtype) * part

    weights = tf.unstack(monomials, num=len(sums))
    return tuple(
        tf.nest.map_structure(add(weight), total, update)
        for weight, total in zip(weights, sums)
    )


def _raw_value(criterion: Criterion, client: LocalClient) -> tf.Tensor:
    value = tf.cast(criterion.value(client), tf.float32)
    if value.shape.rank not in (0, None):
        raise ValueError(
            f"the criterion {criterion.code} must give one number per client, but "
            f"gives a tensor of the shape {value.shape}"
        )
    message = f"the criterion {criterion.code} gave a negative value"
    # NaN passes: such a client is left out, not refused. (Spelled out, because
    # TensorFlow's optimizer rewrites `not (value < 0)` to `value >= 0`.)
    allowed = tf.logical_or(value >= 0, tf.math.is_nan(value))
    check = tf.debugging.Assert(allowed, [message, value])
    with tf.control_dependencies([check]):
        return tf.reshape(tf.identity(value), [])


def _floats(structure: Any) -> list[tf.Tensor]:
    return [t for t in tf.nest.flatten(structure) if t.dtype.is_floating]
