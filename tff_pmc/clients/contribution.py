"""What one client adds to the round's sums, and what a shard sends."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.criteria import Criterion, LocalClient
from tff_pmc.scores import SUM, Basis, Normalization


@dataclasses.dataclass(frozen=True)
class Rule:
    """How a client's model and criteria enter the sums.

    Attributes:
        criteria: the m criteria, in the order of the basis's columns.
        basis: the monomials and minima whose weighted updates are summed.
        normalization: of the criteria; `range` is applied at the client.
        clip_norm: the L2 norm to which an update is clipped before it is
            weighted; None does not clip.
    """

    criteria: tuple[Criterion, ...]
    basis: Basis
    normalization: Normalization = SUM
    clip_norm: Optional[float] = None


class Part(NamedTuple):
    """One client's part of the sums; all but `raw` zero when it is left out.

    Attributes:
        raw: raw criteria as measured, float32 [m].
        criteria: the same, after a normalization that the client applies.
        monomials: `r_S` for each sum of the basis, float32 [B].
        update: received minus trained weights, a `ModelWeights`: TFF's sign, in
            which a server optimizer takes it for a gradient.
        included: bool, False when an update or a criterion is not finite.
    """

    raw: tf.Tensor
    criteria: tf.Tensor
    monomials: tf.Tensor
    update: Any
    included: tf.Tensor


def measure(rule: Rule, client: LocalClient) -> Part:
    """Computes a client's part, inside its TensorFlow graph.

    A client whose update or criteria are not finite contributes zeros: one
    diverged client must not destroy the round. A negative criterion is an error
    of whoever wrote it and ends the round, by name.

    Raises:
        ValueError: while tracing, when a criterion does not give a scalar.
        tf.errors.InvalidArgumentError: in the graph, on a negative criterion.
    """
    # A declared range cuts what is below it; an error would show the value.
    checked = rule.normalization.method != "range"
    raw = tf.stack([raw_value(c, client, checked=checked) for c in rule.criteria])
    update = tf.nest.map_structure(
        tf.subtract, client.initial_weights, client.trained_weights
    )
    return weigh(rule.basis, rule.normalization, rule.clip_norm, raw, update)


def weigh(
    basis: Basis,
    normalization: Normalization,
    clip_norm: Optional[float],
    raw: tf.Tensor,
    update: Any,
) -> Part:
    """A client's part, given its raw criteria [m] and its update."""
    values = raw
    if normalization.method == "range":
        low, high = (tf.constant(x, tf.float32) for x in zip(*normalization.ranges))
        values = tf.clip_by_value((raw - low) / (high - low), 0.0, 1.0)
    monomials = basis_values(basis, values)
    if clip_norm is not None:
        update = _clip(update, clip_norm)
    # A product may overflow where its factors are finite.
    largest = tf.reduce_max(monomials) * _peak(update)
    parts = [raw, values, monomials, largest, *_floats(update)]
    included = tf.reduce_all([tf.reduce_all(tf.math.is_finite(p)) for p in parts])

    def keep(value):
        return tf.where(included, value, tf.zeros_like(value))

    return Part(
        raw,
        keep(values),
        keep(monomials),
        tf.nest.map_structure(keep, update),
        included,
    )


def basis_values(basis: Basis, values: tf.Tensor) -> tf.Tensor:
    """Products and minima of criteria [..., m], as the basis has them, [..., B]."""
    members = tf.constant(basis.membership())
    values = values[..., tf.newaxis, :]
    products = tf.reduce_prod(tf.where(members, values, 1.0), axis=-1)
    if not basis.minima:
        return products
    minima = tf.reduce_min(tf.where(members, values, np.inf), axis=-1)
    return tf.where(np.arange(len(basis)) < len(basis.summed), products, minima)


def raw_value(
    criterion: Criterion, client: LocalClient, *, checked: bool = True
) -> tf.Tensor:
    """A criterion's value as a float32 scalar; `checked`: that is not negative."""
    value = tf.cast(criterion.value(client), tf.float32)
    if value.shape.rank not in (0, None):
        raise ValueError(
            f"the criterion {criterion.code} must give one number per client, but "
            f"gives a tensor of the shape {value.shape}"
        )
    value = tf.reshape(value, [])
    return check_not_negative(criterion.code, value) if checked else value


def check_not_negative(code: str, value: tf.Tensor) -> tf.Tensor:
    """The same value; in the graph, an error that names the criterion if it is below 0.

    NaN passes: such a client is left out, not refused.
    """
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


class ShardSums(NamedTuple):
    """Running sums over the clients of a shard.

    Attributes:
        models: `sum_k r_S[k] d_k`, a tuple of B structures like the weights.
        criteria: `sum_k r[k, i]`, float32 [m].
        maxima: `max_k r[k, i]`, float32 [m].
        monomials: `sum_k r_S[k]`, float32 [B].
        clients: clients trained, int32.
        excluded: of these, those left out.
        examples: training examples of the clients not left out, int32.
        loss: sum of these examples' losses over the last epoch.
    """

    models: tuple
    criteria: tf.Tensor
    maxima: tf.Tensor
    monomials: tf.Tensor
    clients: tf.Tensor
    excluded: tf.Tensor
    examples: tf.Tensor
    loss: tf.Tensor


def no_clients(basis: Basis, weights: Any, *, models: bool = True) -> ShardSums:
    """The sums over no clients; without `models`, updates are not to be summed."""
    zero = tf.constant(0)
    zeros = tf.nest.map_structure(tf.zeros_like, weights)
    return ShardSums(
        (zeros,) * (len(basis) if models else 0),
        tf.zeros([basis.num_criteria]),
        tf.zeros([basis.num_criteria]),
        tf.zeros([len(basis)]),
        *(zero, zero, zero),
        tf.constant(0.0),
    )


def add_client(
    sums: ShardSums, part: Part, examples: tf.Tensor, loss: tf.Tensor
) -> ShardSums:
    """The sums with one more client.

    The models are B structures and not one with a leading axis of B, which was
    slower (`docs/performance.md`).
    """

    def add(weight):
        return lambda total, d: total + tf.cast(weight, d.dtype) * d

    weights = tf.unstack(part.monomials)
    return ShardSums(
        tuple(
            tf.nest.map_structure(add(weight), total, part.update)
            for weight, total in zip(weights, sums.models)
        ),
        sums.criteria + part.criteria,
        tf.maximum(sums.maxima, part.criteria),
        sums.monomials + part.monomials,
        sums.clients + 1,
        sums.excluded + tf.cast(tf.logical_not(part.included), tf.int32),
        sums.examples + tf.where(part.included, examples, 0),
        sums.loss + tf.where(part.included, loss, 0.0),
    )


def shard_output(
    sums: ShardSums, normalization: Normalization, *, only_counts: bool = False
) -> tuple[tff.learning.templates.ClientResult, collections.OrderedDict]:
    """What a shard sends: sums to aggregate, and measurements for the record.

    With `only_counts` the record has the number of clients alone: whatever else
    is released without noise would break differential privacy.
    """
    scalars = collections.OrderedDict(criteria=sums.criteria, monomials=sums.monomials)
    if normalization.method == "max":
        scalars["maxima"] = sums.maxima
    measured = collections.OrderedDict(clients=sums.clients)
    if not only_counts:
        measured.update(
            excluded=sums.excluded, examples=sums.examples, loss_sum=sums.loss
        )
    return tff.learning.templates.ClientResult(sums.models, scalars), measured
