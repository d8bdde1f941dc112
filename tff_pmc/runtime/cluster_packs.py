"""The packs that are on the workers of a cluster, to be sent once, as what travels.

A dataset travels as its graph, which holds the tensors that it slices, and a pack of a
store as a reference. Workers import this module, too: it needs TensorFlow and not TFF.
"""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import tensorflow as tf

from tff_pmc.runtime import cluster_tasks, stored_packs
from tff_pmc.runtime.cluster_connection import ClusterConnection
from tff_pmc.runtime.cluster_tasks import SentReference

REMEMBERED_BYTES = 2_000_000_000
"""The bytes of packs that stay on the workers after a call, all workers together."""

# Attributes that are names, made of a count of what the process has traced.
_NAMES = ("metadata", "_user_specified_name")
_FAIL, _IGNORE = 2, 1  # What `DatasetToGraphV2` does with state outside of the graph.

Tensors = Sequence[tf.Tensor]
Part = Union[bytes, np.ndarray, SentReference]
"""One tensor of a pack: a dataset's graph, an array, or who is meant of a store."""


@dataclasses.dataclass
class Traffic:
    """Bytes between this process and the workers, without Python's own.

    `packs` go to one worker each; what the server `sent` and the computations' `graphs`
    to each worker; one sum is `received` in each call.
    """

    packs: int = 0
    sent: int = 0
    graphs: int = 0
    received: int = 0


class HeldPack(NamedTuple):
    """A pack on a worker; what refers to a store is the pack itself, and no future."""

    future: Any
    worker: str
    num_bytes: int


class PacksOnWorkers:
    """Packs by a digest of what travels; the ones not used for longest go first."""

    def __init__(self, connection: ClusterConnection) -> None:
        self.connection = connection
        self.traffic = Traffic()
        self._remembered_bytes = REMEMBERED_BYTES
        self._held: collections.OrderedDict[str, HeldPack] = collections.OrderedDict()

    def place(
        self, packs: Sequence[Tensors], workers: Sequence[str]
    ) -> Iterator[tuple[int, HeldPack]]:
        """Puts packs on workers, each where it is already, or neighbours together.

        A sum is merged with its neighbour's. Each pack is given, by its number, as soon
        as it is there: its task may begin while others are sent.
        """
        loads = dict.fromkeys(workers, 0)
        most = -(-len(packs) // len(workers))
        new = {}
        for number, pack in enumerate(packs):
            parts = list(map(encoded, pack))
            # References are not kept: they are as small as what would name them.
            refers = all(isinstance(part, SentReference) for part in parts)
            key = "" if refers else digest(parts)
            held = self._held.get(key)
            # Sent anew where the worker has its share: one that died comes back with
            # nothing, while another has all.
            if held is None or loads.get(held.worker, most) >= most:
                new[number] = key, parts
            else:
                loads[held.worker] += 1
                self._held.move_to_end(key)
                yield number, held
        shares, waiting = _shares(len(new), loads), iter(list(new))
        stretches = [list(itertools.islice(waiting, n)) for n in shares.values()]
        for turn in itertools.zip_longest(*stretches):
            for worker, number in zip(shares, turn):
                if number is not None:
                    yield number, self._put(*new.pop(number), worker)

    def forget_lost(self) -> None:
        """Forgets the packs that no worker has any more."""
        there = self.connection.still_there(
            [held.future for held in self._held.values()]
        )
        for key, held in list(self._held.items()):
            if held.future.key not in there:
                del self._held[key]

    def trim(self) -> None:
        """Forgets the packs that were not used for longest, down to the limit."""
        total = sum(held.num_bytes for held in self._held.values())
        while total > self._remembered_bytes:
            _, held = self._held.popitem(last=False)
            total -= held.num_bytes

    def _put(self, key: str, parts: list[Part], worker: str) -> HeldPack:
        num_bytes = sum(map(_num_bytes, parts))
        self.traffic.packs += num_bytes
        if not key:
            return HeldPack(parts, worker, num_bytes)
        (future,) = self.connection.client.scatter(
            [parts], workers=[worker], hash=False
        )
        self._held[key] = HeldPack(future, worker, num_bytes)
        self._held.move_to_end(key)
        return self._held[key]


def _shares(number: int, loads: Mapping[str, int]) -> dict[str, int]:
    """How many more packs each worker gets, so that all have about as many."""
    total = dict(loads)
    for _ in range(number):
        total[min(total, key=lambda worker: total[worker])] += 1
    return {worker: total[worker] - load for worker, load in loads.items()}


def stores_of(packs: Sequence[Tensors]) -> set[tuple[str, str]]:
    """The path and the checksum of each store that is referred to."""
    return {
        tensor.reference.stored[:2]
        for pack in packs
        for tensor in pack
        if isinstance(tensor, stored_packs.StoredPack)
    }


def encoded(tensor: Any) -> Part:
    """A tensor of a pack as what travels.

    A dataset that depends on more than its graph, on a Python function or a random
    stream of the process, is read here, and its elements travel.
    """
    if isinstance(tensor, stored_packs.StoredPack):
        return SentReference(cluster_tasks.to_bytes(tensor.reference))
    if tensor.dtype == tf.variant:
        try:
            return _to_graph(tensor, _FAIL)
        except tf.errors.OpError:
            return _to_graph(_of_elements(tensor), _FAIL)
    return np.asarray(tensor.numpy(), tensor.dtype.as_numpy_dtype)


def decoded(part: Part) -> tf.Tensor:
    """The tensor of a pack that travelled."""
    if isinstance(part, SentReference):
        return stored_packs.read(cluster_tasks.from_bytes(part.content))
    if isinstance(part, bytes):
        return tf.raw_ops.DatasetFromGraph(graph_def=part)
    return tf.constant(part)


def digest(parts: Sequence[Part]) -> str:
    """A digest of what travels: equal for equal packs of `clients.packing`.

    Datasets of functions have other bytes each time, by the names that TensorFlow gives
    these: equal ones are sent again.
    """
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        part = part.content if isinstance(part, SentReference) else part
        if isinstance(part, bytes):
            found.update(part)
            continue
        found.update(f"{part.dtype} {part.shape}".encode())
        plain = part.dtype.kind != "O"
        found.update(part.tobytes() if plain else repr(part.tolist()).encode())
    return found.hexdigest()


def _num_bytes(part: Part) -> int:
    part = part.content if isinstance(part, SentReference) else part
    return len(part) if isinstance(part, bytes) else part.nbytes


def _to_graph(variant: tf.Tensor, policy: int) -> bytes:
    content = tf.raw_ops.DatasetToGraphV2(
        input_dataset=variant,
        external_state_policy=policy,
        strip_device_assignment=True,
    )
    graph = tf.compat.v1.GraphDef.FromString(content.numpy())
    functions = (function.node_def for function in graph.library.function)
    for node in itertools.chain(graph.node, *functions):
        for name in _NAMES:
            node.attr.pop(name, None)
    return graph.SerializeToString(deterministic=True)


def _of_elements(variant: tf.Tensor) -> tf.Tensor:
    """A dataset of the elements of another, whatever their shapes."""
    graph = tf.compat.v1.GraphDef.FromString(_to_graph(variant, _IGNORE))
    nodes = {node.name: node for node in graph.node}
    (result,) = (node for node in graph.node if node.op == "_Retval")
    attributes = nodes[result.input[0].split(":")[0]].attr
    types = [tf.as_dtype(t) for t in attributes["output_types"].list.type]
    shapes = [tf.TensorShape(s) for s in attributes["output_shapes"].list.shape]
    specs = tuple(map(tf.TensorSpec, shapes, types))
    columns: list[list[bytes]] = [[] for _ in specs]
    for element in tf.data.experimental.from_variant(variant, specs):
        for column, tensor in zip(columns, element):
            column.append(tf.io.serialize_tensor(tensor).numpy())

    def parsed(*row: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(
            tf.ensure_shape(tf.io.parse_tensor(text, spec.dtype), spec.shape)
            for text, spec in zip(row, specs)
        )

    rows = tuple(tf.constant(column, tf.string, [len(column)]) for column in columns)
    return tf.data.experimental.to_variant(
        tf.data.Dataset.from_tensor_slices(rows).map(parsed)
    )
