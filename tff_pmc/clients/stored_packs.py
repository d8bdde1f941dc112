"""Packs of clients as datasets: of arrays, or of references to a store.

Workers read the clients of a store where they train them. A Python process that only
reads packs imports this module, which needs TensorFlow but not TFF.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from leaf_data.examples import StorePart


class ClientArrays(NamedTuple):
    """A client's arrays, its number in the federation and its place in the cohort.

    `local_epochs` is its number of epochs where it differs between clients.
    """

    number: int
    x: np.ndarray
    y: np.ndarray
    attributes: Mapping[str, np.ndarray] = {}
    example_attributes: Mapping[str, np.ndarray] = {}
    place: int = 0
    local_epochs: Optional[int] = None


class StoredPackReference(NamedTuple):
    """The serialized form of a `StoredPack`: all that the store does not hold."""

    stored: StorePart
    numbers: np.ndarray
    places: np.ndarray
    attributes: Mapping[str, np.ndarray]
    example_attributes: Sequence[str]
    local_epochs: Sequence[Optional[int]]


class StoredPack(tf.data.Dataset):
    """A pack of clients of a store, whose arrays are read whenever it is iterated.

    Attributes:
        reference: its serialized form.
    """

    def __init__(self, clients: Sequence[ClientArrays], stored: StorePart) -> None:
        """Takes clients whose arrays are views of this store's; reads nothing."""
        self._clients = clients
        self.reference = StoredPackReference(
            stored,
            np.array([client.number for client in clients], np.int32),
            np.array([client.place for client in clients], np.int32),
            {
                name: np.array([client.attributes[name] for client in clients])
                for name in clients[0].attributes
            },
            tuple(clients[0].example_attributes),
            tuple(client.local_epochs for client in clients),
        )
        super().__init__(None)

    @property
    def _variant_tensor(self) -> tf.Tensor:
        return tf.data.experimental.to_variant(build_pack_dataset(self._clients))

    def _inputs(self) -> list[tf.data.Dataset]:
        return []

    @property
    def element_spec(self) -> Any:
        """The `TensorSpec`s of its elements, from the first client."""
        return _spec(_element(self._clients[0]))


def build_pack_dataset(clients: Sequence[ClientArrays]) -> tf.data.Dataset:
    """Builds the dataset of these clients, without tracing a function."""
    elements = [_element(client) for client in clients]
    spec = _spec(elements[0])
    flat = tf.nest.flatten(spec)
    variant = tf.raw_ops.ListDataset(
        tensors=[tf.constant(part) for part in tf.nest.flatten(elements)],
        output_types=[part.dtype for part in flat],
        output_shapes=[part.shape for part in flat],
    )
    return tf.data.experimental.from_variant(variant, spec)


def _element(client: ClientArrays) -> collections.OrderedDict:
    """Returns a client in the form of `clients.packing.element_spec`."""
    element = collections.OrderedDict(x=client.x, y=client.y)
    element.update(client=np.int32(client.number), place=np.int32(client.place))
    for name in ("attributes", "example_attributes"):
        client_attributes = getattr(client, name)
        if client_attributes:
            element[name] = collections.OrderedDict(
                (key, np.float32(client_attributes[key]))
                for key in sorted(client_attributes)
            )
    if client.local_epochs is not None:
        element["local_epochs"] = np.int32(client.local_epochs)
    return element


def _spec(element: collections.OrderedDict) -> collections.OrderedDict:
    """Returns the `TensorSpec`s of such elements, with any number of examples."""
    return tf.nest.map_structure(
        lambda part: tf.TensorSpec(
            [None, *part.shape[1:]] if part.ndim else [], part.dtype
        ),
        element,
    )
