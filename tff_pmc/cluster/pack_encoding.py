"""Encodes packs of clients for workers, and decodes them there.

A dataset is sent as its graph, which contains the tensors that it slices. A pack of a
store is sent as a reference: the worker reads the store on its machine.
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
from tff_pmc.clients.stored_packs import (
    ClientArrays,
    StoredPack,
    StoredPackReference,
    build_pack_dataset,
)
from tff_pmc.runtime.pack_sums import to_variant_tensor

_MAX_CACHED_STORES = 8  # They stay mapped in a worker.
# Attributes that are names with a number, which counts the traces of the process.
_NAMES = ("metadata", "_user_specified_name")
_FAIL = 2  # `DatasetToGraphV2` raises an error for state outside of the graph.

Part = Union[bytes, "np.ndarray[Any, Any]", StoredPackReference]
"""An encoded tensor of a pack: a dataset's graph, an array, or a reference."""


def encode(tensor: Any) -> Part:
    """Encodes a dataset or a tensor of a pack for sending.

    A dataset that depends on more than its graph, such as a Python function or a random
    stream of the process, is read here, and its elements are sent.
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
    """Decodes a tensor of a pack."""
    if isinstance(part, StoredPackReference):
        return to_variant_tensor(_read(part))
    if isinstance(part, bytes):
        return tf.raw_ops.DatasetFromGraph(graph_def=part)
    return tf.constant(part)


def digest(parts: Sequence[Part]) -> str:
    """Computes a digest of an encoded pack, equal for equal packs of `clients.packing`.

    Datasets of functions differ in their bytes each time, because TensorFlow numbers
    the functions' names: equal ones are sent again.
    """
    hasher = hashlib.blake2b(digest_size=16)
    for part in parts:
        hasher.update(part if isinstance(part, bytes) else pickle.dumps(part))
    return hasher.hexdigest()


def num_bytes(part: Part) -> int:
    """Returns the number of bytes of a part."""
    return part.nbytes if isinstance(part, np.ndarray) else len(pickle.dumps(part))


@functools.lru_cache(_MAX_CACHED_STORES)
def open_cached_store(path: str, digest: str) -> leaf_data.FederatedDataset:
    """Opens a store and keeps it mapped; a `DataError` if it is not the driver's."""
    data = leaf_data.open_store(path)
    stored = data.train_examples.store_part
    stored_digest = stored.digest if stored is not None else ""
    if stored_digest != digest:
        raise leaf_data.DataError(
            f"{path} is another store: the sha256 of its header is "
            f"{stored_digest[:8]}..., not {digest[:8]}..."
        )
    return data


def _read(reference: StoredPackReference) -> tf.data.Dataset:
    """Reads the pack of a reference from the store on this machine."""
    stored, numbers, positions, attributes, names, epochs = reference
    examples = getattr(
        open_cached_store(stored.path, stored.digest), f"{stored.part}_examples"
    )
    clients = []
    for row, (number, position) in enumerate(zip(numbers.tolist(), positions.tolist())):
        client_examples = examples.client(ClientNumber(number))
        client_attributes = {name: column[row] for name, column in attributes.items()}
        extras = {name: client_examples[name] for name in names}
        clients.append(
            ClientArrays(
                number,
                client_examples["x"],
                client_examples["y"],
                client_attributes,
                extras,
                position,
                epochs[row],
            )
        )
    return build_pack_dataset(clients)


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
    serialized: bytes = graph.SerializeToString(deterministic=True)
    return serialized


def _materialize(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Returns a dataset that contains the elements of another, of any shapes."""
    spec = dataset.element_spec
    flat = tf.nest.flatten(spec)
    rows = [
        [tf.io.serialize_tensor(tensor).numpy() for tensor in tf.nest.flatten(element)]
        for element in dataset
    ]

    def parse_row(row: tf.Tensor) -> Any:
        texts = zip(tf.unstack(row, len(flat)), flat)
        tensors = [
            tf.ensure_shape(
                tf.io.parse_tensor(text, tensor_spec.dtype), tensor_spec.shape
            )
            for text, tensor_spec in texts
        ]
        return tf.nest.pack_sequence_as(spec, tensors)

    texts = tf.constant(rows, tf.string, [len(rows), len(flat)])
    return tf.data.Dataset.from_tensor_slices(texts).map(parse_row)
