"""Databases of examples by client, as TFF ships them, read without TensorFlow.

TFF's `SqlClientData` says what is in one: a table `examples` with `client_id`,
`split_name` and `serialized_example_proto`, and a table `client_metadata` with each
client's `num_examples`. The protocol buffer is a `tf.train.Example`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tqdm

from leaf_data import client_names
from leaf_data.errors import DataError, one_line
from leaf_data.formats import real_tables
from leaf_data.formats.cache import Arrays
from leaf_data.formats.cached_clients import Fields
from leaf_data.formats.tf_example import Features, parse_example

_TABLES = {
    "client_metadata": ("client_id", "split_name", "num_examples"),
    "examples": ("client_id", "split_name", "serialized_example_proto"),
}
# The largest there is, CelebA's image of 84 x 84 x 3 integers, has 43 KB.
_LARGEST_EXAMPLE = 1 << 18
_MORE = 1 << 20  # Bytes that a file may seem to lack for its examples.


def read(
    path: str,
    words: str,
    splits: Mapping[str, str],
    fields: Fields,
    needed: tuple[str, ...],
    convert: Callable[[Features], Mapping[str, Any]],
    smallest: int,
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
        smallest: the number of bytes that every example has at least, by which the
            file's size bounds the examples that it may say it has.

    Returns:
        For each part ("train" and "test") `FIELD_PART` [N, ...] of each field and
        `sizes_PART` int64 [K], the clients' numbers of examples; and `client_ids` [K].

    Raises:
        DataError: it is damaged, no such database, or holds fewer or more examples
            than it says; the message names file and client.
    """
    try:
        most = (os.path.getsize(path) + _MORE) // smallest
        with real_tables.opened(path, _TABLES) as database:
            counts = _counts(path, database, splits, most)
            return _read(path, database, counts, splits, fields, needed, convert)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    # What SQLite says of a damaged schema is not always text.
    except (sqlite3.Error, UnicodeDecodeError) as error:
        reason = one_line(error)
        raise DataError(f"{path}: not {words}, or damaged ({reason})") from error


def _where(splits: Mapping[str, str]) -> str:
    # No index: what one says may be something else than what the table does.
    return f"NOT INDEXED WHERE split_name IN ({', '.join(map(repr, splits))})"


def _counts(
    path: str, database: sqlite3.Connection, splits: Mapping[str, str], most: int
) -> dict[tuple[str, str], int]:
    """Returns the numbers of examples by part and client."""
    counts: dict[tuple[str, str], int] = {}
    for client, split, count in database.execute(
        "SELECT client_id, split_name, num_examples FROM client_metadata "
        + _where(splits)
    ):
        part, client = _of(path, splits, client, split)
        if type(count) is not int or count < 0:
            raise DataError(
                f"{path}: client {client}: {count!r:.40} is no number of examples"
            )
        if (part, client) in counts:
            raise DataError(f"{path}: client {client} is there twice")
        counts[part, client] = count
    if not counts:
        raise DataError(f"{path}: has no clients with a split {' or '.join(splits)}")
    if sum(counts.values()) > most:
        raise DataError(
            f"{path}: says it has {sum(counts.values()):,} examples, more than "
            "there are in its size"
        )
    return counts


def _of(
    path: str, splits: Mapping[str, str], client: Any, split: Any
) -> tuple[str, str]:
    """Returns the part and the client of a row."""
    if type(client) is not str or not client:
        raise DataError(f"{path}: {client!r:.40} is no client's name")
    client_names.check(client, f"{path}: client")
    # A column can compare texts in its own way.
    if split not in splits:
        raise DataError(f"{path}: client {client}: {split!r:.40} is no split")
    return splits[split], client


def _read(
    path: str,
    database: sqlite3.Connection,
    counts: Mapping[tuple[str, str], int],
    splits: Mapping[str, str],
    fields: Fields,
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
        part, client = _of(path, splits, client, split)
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
        if type(proto) is not bytes:
            raise TypeError(f"{type(proto).__name__}, not bytes")
        if len(proto) > _LARGEST_EXAMPLE:
            raise ValueError(f"{len(proto):,} bytes")
        features = parse_example(proto)
        return {name: features[name] for name in needed}
    except (KeyError, TypeError, ValueError) as error:
        problem = f"an example is no tf.train.Example with {' and '.join(needed)}"
        raise DataError(problem) from error
