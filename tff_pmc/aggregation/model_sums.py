"""Sums of weighted updates, kept in place inside a TensorFlow graph."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.eager import context

from tff_pmc.aggregation.as_written import as_written
from tff_pmc.aggregation.contributions import Contribution


class ModelSums:
    """`sum_k r_S[k] d_k` for each sum S of the basis.

    A sum is changed where it is: adding a client to tensors, which cannot change, would
    move each sum and a product of its size through memory once more, and takes two to
    three times as long (docs/performance.md). `add` may be called in a loop, of which
    the sums are no variables.
    """

    @as_written
    def __init__(self, count: int, like: Any) -> None:
        """Begins with zeros.

        Args:
            count: the number of sums, B.
            like: a structure of tensors like an update.
        """
        self._like = like
        self._sums = [
            [_variable(tf.zeros_like(t)) for t in tf.nest.flatten(like)]
            for _ in range(count)
        ]

    @as_written
    def add(self, added: Contribution) -> None:
        """Adds a client's update, weighted with each of its monomials."""
        update = tf.nest.flatten(added.update)
        for weight, total in zip(tf.unstack(added.monomials), self._sums):
            for handle, d in zip(total, update):
                factor = tf.cast(weight, d.dtype)
                tf.raw_ops.ResourceApplyGradientDescent(
                    var=handle, alpha=-factor, delta=d
                )

    @as_written
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


@as_written
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
