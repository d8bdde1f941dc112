"""The sums over the clients of a pack, one client after another."""

from __future__ import annotations

import collections
from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff
from tensorflow.python.eager import context

from tff_pmc.aggregation.building import without_autograph
from tff_pmc.aggregation.contributions import Contribution
from tff_pmc.scores import Basis, Normalization

MEASUREMENTS = ("clients", "excluded", "examples", "loss_sum")
"""The names of what a pack measures beside its sums."""


class RunningSums(NamedTuple):
    """The sums of scalars over the clients of a pack so far.

    Attributes:
        criteria: `sum_k r[k, i]`, float32 [m].
        maxima: `max_k r[k, i]`, float32 [m].
        monomials: `sum_k r_S[k]`, float32 [B].
        clients: the number of clients trained, int32.
        excluded: the number of these that were left out.
        examples: the number of training examples of the others, int32.
        loss: the sum of these examples' losses over the last epoch.
    """

    criteria: tf.Tensor
    maxima: tf.Tensor
    monomials: tf.Tensor
    clients: tf.Tensor
    excluded: tf.Tensor
    examples: tf.Tensor
    loss: tf.Tensor

    @classmethod
    @without_autograph
    def of_nobody(cls, basis: Basis) -> RunningSums:
        """The sums over no clients."""
        criteria, zero = tf.zeros([basis.num_criteria]), tf.constant(0)
        monomials, loss = tf.zeros([len(basis)]), tf.constant(0.0)
        return cls(criteria, criteria, monomials, zero, zero, zero, loss)

    @without_autograph
    def plus(
        self, added: Contribution, examples: tf.Tensor, loss: tf.Tensor
    ) -> RunningSums:
        """The sums with one more client, its number of examples and their losses."""
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
    def result(
        self, models: tuple[Any, ...], normalization: Normalization
    ) -> tff.learning.templates.ClientResult:
        """What leaves the pack: the sums of models and of scalars; for `max` maxima."""
        scalars = collections.OrderedDict(
            criteria=self.criteria, monomials=self.monomials
        )
        if normalization.method == "max":
            scalars["maxima"] = self.maxima
        return tff.learning.templates.ClientResult(models, scalars)

    @without_autograph
    def measurements(self, only_counts: bool) -> collections.OrderedDict:
        """The measurements of a pack beside its sums, for the record.

        With `only_counts` they are the number of clients alone: whatever else is
        released without noise would break differential privacy.
        """
        values = self.clients, self.excluded, self.examples, self.loss
        measured = zip(MEASUREMENTS, values)
        return collections.OrderedDict([next(measured)] if only_counts else measured)


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
        """The sums, a tuple of B structures."""
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
    """The sums over one client alone, a tuple of B structures."""
    return tuple(
        tf.nest.map_structure(lambda d, w=weight: tf.cast(w, d.dtype) * d, added.update)
        for weight in tf.unstack(added.monomials)
    )


def _variable(value: tf.Tensor) -> tf.Tensor:
    """The handle of a variable of this call, which goes with its last handle."""
    handle = tf.raw_ops.VarHandleOp(
        dtype=value.dtype, shape=value.shape, shared_name=context.anonymous_name()
    )
    tf.raw_ops.AssignVariableOp(resource=handle, value=value)
    return handle
