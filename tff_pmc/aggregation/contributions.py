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
"""The range of a monomial that is not 0, and the top of its product with an update's
norm, so that sums over a hundred million clients are finite in float32."""


class Contribution(NamedTuple):
    """One client's contribution; all but `raw` is zero when the client is left out."""

    raw: tf.Tensor  # The raw criteria as measured, float32 [m].
    criteria: tf.Tensor  # The same, after a normalization that the client applies.
    monomials: tf.Tensor  # `r_S` for each sum of the basis, float32 [B].
    update: Any  # Received minus trained weights: TFF's sign, as a gradient has it.
    included: tf.Tensor  # Whether it counts; see `contribution_of`.


@without_autograph
def compute_contribution(
    plan: SumPlan, raw: tf.Tensor, update: Any, examples: tf.Tensor | int = 1
) -> Contribution:
    """Computes a client's contribution from its raw criteria [m] and its update.

    A client without examples, whose update or criteria are not finite, whose update has
    a norm above the plan's `max_update_norm`, or whose criteria multiply to what is out
    of `SMALLEST` to `LARGEST` contributes zeros: one diverged client must not destroy
    the round.
    """
    values = raw
    if plan.normalization.method == "range":
        low, high = (
            tf.constant(x, tf.float32) for x in zip(*plan.normalization.ranges)
        )
        values = tf.clip_by_value((raw - low) / (high - low), 0.0, 1.0)
    monomials = client_weights(plan.basis, values)
    if plan.clip_norm is not None:
        update = _clip(update, plan.clip_norm)
    # One pass over the update: the norm is not finite where one of its numbers is not.
    norm = tf.linalg.global_norm([tf.cast(t, tf.float32) for t in _floats(update)])
    # A product may overflow, or vanish, where its factors do not.
    largest = tf.reduce_max(monomials) * norm
    positive = tf.reduce_all((values > 0) | ~plan.basis.membership(), axis=-1)
    checks = [
        tf.math.is_finite(raw),
        *(part <= LARGEST for part in (values, monomials, largest)),
        (monomials >= SMALLEST) | ~positive,
        norm <= plan.max_update_norm,
        tf.greater(examples, 0),
    ]
    included = tf.reduce_all([tf.reduce_all(check) for check in checks])
    zeros = tf.nest.map_structure(tf.zeros_like, (values, monomials, update))
    # A branch, because a choice number by number would copy the update.
    values, monomials, update = tf.cond(
        included, lambda: (values, monomials, update), lambda: zeros
    )
    return Contribution(raw, values, monomials, update, included)


@without_autograph
def aggregated_weights(weights: Any) -> tff.learning.models.ModelWeights:
    """Returns the weights that are averaged, of a `ModelWeights` of tensors or specs.

    Weights that are not trained and no floats, as a layer's counter or switch, have no
    mean: they stay what the server has, as all that are not trained do in TFF's
    algorithms.
    """
    fixed = tf.nest.flatten(weights.non_trainable)
    floats = tuple(w for w in fixed if w.dtype.is_floating)
    return tff.learning.models.ModelWeights(weights.trainable, floats)


def update_type(weights_type: tff.Type) -> tff.Type:
    """Returns the type of an update of the weights that are averaged."""
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
    """Checks the value in the graph; NaN passes: such a client is left out."""
    # Spelled out, because TensorFlow's optimizer rewrites `not (value < 0)` to
    # `value >= 0`.
    allowed = tf.reduce_all(tf.logical_or(value >= 0, tf.math.is_nan(value)))
    # The engines make a `CriterionError` of these words.
    words = [f"the criterion {code} gave a negative value:", value]
    words += [] if number is None else ["of client", number]
    with tf.control_dependencies([tf.debugging.Assert(allowed, words)]):
        return tf.identity(value)


def check_room(argument: str, number: tf.Tensor, size: int, counted: str) -> tf.Tensor:
    """Checks in the graph that numbers are below the size that an argument gave."""
    largest = tf.reduce_max(number)
    # The engines make a `ValueError` of these words.
    words = [f"{argument} is too small: {counted}, from 0, is", largest]
    with tf.control_dependencies([tf.debugging.Assert(largest < size, words)]):
        return tf.identity(number)


def check_client(num_clients: int, number: tf.Tensor) -> tf.Tensor:
    """Checks in the graph that clients' numbers are below their count."""
    argument = f"num_clients={num_clients}"
    return check_room(argument, number, num_clients, "the number of a client")


def _floats(update: Any) -> list[tf.Tensor]:
    return [t for t in tf.nest.flatten(update) if t.dtype.is_floating]


def _clip(update: Any, clip_norm: float) -> Any:
    """Scales an update to at most the norm; a huge finite one does not overflow."""
    flat = cast_to_common_float(_floats(update))
    peak = tf.maximum(tf.reduce_max([tf.reduce_max(tf.abs(t)) for t in flat]), 1e-30)
    norm = peak * tf.linalg.global_norm([t / peak for t in flat])
    scale = tf.minimum(clip_norm / norm, 1.0)
    return tf.nest.map_structure(lambda t: t * tf.cast(scale, t.dtype), update)


class RunningSums(NamedTuple):
    """The sums of scalars over the clients of a pack so far."""

    criteria: tf.Tensor  # `sum_k r[k, i]`, float32 [m].
    maxima: tf.Tensor  # `max_k r[k, i]`, float32 [m].
    monomials: tf.Tensor  # `sum_k r_S[k]`, float32 [B].
    clients: tf.Tensor  # The number of clients trained, int32.
    excluded: tf.Tensor  # The number of these that were left out.
    examples: tf.Tensor  # The training examples of the others, int32.
    loss: tf.Tensor  # The sum of these examples' losses over the last epoch.

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
        """Adds one more client, its number of examples and their losses."""
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
        """Returns the message of a pack with these sums of updates and metrics."""
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
        """Returns the measurements of a pack with its sums, for the record.

        With the plan's `only_counts` they are the number of clients alone: whatever
        else is released without noise would break differential privacy.
        """
        values = self.clients, self.excluded, self.examples, self.loss
        measured = zip(MEASUREMENTS, values)
        return collections.OrderedDict(
            [next(measured)] if plan.counts_only else measured
        )


class ModelSums:
    """`sum_k r_S[k] d_k` for each sum S of the basis.

    A sum is changed where it is: adding a client to tensors, which cannot change, takes
    two to three times as long (docs/performance.md). `add` may be called in a loop, of
    which the sums are no variables.
    """

    @without_autograph
    def __init__(self, count: int, like: Any) -> None:
        """Begins with zeros, `count` structures like an update."""
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
    """Returns the sums over one client alone, a tuple of B structures."""
    return tuple(
        tf.nest.map_structure(lambda d, w=weight: tf.cast(w, d.dtype) * d, added.update)
        for weight in tf.unstack(added.monomials)
    )


def _variable(value: tf.Tensor) -> tf.Tensor:
    """Returns the handle of a call's variable, freed with its last handle."""
    handle = tf.raw_ops.VarHandleOp(
        dtype=value.dtype, shape=value.shape, shared_name=context.anonymous_name()
    )
    tf.raw_ops.AssignVariableOp(resource=handle, value=value)
    return handle
