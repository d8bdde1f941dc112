"""Clients' updates that wait where they were made until they can be weighted.

A client cannot normalize some criteria by itself: then its update waits, in one stack
for the pack, until the cohort's totals are there.
"""

from __future__ import annotations

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import Contribution, basis_values
from tff_pmc.scores import Basis

WaitingUpdates = tuple  # Of `tf.TensorArray`s: each tensor of an update, the criteria.


def no_updates(weights: Any, num_criteria: int) -> WaitingUpdates:
    """The empty list of updates, of the structure of `weights`."""
    shapes = [(t.dtype, t.shape) for t in tf.nest.flatten(weights)]
    return tuple(
        tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)
        for dtype, shape in [*shapes, (tf.float32, [num_criteria])]
    )


def append_update(waiting: WaitingUpdates, added: Contribution) -> WaitingUpdates:
    """Appends a client's update and criteria, zeros if the client is left out."""
    values = [*tf.nest.flatten(added.update), added.criteria]
    return tuple(array.write(array.size(), t) for array, t in zip(waiting, values))


def stack_updates(
    waiting: WaitingUpdates, weights: Any
) -> tff.learning.templates.ClientResult:
    """Stacks updates, like `weights` [n, ...], and their criteria, float32 [n, m]."""
    *updates, criteria = [array.stack() for array in waiting]
    return tff.learning.templates.ClientResult(
        tf.nest.pack_sequence_as(weights, updates), criteria
    )


def sum_of_stacked_updates(
    basis: Basis, scales: tf.Tensor, updates: Any, criteria: tf.Tensor
) -> tff.learning.templates.ClientResult:
    """Sums the weighted updates of a pack, once the scales are known.

    Args:
        basis: the products and minima of normalized criteria that weight the updates.
        scales: the divisor of each criterion, float32 [m]; a criterion whose
            scale is 0 is 0.
        updates: the updates of `stack_updates`.
        criteria: the criteria of `stack_updates`, float32 [n, m].

    Returns:
        A result of the same form as `running_sums.client_result`.
    """
    normalized = tf.math.divide_no_nan(criteria, scales)
    weights = basis_values(basis, normalized)
    models = tuple(
        tf.nest.map_structure(
            lambda u, w=w: tf.tensordot(tf.cast(w, u.dtype), u, 1), updates
        )
        for w in tf.unstack(weights, num=len(basis), axis=1)
    )
    scalars = collections.OrderedDict(
        criteria=tf.reduce_sum(normalized, 0), monomials=tf.reduce_sum(weights, 0)
    )
    return tff.learning.templates.ClientResult(models, scalars)
