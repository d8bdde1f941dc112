"""Databases of examples by client, as TFF ships them, read without TensorFlow.

TFF's `SqlClientData` says what is in one: a table `examples` with `client_id`,
`split_name` and `serialized_example_proto`, and a table `client_metadata` with each
client's `num_examples`. The protocol buffer is a `tf.train.Example`; two pages of its
wire format are enough to read it
(https://protobuf.dev/programming-guides/encoding).
"""

from __future__ import annotations

import sqlite3
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Union

import numpy as np
import numpy.typing as npt
import tqdm

from leaf_data.errors import DataError
from leaf_data.formats.cache import Arrays

Features = dict[str, npt.NDArray[Any]]


def read(
    path: str,
    words: str,
    splits: Mapping[str, str],
    fields: Mapping[str, tuple[tuple[int, ...], Any]],
    needed: tuple[str, ...],
    convert: Callable[[Features], Mapping[str, Any]],
) -> Arrays:
    """Reads all clients, in the order of their sorted ids, as TFF has them.

    Args:
        path: the path of the unpacked database.
        words: the database in words, e.g. "TFF's EMNIST".
        splits: for each `split_name` to read, "train" or "test".
        fields: the shape and dtype of each field that `convert` returns, by name.
        needed: the features every example has to have.
        convert: a function that makes the fields out of one example's features; a
            `DataError` it raises is raised with file and client.

    Returns:
        For each part ("train" and "test") `FIELD_PART` [N, ...] of each field and
        `sizes_PART` int64 [K], the clients' numbers of examples; and `client_ids` [K].

    Raises:
        DataError: it is damaged, no such database, or holds fewer or more examples
            than it says; the message names file and client.
    """
    uri = f"file:{urllib.parse.quote(path)}?mode=ro&immutable=1"
    try:
        database = sqlite3.connect(uri, uri=True)
        try:
            counts = _counts(path, database, splits)
            return _read(path, database, counts, splits, fields, needed, convert)
        finally:
            database.close()
    except sqlite3.Error as error:
        raise DataError(f"{path}: not {words}, or damaged ({error})") from error


def _where(splits: Mapping[str, str]) -> str:
    return f"WHERE split_name IN ({', '.join(map(repr, splits))})"


def _counts(
    path: str, database: sqlite3.Connection, splits: Mapping[str, str]
) -> dict[tuple[str, str], int]:
    """Returns the numbers of examples by part and client."""
    counts: dict[tuple[str, str], int] = {}
    for client, split, count in database.execute(
        "SELECT client_id, split_name, num_examples FROM client_metadata "
        + _where(splits)
    ):
        counts[splits[split], str(client)] = int(count)
    if not counts:
        raise DataError(f"{path}: has no clients with a split {' or '.join(splits)}")
    return counts


def _read(
    path: str,
    database: sqlite3.Connection,
    counts: Mapping[tuple[str, str], int],
    splits: Mapping[str, str],
    fields: Mapping[str, tuple[tuple[int, ...], Any]],
    needed: tuple[str, ...],
    convert: Callable[[Features], Mapping[str, Any]],
) -> Arrays:
    clients = sorted({client for _, client in counts})
    arrays: Arrays = {"client_ids": np.array(clients, str)}
    places: dict[tuple[str, str], int] = {}
    for part in splits.values():
        sizes = np.array([counts.get((part, c), 0) for c in clients], np.int64)
        arrays[f"sizes_{part}"] = sizes
        for field, (shape, dtype) in fields.items():
            arrays[f"{field}_{part}"] = np.zeros((sizes.sum(), *shape), dtype)
        starts = np.cumsum(sizes) - sizes
        places.update(((part, c), int(start)) for c, start in zip(clients, starts))
    # One pass in the order of the file: asking client by client would want an index.
    rows = database.execute(
        "SELECT client_id, split_name, serialized_example_proto FROM examples "
        + _where(splits)
    )
    left = dict(counts)
    for client, split, proto in tqdm.tqdm(
        rows, "TFF's data, once", total=sum(counts.values()), delay=2, mininterval=1
    ):
        part, client = splits[split], str(client)
        if left.get((part, client), 0) < 1:
            raise DataError(
                f"{path}: client {client}: more {part} examples than the "
                f"{counts.get((part, client), 0)} of client_metadata"
            )
        try:
            values = convert(_features(proto, needed))
        except DataError as error:
            raise DataError(f"{path}: client {client}: {error}") from error
        for field, value in values.items():
            arrays[f"{field}_{part}"][places[part, client]] = value
        places[part, client] += 1
        left[part, client] -= 1
    for (part, client), missing in left.items():
        if missing:
            raise DataError(
                f"{path}: client {client}: {missing} of {counts[part, client]} {part} "
                "examples are missing"
            )
    return arrays


def _features(proto: Any, needed: tuple[str, ...]) -> Features:
    try:
        features = parse_example(proto)
        return {name: features[name] for name in needed}
    except (IndexError, KeyError, TypeError, ValueError) as error:
        problem = f"an example is no tf.train.Example with {' and '.join(needed)}"
        raise DataError(problem) from error


def parse_example(proto: bytes) -> Features:
    """Returns the numeric features of a serialized `tf.train.Example`.

    Args:
        proto: the bytes, which are
            Example{1: Features{1: repeated entry{1: name, 2: Feature}}} with
            Feature{2: FloatList{1: floats} or 3: Int64List{1: integers}}.

    Returns:
        The features by name, float32 or int64 [n]; features of text are left out.

    Raises:
        IndexError, ValueError: the bytes are no such message.
    """
    features: Features = {}
    for message in _values(proto, 1):
        for entry in _values(message, 1):
            (name,) = _values(entry, 1)
            for feature in _values(entry, 2):
                for floats in _values(feature, 2):
                    data = b"".join(map(bytes, _values(floats, 1)))
                    features[bytes(name).decode()] = np.frombuffer(data, "<f4")
                for integers in _values(feature, 3):
                    found = [_integers(value) for value in _values(integers, 1)]
                    wrapped = np.concatenate([np.zeros(0, np.uint64), *found])
                    features[bytes(name).decode()] = wrapped.view(np.int64)
    return features


def _values(message: Any, wanted: int) -> Iterator[Any]:
    """Yields the values of one field: bytes, or an int for a varint."""
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
    """Returns an integer (seven bits a byte, lowest first) and where it ends."""
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def _integers(value: Union[int, memoryview]) -> npt.NDArray[np.uint64]:
    """Returns one integer, or the many of a packed field: an image has 21,168."""
    if isinstance(value, int):
        return np.array([value], np.uint64)
    packed = np.frombuffer(value, np.uint8)
    ends = np.flatnonzero(packed < 128)
    if not len(packed):
        return np.zeros(0, np.uint64)
    if not len(ends) or ends[-1] != len(packed) - 1:
        raise ValueError("truncated")
    starts = np.concatenate([[0], ends[:-1] + 1])
    place = np.arange(len(packed)) - np.repeat(starts, ends - starts + 1)
    if place.max() > 9:
        raise ValueError("an integer of more than ten bytes")
    sevens = (packed & 127).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(sevens, starts)
