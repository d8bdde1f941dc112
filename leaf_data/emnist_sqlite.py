"""FEMNIST as TFF ships it: `emnist_all.sqlite`, read without TensorFlow.

TFF's `SqlClientData` says what is in it: a table `examples` with `client_id`,
`split_name` and `serialized_example_proto`, and a table `client_metadata` with each
client's `num_examples`. The protocol buffer is a `tf.train.Example` with 784 floats
`pixels` and one integer `label`; two pages of its wire format are enough to read it
(https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import sqlite3
import urllib.parse
from collections.abc import Iterator
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import tqdm

from leaf_data import femnist_values
from leaf_data.cache import Arrays
from leaf_data.errors import DataError

# As `tff.simulation.datasets.emnist.load_data(only_digits=False)` names them.
_SPLITS = {"all_train": "train", "all_test": "test"}
_SHAPE = (femnist_values.SIDE, femnist_values.SIDE)


def read(path: str) -> Arrays:
    """Reads all clients, in the order of their sorted ids, as TFF has them.

    Args:
        path: of the unpacked database.

    Returns:
        `x_train`, `y_train`, `sizes_train`, the same of `test`, and `client_ids`, as
        `femnist_leaf.read` returns them.

    Raises:
        DataError: it is damaged, no such database, or holds fewer or more examples
            than it says; the message names file and client.
    """
    uri = f"file:{urllib.parse.quote(path)}?mode=ro&immutable=1"
    try:
        database = sqlite3.connect(uri, uri=True)
        try:
            return _read(path, database)
        finally:
            database.close()
    except sqlite3.Error as error:
        raise DataError(f"{path}: not TFF's EMNIST, or damaged ({error})") from error


def _read(path: str, database: sqlite3.Connection) -> Arrays:
    where = "WHERE split_name IN ('all_train', 'all_test')"
    counts: dict[tuple[str, str], int] = {}
    for client, split, count in database.execute(
        f"SELECT client_id, split_name, num_examples FROM client_metadata {where}"
    ):
        counts[_SPLITS[split], str(client)] = int(count)
    clients = sorted({client for _, client in counts})
    if not clients:
        raise DataError(f"{path}: has no clients with a split all_train or all_test")
    arrays: Arrays = {"client_ids": np.array(clients, str)}
    places: dict[tuple[str, str], int] = {}
    for part in _SPLITS.values():
        sizes = np.array([counts.get((part, c), 0) for c in clients], np.int64)
        arrays[f"sizes_{part}"] = sizes
        arrays[f"x_{part}"] = np.zeros((sizes.sum(), *_SHAPE), np.uint8)
        arrays[f"y_{part}"] = np.zeros(sizes.sum(), np.int32)
        starts = np.cumsum(sizes) - sizes
        places.update(((part, c), int(start)) for c, start in zip(clients, starts))
    # One pass in the order of the file: asking client by client would want an index.
    rows = database.execute(
        f"SELECT client_id, split_name, serialized_example_proto FROM examples {where}"
    )
    left = dict(counts)
    for client, split, proto in tqdm.tqdm(
        rows, "EMNIST, once", total=sum(counts.values()), delay=2, mininterval=1
    ):
        part, client = _SPLITS[split], str(client)
        if left.get((part, client), 0) < 1:
            raise DataError(
                f"{path}: client {client}: more {part} examples than the "
                f"{counts.get((part, client), 0)} of client_metadata"
            )
        try:
            image, label = _image_and_label(proto)
        except DataError as error:
            raise DataError(f"{path}: client {client}: {error}") from error
        row = places[part, client]
        arrays[f"x_{part}"][row], arrays[f"y_{part}"][row] = image, label
        places[part, client] += 1
        left[part, client] -= 1
    for (part, client), missing in left.items():
        if missing:
            raise DataError(
                f"{path}: client {client}: {missing} of {counts[part, client]} {part} "
                "examples are missing"
            )
    return arrays


def _image_and_label(proto: Any) -> tuple[npt.NDArray[np.uint8], int]:
    try:
        features = parse_example(proto)
        pixels, label = features["pixels"], features["label"]
    except (IndexError, KeyError, TypeError, ValueError) as error:
        problem = "an example is no tf.train.Example with pixels and label"
        raise DataError(problem) from error
    if pixels.dtype != np.float32 or pixels.size != _SHAPE[0] * _SHAPE[1]:
        raise DataError(f"an image of {pixels.size} values, not 784 floats")
    if label.dtype != np.int64 or label.size != 1:
        raise DataError(f"an example with {label.size} labels, not one integer")
    if not 0 <= label[0] < femnist_values.NUM_CLASSES:
        raise DataError(f"the label {label[0]}, not one of 0 to 61")
    return femnist_values.to_bytes(pixels[None])[0], int(label[0])


def parse_example(proto: bytes) -> dict[str, npt.NDArray[Any]]:
    """The numeric features of a serialized `tf.train.Example`.

    Args:
        proto: Example{1: Features{1: repeated entry{1: name, 2: Feature}}} with
            Feature{2: FloatList{1: floats} or 3: Int64List{1: integers}}.

    Returns:
        name -> float32 or int64 [n]; features of text are left out.

    Raises:
        IndexError, ValueError: it is none.
    """
    features: dict[str, npt.NDArray[Any]] = {}
    for message in _values(proto, 1):
        for entry in _values(message, 1):
            (name,) = _values(entry, 1)
            for feature in _values(entry, 2):
                for floats in _values(feature, 2):
                    data = b"".join(map(bytes, _values(floats, 1)))
                    features[bytes(name).decode()] = np.frombuffer(data, "<f4")
                for integers in _values(feature, 3):
                    found = [n for v in _values(integers, 1) for n in _integers(v)]
                    wrapped = np.array(found, np.uint64)
                    features[bytes(name).decode()] = wrapped.view(np.int64)
    return features


def _values(message: Any, wanted: int) -> Iterator[Any]:
    """The values of one field: bytes, or an int for a varint."""
    message, at = memoryview(message), 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        value: Union[int, memoryview]
        if kind == 0:
            value, at = _varint(message, at)
        else:
            if kind == 2:
                size, at = _varint(message, at)
            else:
                size = {1: 8, 5: 4}[kind]
            if at + size > len(message):
                raise ValueError("truncated")
            value, at = message[at : at + size], at + size
        if tag >> 3 == wanted:
            yield value


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """The integer at a place (seven bits a byte, lowest first), and the next place."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _integers(value: Union[int, memoryview]) -> Iterator[int]:
    """One integer, or many packed into bytes."""
    if isinstance(value, int):
        yield value
        return
    at = 0
    while at < len(value):
        number, at = _varint(value, at)
        yield number
