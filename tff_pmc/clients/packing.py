"""Many whole clients at one TFF placement.

A *packed* element is one whole client, `OrderedDict(x=[n, ...], y=[n],
client=int32 [])`, with attributes of the client or of its examples where criteria need
them; a *shard* is a sequence of them at one placement. A deployment
has one client in a shard; a simulation packs many, so that one TensorFlow loop
trains them and no model travels for each. `client` is the client's index in the
federation: random streams and per-client results belong to it, so that neither
depends on how clients were packed.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

import leaf_data

MAX_SHARD_BYTES = 500_000_000
"""Default limit of a shard: a message to the worker cannot exceed 2 GB."""


_INPUT_KEYS = ("x", "pixels", "image")
_LABEL_KEYS = ("y", "label")


def element_spec(
    input_spec: Any,
    client_attributes: Sequence[str] = (),
    example_attributes: Sequence[str] = (),
) -> collections.OrderedDict:
    """The packed element of a model.

    Args:
        input_spec: the model's `input_spec`, batched `TensorSpec`s of x and y.
        client_attributes: names of the attributes that travel with a client.
        example_attributes: names of those that travel with its examples.

    Returns:
        The structure of `TensorSpec`s of one packed client.
    """
    x, y = split_batch(input_spec)
    spec = collections.OrderedDict(x=x, y=y, client=tf.TensorSpec([], tf.int32))
    if client_attributes:
        spec["attributes"] = attribute_spec(client_attributes)
    if example_attributes:
        spec["example_attributes"] = attribute_spec(example_attributes, [None])
    return spec


def attribute_spec(
    names: Sequence[str], shape: Sequence[Optional[int]] = ()
) -> collections.OrderedDict:
    """The structure of attributes: float32 for each name, a scalar by default.

    Sorted by name, so that it does not matter in which order they are given.
    """
    return collections.OrderedDict(
        (name, tf.TensorSpec(shape, tf.float32)) for name in sorted(names)
    )


def check_attribute(name: str, values: Any) -> None:
    """Raises a `ValueError` that names an attribute with a value out of [0, 1]."""
    array = np.asarray(values, float)
    if not ((array >= 0) & (array <= 1)).all():
        raise ValueError(f"the attribute {name} must be in [0, 1], got {values}")


def split_batch(batch: Any) -> tuple[Any, Any]:
    """A batch's inputs and labels, from `(x, y)` or `{"x": ..., "y": ...}`."""
    if isinstance(batch, Mapping):
        return batch["x"], batch["y"]
    return batch[0], batch[1]


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
    attributes: Optional[Mapping[str, np.ndarray]] = None,
    example_attributes: Sequence[str] = (),
) -> list[tf.data.Dataset]:
    """Packs a cohort for `LearningProcess.next`.

    Args:
        examples: the federation's training examples.
        clients: the cohort, indices into the federation.
        num_shards: shards to spread the cohort over; more are made where one
            would exceed `max_bytes`.
        max_bytes: the most bytes of inputs in a shard.
        attributes: client attributes that travel along, each [K] over the whole
            federation, by name (`leaf_data.ClientTable.values`).
        example_attributes: names of the examples' attributes that travel along;
            `criteria.example_attributes` are those that criteria need.

    Returns:
        One `tf.data.Dataset` of packed clients for each shard.

    Raises:
        ValueError: the cohort is empty, one client alone exceeds `max_bytes`, an
            attribute is not in [0, 1], or the examples lack one.
    """
    for name in example_attributes:
        if name not in examples.attributes:
            raise ValueError(
                f"the examples have no attribute {name!r}, which a criterion needs; "
                f"they have {', '.join(examples.attributes) or 'none'}"
            )
    parts = []
    for k in clients:
        own = examples.client(int(k))
        extras = {name: own[name] for name in sorted(example_attributes)}
        parts.append(_Client(int(k), own["x"], own["y"], extras))
    return _pack(parts, num_shards, max_bytes, attributes or {})


def pack_client_data(
    client_data: tff.simulation.datasets.ClientData,
    client_ids: Optional[Sequence[str]] = None,
    *,
    num_shards: int = 2,
    max_bytes: int = MAX_SHARD_BYTES,
    attributes: Optional[Mapping[str, np.ndarray]] = None,
) -> list[tf.data.Dataset]:
    """Packs clients of any `tff.simulation.datasets.ClientData`.

    Args:
        client_data: its elements are `(input, label)`, or mappings with an input
            `x`, `pixels` or `image` and a label `y` or `label`, as TFF's own data
            sets have them.
        client_ids: the cohort; by default all clients.
        num_shards: see `pack`.
        max_bytes: see `pack`.
        attributes: see `pack`; [K] in the order of `client_data.client_ids`.

    Returns:
        One dataset of packed clients for each shard. A client's number is its
        place in `client_data.client_ids`.

    Raises:
        ValueError: as `pack`; an element has not this form.
    """
    numbers = {name: place for place, name in enumerate(client_data.client_ids)}
    parts = []
    for name in numbers if client_ids is None else client_ids:
        dataset = client_data.create_tf_dataset_for_client(name)
        pairs = dataset.map(lambda *element: _input_and_label(element))
        rows = list(pairs.as_numpy_iterator())
        x, y = (
            np.array([row[part] for row in rows], spec.dtype.as_numpy_dtype).reshape(
                [len(rows), *spec.shape]
            )
            for part, spec in enumerate(pairs.element_spec)
        )
        if np.issubdtype(y.dtype, np.integer):
            y = y.astype(np.int32)  # TFF's data sets mix int32 and int64.
        parts.append(_Client(numbers[name], x, y))
    return _pack(parts, num_shards, max_bytes, attributes or {})


def _input_and_label(element: tuple) -> tuple[Any, Any]:
    """`Dataset.map` hands over a tuple's parts one by one, a mapping as one."""
    if len(element) == 2:
        return element
    if isinstance(element[0], Mapping):
        found = [
            [element[0][key] for key in keys if key in element[0]]
            for keys in (_INPUT_KEYS, _LABEL_KEYS)
        ]
        if all(len(values) == 1 for values in found):
            return found[0][0], found[1][0]
    raise ValueError(
        f"cannot tell input and label in an element {element}: it must be a pair, or a "
        f"mapping with one of {_INPUT_KEYS} and one of {_LABEL_KEYS}"
    )


class _Client(NamedTuple):
    number: int
    x: np.ndarray
    y: np.ndarray
    example_attributes: Mapping[str, np.ndarray] = {}


def _pack(
    clients: Sequence[_Client],
    num_shards: int,
    max_bytes: int,
    attributes: Mapping[str, np.ndarray],
) -> list[tf.data.Dataset]:
    if not clients:
        raise ValueError("cannot pack an empty cohort")
    for name, column in attributes.items():
        check_attribute(name, column)
    for client in clients:
        if client.x.nbytes > max_bytes:
            raise ValueError(
                f"client {client.number} has {client.x.nbytes} bytes of examples; a "
                f"shard holds at most {max_bytes}"
            )
    sizes = [len(client.y) for client in clients]
    while True:
        shards = split_evenly(sizes, num_shards)
        if (
            max(sum(clients[i].x.nbytes for i in shard) for shard in shards)
            <= max_bytes
        ):
            break
        num_shards += 1
    return [_shard([clients[i] for i in shard], attributes) for shard in shards]


def _shard(
    clients: Sequence[_Client], attributes: Mapping[str, np.ndarray]
) -> tf.data.Dataset:
    """A dataset over slices of captured tensors: what travels fastest."""
    x = tf.constant(np.concatenate([client.x for client in clients]))
    y = tf.constant(np.concatenate([client.y for client in clients]))
    ends = np.cumsum([len(client.y) for client in clients])
    starts = np.concatenate([[0], ends[:-1]])
    numbers = np.array([client.number for client in clients], np.int32)
    values = collections.OrderedDict(
        (name, np.asarray(column, np.float32)[numbers])
        for name, column in sorted(attributes.items())
    )

    by_example = collections.OrderedDict(
        (
            name,
            tf.constant(
                np.concatenate([client.example_attributes[name] for client in clients]),
                tf.float32,
            ),
        )
        for name in clients[0].example_attributes
    )

    def client_at(start, end, client, own_values):
        element = collections.OrderedDict(x=x[start:end], y=y[start:end], client=client)
        if own_values:
            element["attributes"] = own_values
        if by_example:
            element["example_attributes"] = collections.OrderedDict(
                (name, values[start:end]) for name, values in by_example.items()
            )
        return element

    places = (starts, ends, numbers, values)
    return tf.data.Dataset.from_tensor_slices(places).map(client_at)
