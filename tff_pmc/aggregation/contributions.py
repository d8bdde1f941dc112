"""The contribution of one client, and the sums over the clients of a pack."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from tensorflow.python.eager import context

from tff_pmc.aggregation.client_message import MEASUREMENTS, ClientMessage
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.tff_utils import without_autograph
from tff_pmc.models.functional import cast_to_common_float
from tff_pmc.scores import Basis

SMALLEST, LARGEST = 1e-30, 1e30
"""The range of a nonzero monomial; `LARGEST` also bounds its product with the update's
norm. Sums over a hundred million clients then are finite in float32."""


class Contribution(NamedTuple):
    """One client's contribution; all but `raw` is zero if the client is excluded."""

    raw: tf.Tensor  # The raw criteria as measured, float32 [m].
    criteria: tf.Tensor  # The criteria; normalized, if by declared ranges.
    monomials: tf.Tensor  # `r_S` for each sum of the basis, float32 [B].
    update: Any  # Received minus trained weights: TFF's sign, that of a gradient.
    included: tf.Tensor  # False for an excluded client; see `compute_contribution`.


@without_autograph
def compute_contribution(
    plan: SumPlan, raw: tf.Tensor, update: Any, examples: tf.Tensor | int = 1
) -> Contribution:
    """Computes a client's contribution from its raw criteria [m] and its update.

    A client is excluded, and contributes zeros, if it has no examples, its update or
    criteria are not finite, the norm of its update exceeds `max_update_norm`, or a
    nonzero monomial is outside `SMALLEST` to `LARGEST`: one diverged client must not
    spoil the round.
    """
    criteria = raw
    if plan.normalization.method == "range":
        low, high = (
            tf.constant(x, tf.float32) for x in zip(*plan.normalization.ranges)
        )
        criteria = tf.clip_by_value((raw - low) / (high - low), 0.0, 1.0)
    monomials = client_weights(plan.basis, criteria)
    if plan.clip_norm is not None:
        update = _clip(update, plan.clip_norm)
    # One pass over the update: the norm is not finite if any entry is not.
    norm = tf.linalg.global_norm([tf.cast(t, tf.float32) for t in _floats(update)])
    # A product may overflow, or underflow, although its factors do not.
    largest = tf.reduce_max(monomials) * norm
    positive = tf.reduce_all((criteria > 0) | ~plan.basis.membership(), axis=-1)
    conditions = [
        tf.math.is_finite(raw),
        *(part <= LARGEST for part in (criteria, monomials, largest)),
        (monomials >= SMALLEST) | ~positive,
        norm <= plan.max_update_norm,
        tf.greater(examples, 0),
    ]
    included = tf.reduce_all([tf.reduce_all(condition) for condition in conditions])
    zeros = tf.nest.map_structure(tf.zeros_like, (criteria, monomials, update))
    # `tf.cond`, because an elementwise `tf.where` would copy the update.
    criteria, monomials, update = tf.cond(
        included, lambda: (criteria, monomials, update), lambda: zeros
    )
    return Contribution(raw, criteria, monomials, update, included)


@without_autograph
def aggregated_weights(weights: Any) -> tff.learning.models.ModelWeights:
    """Returns the weights that are aggregated, of a `ModelWeights` of tensors or specs.

    Non-trainable weights that are not floats, such as a layer's counter, cannot be
    averaged: the server keeps its own, as TFF's algorithms do with all non-trainable
    weights.
    """
    fixed = tf.nest.flatten(weights.non_trainable)
    floats = tuple(w for w in fixed if w.dtype.is_floating)
    return tff.learning.models.ModelWeights(weights.trainable, floats)


def update_type(weights_type: tff.Type) -> tff.Type:
    """Returns the type of an update: that of the aggregated weights."""
    specs = tff.types.type_to_tf_tensor_specs(weights_type)
    return tff.types.tensorflow_to_type(aggregated_weights(specs))


@without_autograph
def client_weights(basis: Basis, values: tf.Tensor) -> tf.Tensor:
    """Computes a client's weight in each sum of the basis from its criteria.

    The weight in the sum S is `r_S`, the product or minimum of the criteria in S:
    criteria [..., m], weights [..., B].
    """
    members = tf.constant(basis.membership())
    values = values[..., tf.newaxis, :]
    products = tf.reduce_prod(tf.where(members, values, 1.0), axis=-1)
    if not basis.minima:
        return products
    minima = tf.reduce_min(tf.where(members, values, np.inf), axis=-1)
    return tf.where(np.arange(len(basis)) < len(basis.products), products, minima)


@without_autograph
def check_not_negative(
    code: str, value: tf.Tensor, number: tf.Tensor | None = None
) -> tf.Tensor:
    """Checks the value in the graph; NaN passes, because it excludes the client."""
    # Spelled out, because TensorFlow's optimizer rewrites `not (value < 0)` to
    # `value >= 0`.
    allowed = tf.reduce_all(tf.logical_or(value >= 0, tf.math.is_nan(value)))
    # The engines recognize this message and raise a `CriterionError`.
    words = [f"the criterion {code} gave a negative value:", value]
    words += [] if number is None else ["of client", number]
    with tf.control_dependencies([tf.debugging.Assert(allowed, words)]):
        return tf.identity(value)


def check_room(
    argument: str, number: tf.Tensor, size: int, description: str
) -> tf.Tensor:
    """Checks in the graph that each number is below the size that an argument sets."""
    largest = tf.reduce_max(number)
    # The engines recognize this message and raise a `ValueError`.
    words = [f"{argument} is too small: {description}, from 0, is", largest]
    with tf.control_dependencies([tf.debugging.Assert(largest < size, words)]):
        return tf.identity(number)


def check_client(num_clients: int, number: tf.Tensor) -> tf.Tensor:
    """Checks in the graph that client numbers are below `num_clients`."""
    argument = f"num_clients={num_clients}"
    return check_room(argument, number, num_clients, "the number of a client")


def _floats(update: Any) -> list[tf.Tensor]:
    return [t for t in tf.nest.flatten(update) if t.dtype.is_floating]


def _clip(update: Any, clip_norm: float) -> Any:
    """Scales an update to a norm of at most `clip_norm`, without overflow."""
    flat = cast_to_common_float(_floats(update))
    peak = tf.maximum(tf.reduce_max([tf.reduce_max(tf.abs(t)) for t in flat]), 1e-30)
    norm = peak * tf.linalg.global_norm([t / peak for t in flat])
    scale = tf.minimum(clip_norm / norm, 1.0)
    return tf.nest.map_structure(lambda t: t * tf.cast(scale, t.dtype), update)


class RunningSums(NamedTuple):
    """The running sums of scalars over the clients of a pack."""

    criteria: tf.Tensor  # `sum_k r[k, i]`, float32 [m].
    maxima: tf.Tensor  # `max_k r[k, i]`, float32 [m].
    monomials: tf.Tensor  # `sum_k r_S[k]`, float32 [B].
    clients: tf.Tensor  # The number of trained clients, int32.
    excluded: tf.Tensor  # The number of excluded clients among them, int32.
    examples: tf.Tensor  # Of the included clients, int32; see `MEASUREMENTS`.
    loss: tf.Tensor  # The sum of the losses on these examples over the last epoch.

    @classmethod
    @without_autograph
    def zeros(cls, basis: Basis) -> RunningSums:
        """Returns the sums over no clients."""
        criteria, zero = tf.zeros([basis.num_criteria]), tf.constant(0)
        monomials, loss = tf.zeros([len(basis)]), tf.constant(0.0)
        return cls(criteria, criteria, monomials, zero, zero, zero, loss)

    @without_autograph
    def add(
        self, added: Contribution, examples: tf.Tensor, loss: tf.Tensor
    ) -> RunningSums:
        """Returns the sums with a client's added: `loss` is the sum of its losses."""
        return RunningSums(
            self.criteria + added.criteria,
            tf.maximum(self.maxima, added.criteria),
            self.monomials + added.monomials,
            self.clients + 1,
            self.excluded + tf.cast(tf.logical_not(added.included), tf.int32),
            self.examples + tf.where(added.included, examples, 0),
            self.loss + tf.where(added.included, loss, 0.0),
        )

    @without_autograph
    def message(
        self, plan: SumPlan, updates: tuple[Any, ...], metrics: Any = ()
    ) -> ClientMessage:
        """Returns a pack's message: these sums, and those of updates and metrics."""
        return ClientMessage(
            updates=updates,
            criteria=self.criteria,
            monomials=self.monomials,
            maxima=self.maxima if plan.normalization.method == "max" else (),
            measurements=self.measurements(plan),
            metrics=metrics,
        )

    @without_autograph
    def measurements(self, plan: SumPlan) -> collections.OrderedDict:
        """Returns the measurements of a pack.

        With the plan's `counts_only` they are the number of clients only: anything else
        that is released without noise would break differential privacy.
        """
        values = self.clients, self.excluded, self.examples, self.loss
        named_values = zip(MEASUREMENTS, values)
        return collections.OrderedDict(
            [next(named_values)] if plan.counts_only else named_values
        )


class ModelSums:
    """`sum_k r_S[k] d_k` for each sum S of the basis.

    The sums are variables, updated in place: adding a client to immutable tensors takes
    two to three times as long (docs/performance.md). In a `tf.while_loop` they need not
    be loop variables.
    """

    @without_autograph
    def __init__(self, count: int, like: Any) -> None:
        """Creates `count` sums of zeros, structured like an update."""
        self._like = like
        self._sums = [
            [_variable(tf.zeros_like(t)) for t in tf.nest.flatten(like)]
            for _ in range(count)
        ]

    @without_autograph
    def add(self, added: Contribution) -> None:
        """Adds a client's update, weighted with each of its monomials."""
        update = tf.nest.flatten(added.update)
        for weight, total in zip(tf.unstack(added.monomials), self._sums):
            for handle, d in zip(total, update):
                factor = tf.cast(weight, d.dtype)
                tf.raw_ops.ResourceApplyGradientDescent(
                    var=handle, alpha=-factor, delta=d
                )

    @without_autograph
    def read(self) -> tuple[Any, ...]:
        """Returns the sums, a tuple of B structures."""
        return tuple(
            tf.nest.pack_sequence_as(
                self._like,
                [
                    tf.raw_ops.ReadVariableOp(resource=handle, dtype=t.dtype)
                    for handle, t in zip(total, tf.nest.flatten(self._like))
                ],
            )
            for total in self._sums
        )


@without_autograph
def weighted_updates(added: Contribution) -> tuple[Any, ...]:
    """Returns a client's update weighted by each monomial, a tuple of B structures."""
    return tuple(
        tf.nest.map_structure(lambda d, w=weight: tf.cast(w, d.dtype) * d, added.update)
        for weight in tf.unstack(added.monomials)
    )


def _variable(value: tf.Tensor) -> tf.Tensor:
    """Creates a variable for one call; it is freed with its last handle, the result."""
    handle = tf.raw_ops.VarHandleOp(
        dtype=value.dtype, shape=value.shape, shared_name=context.anonymous_name()
    )
    tf.raw_ops.AssignVariableOp(resource=handle, value=value)
    return handle
