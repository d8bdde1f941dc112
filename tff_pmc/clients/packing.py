"""Many whole clients at one TFF placement.

A *packed* element is one whole client, `OrderedDict(x=[n, ...], y=[n],
client=int32 [])`; a *shard* is a sequence of them at one placement. A deployment
has one client in a shard; a simulation packs many, so that one TensorFlow loop
trains them and no model travels for each. `client` is the client's index in the
federation: random streams and per-client results belong to it, so that neither
depends on how clients were packed.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import leaf_data

MAX_SHARD_BYTES = 500_000_000
"""Default limit of a shard: a message to the worker cannot exceed 2 GB."""


def element_spec(input_spec: Any) -> collections.OrderedDict:
    """The packed element of a model.

    Args:
        input_spec: the model's `input_spec`, `(x, y)` of batched `TensorSpec`s.

    Returns:
        The structure of `TensorSpec`s of one packed client.
    """
    x, y = input_spec
    return collections.OrderedDict(x=x, y=y, client=tf.TensorSpec([], tf.int32))


def split_evenly(sizes: Sequence[int], num_shards: int) -> list[list[int]]:
    """Deals clients to shards of about equal work, largest clients first.

    Args:
        sizes: number of examples of each client of the cohort.
        num_shards: the most shards wanted.

    Returns:
        For each shard (none is empty) positions in `sizes`, ascending.
    """
    loads = [0] * min(num_shards, len(sizes))
    shards: list[list[int]] = [[] for _ in loads]
    for position in sorted(range(len(sizes)), key=lambda i: (-sizes[i], i)):
        lightest = loads.index(min(loads))
        shards[lightest].append(position)
        loads[lightest] += max(sizes[position], 1)
    return [sorted(shard) for shard in shards]


def pack(
    examples: leaf_data.Examples,
    clients: Sequence[int],
    *,
    num_shards: int = 2,
    max_bytes: int = MAX_SHARD_BYTES,
) -> list[tf.data.Dataset]:
    """Packs a cohort for `LearningProcess.next`.

    Args:
        examples: the federation's training examples.
        clients: the cohort, indices into the federation.
        num_shards: shards to spread the cohort over; more are made where one
            would exceed `max_bytes`.
        max_bytes: the most bytes of inputs in a shard.

    Returns:
        One `tf.data.Dataset` of packed clients for each shard.

    Raises:
        ValueError: the cohort is empty, or one client alone exceeds `max_bytes`.
    """
    clients = [int(k) for k in clients]
    if not clients:
        raise ValueError("cannot pack an empty cohort")
    splits = np.asarray(examples.row_splits)
    sizes = [int(splits[k + 1] - splits[k]) for k in clients]
    row_bytes = int(np.prod(examples.x.shape[1:])) * examples.x.dtype.itemsize
    for client, size in zip(clients, sizes):
        if size * row_bytes > max_bytes:
            raise ValueError(
                f"client {client} has {size * row_bytes} bytes of examples; a shard "
                f"holds at most {max_bytes}"
            )
    while True:
        shards = split_evenly(sizes, num_shards)
        loads = [sum(sizes[i] for i in shard) * row_bytes for shard in shards]
        if max(loads) <= max_bytes:
            break
        num_shards += 1
    return [_shard(examples, [clients[i] for i in shard]) for shard in shards]


def _shard(examples: leaf_data.Examples, clients: list[int]) -> tf.data.Dataset:
    """A dataset over slices of captured tensors: what travels fastest."""
    splits = np.asarray(examples.row_splits)
    rows = np.concatenate([np.arange(splits[k], splits[k + 1]) for k in clients])
    x, y = tf.constant(examples.x[rows]), tf.constant(examples.y[rows])
    ends = np.cumsum([splits[k + 1] - splits[k] for k in clients])
    starts = np.concatenate([[0], ends[:-1]])

    def client_at(start, end, client):
        return collections.OrderedDict(x=x[start:end], y=y[start:end], client=client)

    places = (starts, ends, np.array(clients, np.int32))
    return tf.data.Dataset.from_tensor_slices(places).map(client_at)
