"""Databases of examples by client, as TFF ships them.

TFF's `SqlClientData` says what is in one: a table `examples` with `client_id`,
`split_name` and `serialized_example_proto`, and a table `client_metadata` with each
client's `num_examples`. It asks for one client after the other, its name written into
the question; here one pass over the file reads them all.
"""

from __future__ import annotations

import dataclasses
import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tqdm

from leaf_data import client_names
from leaf_data.errors import DataError, one_line, reading
from leaf_data.formats import cache, real_tables
from leaf_data.formats.cache import Arrays

_TABLES = {
    "client_metadata": ("client_id", "split_name", "num_examples"),
    "examples": ("client_id", "split_name", "serialized_example_proto"),
}
PARTS = ("train", "test")
# The largest there is, CelebA's image of 84 x 84 x 3 integers, has 43 KB.
_LARGEST_EXAMPLE = 1 << 18
_MORE = 1 << 20  # Bytes that a file may seem to lack for its examples.

_Places = dict[tuple[str, str], Iterator[int]]


@dataclasses.dataclass(frozen=True)
class Database:
    """A database as TFF ships it, and what is made of its examples."""

    dataset: str  # Its name in `leaf_data`.
    file: str  # Its name; TFF's download adds `.lzma`.
    words: str  # What it is, e.g. "TFF's EMNIST".
    splits: Mapping[str, str]  # For each `split_name` to read, "train" or "test".
    # The shape and type of each feature that an example has to have, and the bytes
    # that it has at least: by these the file's size bounds the number of examples.
    features: Mapping[str, tuple[tuple[int, ...], str]]
    smallest: int
    fields: cache.Fields  # What is made of an example; `y` is the label.
    num_classes: int
    convert: Callable[[Arrays], Mapping[str, Any]]  # An example's features to fields.
    download: Callable[[str], Any]  # Lets TFF download it into a folder.


def read(path: str, database: Database) -> Arrays:
    """Reads an unpacked database; `tff_database.load` says what it returns."""
    # What SQLite says of a damaged schema is not always text.
    kinds = sqlite3.Error, UnicodeDecodeError
    with reading(path, f"not {database.words}, or damaged", *kinds):
        most = (os.path.getsize(path) + _MORE) // database.smallest
        with real_tables.opened(path, _TABLES) as tables:
            counts = _counts(path, tables, database.splits, most)
            return _read(path, tables, counts, database)


def _rows(
    path: str,
    tables: sqlite3.Connection,
    table: str,
    splits: Mapping[str, str],
) -> Iterator[tuple[str, str, Any]]:
    """Yields part, client and value of each row, in one pass in the file's order."""
    # No index: what one says may be something else than what the table does.
    query = f"SELECT {', '.join(_TABLES[table])} FROM {table} NOT INDEXED"
    chosen = ", ".join(map(repr, splits))
    for client, split, value in tables.execute(
        f"{query} WHERE split_name IN ({chosen})"
    ):
        if type(client) is not str or not client:
            raise DataError(f"{path}: {client!r:.40} is no client's name")
        client_names.check(client, f"{path}: client")
        # A column can compare texts in its own way.
        if split not in splits:
            raise DataError(f"{path}: client {client}: {split!r:.40} is no split")
        yield splits[split], client, value


def _counts(
    path: str, tables: sqlite3.Connection, splits: Mapping[str, str], most: int
) -> dict[tuple[str, str], int]:
    """Returns the numbers of examples by part and client."""
    counts: dict[tuple[str, str], int] = {}
    for part, client, count in _rows(path, tables, "client_metadata", splits):
        if type(count) is not int or count < 0:
            raise DataError(
                f"{path}: client {client}: {count!r:.40} is no number of examples"
            )
        if (part, client) in counts:
            raise DataError(f"{path}: client {client} is there twice")
        counts[part, client] = count
    if not counts:
        raise DataError(f"{path}: has no clients with a split {' or '.join(splits)}")
    total = sum(counts.values())
    if total > most:
        raise DataError(
            f"{path}: says it has {total:,} examples, more than there are in its size"
        )
    return counts


def _read(
    path: str,
    tables: sqlite3.Connection,
    counts: Mapping[tuple[str, str], int],
    database: Database,
) -> Arrays:
    clients = sorted({client for _, client in counts})
    arrays: Arrays = {"client_ids": np.array(clients, str)}
    free: _Places = {}  # The rows of the arrays that are still to be filled.
    for part in PARTS:
        sizes = np.array([counts.get((part, c), 0) for c in clients], np.int64)
        arrays[f"sizes_{part}"] = sizes
        for field, (shape, dtype) in database.fields.items():
            arrays[f"{field}_{part}"] = np.zeros((sizes.sum(), *shape), dtype)
        for client, size, end in zip(clients, sizes, np.cumsum(sizes)):
            free[part, client] = iter(range(end - size, end))
    rows = tqdm.tqdm(
        _rows(path, tables, "examples", database.splits),
        "TFF's data, once",
        total=sum(counts.values()),
        delay=2,
        mininterval=1,
    )
    for part, client, proto in rows:
        place = next(free.get((part, client), iter(())), None)
        if place is None:
            raise DataError(
                f"{path}: client {client}: more {part} examples than the "
                f"{counts.get((part, client), 0)} of client_metadata"
            )
        try:
            values = database.convert(_parse(proto, database.features))
        except DataError as error:
            raise DataError(f"{path}: client {client}: {error}") from error
        for field, value in values.items():
            arrays[f"{field}_{part}"][place] = value
    for (part, client), left in free.items():
        missing = len(list(left))
        if missing:
            raise DataError(
                f"{path}: client {client}: {missing} of {counts[part, client]} {part} "
                "examples are missing"
            )
    return arrays


def _parse(proto: Any, features: Mapping[str, tuple[tuple[int, ...], str]]) -> Arrays:
    """Returns the features of a serialized `tf.train.Example`, of their shapes."""
    import tensorflow as tf

    found = {}
    try:
        if type(proto) is not bytes or len(proto) > _LARGEST_EXAMPLE:
            raise ValueError(f"{type(proto).__name__}, or too large")
        own = tf.train.Example.FromString(proto).features.feature
        for name, (shape, dtype) in features.items():
            lists = {"float32": own[name].float_list, "int64": own[name].int64_list}
            # Reshaped, so that other numbers of values are refused.
            found[name] = np.array(lists[dtype].value, dtype).reshape(shape)
    except Exception as error:  # The parser has a kind of its own.
        words = f"an example is no tf.train.Example with {' and '.join(features)}"
        raise DataError(f"{words} ({one_line(error)})") from error
    return found
