"""The encoding of packs for workers, and its decoding there.

A dataset travels as its graph, which holds the tensors that it slices, and a pack of a
store as a reference, for which the worker reads the store on its machine.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import pickle
from collections.abc import Sequence
from typing import Any, Union

import numpy as np
import tensorflow as tf

import leaf_data
from leaf_data.client_ids import ClientNumber
from tff_pmc.clients.stored_packs import ClientArrays, Reference, StoredPack, dataset_of
from tff_pmc.runtime.pack_sums import to_variant_tensor

_MAX_CACHED_STORES = 8  # That stay mapped in a worker.
# Attributes that are names, made of a count of what the process has traced.
_NAMES = ("metadata", "_user_specified_name")
_FAIL = 2  # What `DatasetToGraphV2` does with state outside of the graph.

Part = Union[bytes, "np.ndarray[Any, Any]", Reference]
"""One tensor of a pack: a dataset's graph, an array, or which clients of a store."""


def encode(tensor: Any) -> Part:
    """Encodes a dataset or a tensor of a pack for sending.

    A dataset that depends on more than its graph, on a Python function or a random
    stream of the process, is read here, and its elements travel.
    """
    if isinstance(tensor, StoredPack):
        return tensor.reference
    if not isinstance(tensor, tf.data.Dataset):
        return np.asarray(tensor.numpy(), tensor.dtype.as_numpy_dtype)
    try:
        return _to_graph(tensor)
    except tf.errors.OpError:
        return _to_graph(_materialize(tensor))


def decode(part: Part) -> tf.Tensor:
    """Decodes the tensor of a pack that was sent."""
    if isinstance(part, Reference):
        return to_variant_tensor(_read(part))
    if isinstance(part, bytes):
        return tf.raw_ops.DatasetFromGraph(graph_def=part)
    return tf.constant(part)


def digest(parts: Sequence[Part]) -> str:
    """Computes a digest of what is sent: equal for equal packs of `clients.packing`.

    Datasets of functions have other bytes each time, by the names that TensorFlow gives
    these: equal ones are sent again.
    """
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(part if isinstance(part, bytes) else pickle.dumps(part))
    return found.hexdigest()


def num_bytes(part: Part) -> int:
    """Counts the bytes of a part."""
    return part.nbytes if isinstance(part, np.ndarray) else len(pickle.dumps(part))


@functools.lru_cache(_MAX_CACHED_STORES)
def open_cached_store(path: str, digest: str) -> leaf_data.FederatedDataset:
    """Opens a store and keeps it mapped; a `DataError` if it is missing or another."""
    data = leaf_data.open_store(path)
    stored = data.train_examples.stored
    found = stored.digest if stored is not None else ""
    if found != digest:
        raise leaf_data.DataError(
            f"{path} is another store: the sha256 of its header is {found[:8]}... and "
            f"not {digest[:8]}..."
        )
    return data


def _read(reference: Reference) -> tf.data.Dataset:
    """Reads the pack of a reference from this machine's store."""
    stored, numbers, places, attributes, names = reference
    examples = getattr(
        open_cached_store(stored.path, stored.digest), f"{stored.part}_examples"
    )
    clients = []
    for row, (number, place) in enumerate(zip(numbers.tolist(), places.tolist())):
        own = examples.client(ClientNumber(number))
        known = {name: column[row] for name, column in attributes.items()}
        extras = {name: own[name] for name in names}
        clients.append(ClientArrays(number, own["x"], own["y"], known, extras, place))
    return dataset_of(clients)


def _to_graph(dataset: tf.data.Dataset) -> bytes:
    content = tf.raw_ops.DatasetToGraphV2(
        input_dataset=to_variant_tensor(dataset),
        external_state_policy=_FAIL,
        strip_device_assignment=True,
    )
    graph = tf.compat.v1.GraphDef.FromString(content.numpy())
    functions = (function.node_def for function in graph.library.function)
    for node in itertools.chain(graph.node, *functions):
        for name in _NAMES:
            node.attr.pop(name, None)
    found: bytes = graph.SerializeToString(deterministic=True)
    return found


def _materialize(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Builds a dataset of the elements of another, whatever their shapes."""
    spec = dataset.element_spec
    flat = tf.nest.flatten(spec)
    rows = [
        [tf.io.serialize_tensor(tensor).numpy() for tensor in tf.nest.flatten(element)]
        for element in dataset
    ]

    def parsed(row: tf.Tensor) -> Any:
        texts = zip(tf.unstack(row, len(flat)), flat)
        found = [
            tf.ensure_shape(tf.io.parse_tensor(text, one.dtype), one.shape)
            for text, one in texts
        ]
        return tf.nest.pack_sequence_as(spec, found)

    texts = tf.constant(rows, tf.string, [len(rows), len(flat)])
    return tf.data.Dataset.from_tensor_slices(texts).map(parsed)
