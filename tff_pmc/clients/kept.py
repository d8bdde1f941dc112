"""Clients' updates that stay at their placement until they can be weighted.

For scores of criteria that a client cannot normalize by itself: its update waits, in
one stack for the shard, until the totals are there.
"""

from __future__ import annotations

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.clients.contribution import Part, basis_values
from tff_pmc.scores import Basis

Arrays = tuple  # Of `tf.TensorArray`s: each tensor of an update, then the criteria.


def none(weights: Any, num_criteria: int) -> Arrays:
    """No updates yet, of the structure of `weights`."""
    shapes = [(t.dtype, t.shape) for t in tf.nest.flatten(weights)]
    return tuple(
        tf.TensorArray(dtype, size=0, dynamic_size=True, element_shape=shape)
        for dtype, shape in [*shapes, (tf.float32, [num_criteria])]
    )


def keep(arrays: Arrays, part: Part) -> Arrays:
    """The updates and one more; that of a client left out is zero, as its criteria."""
    values = [*tf.nest.flatten(part.update), part.criteria]
    return tuple(array.write(array.size(), t) for array, t in zip(arrays, values))


def stack(arrays: Arrays, weights: Any) -> tff.learning.templates.ClientResult:
    """The updates, a structure like `weights` [n, ...], and criteria float32 [n, m]."""
    *updates, criteria = [array.stack() for array in arrays]
    return tff.learning.templates.ClientResult(
        tf.nest.pack_sequence_as(weights, updates), criteria
    )


def weigh(
    basis: Basis, scales: tf.Tensor, updates: Any, criteria: tf.Tensor
) -> tff.learning.templates.ClientResult:
    """What the shard sends once it knows the scales, as `contribution.shard_output`.

    Args:
        basis: the products and minima of normalized criteria that weigh the updates.
        scales: what each criterion is divided by, float32 [m]; a criterion whose
            scale is 0 is 0.
        updates: of `stack`.
        criteria: of `stack`, float32 [n, m].
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
