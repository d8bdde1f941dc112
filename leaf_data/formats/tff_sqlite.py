"""Databases of examples by client that TFF ships: found or downloaded, and read.

TFF's `SqlClientData` says what is in one: a table `examples` with `client_id`,
`split_name` and `serialized_example_proto`, and a table `client_metadata` with each
client's `num_examples`. It asks for one client after the other, its name written into
the question; here one pass over the file reads them all.

A database brings its own schema, and what it calls a table can be a view without an
end, a virtual table, or columns that are computed. Read here are plain columns of real
tables, with as many steps as the file's size can need.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import logging
import lzma
import os
import sqlite3
import tempfile
import urllib.parse
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tqdm

from leaf_data.errors import DataError, check_name, one_line, reading
from leaf_data.federated import Origin
from leaf_data.formats import cache, data_files
from leaf_data.formats.cache import Arrays
from leaf_data.formats.data_files import Folder

PARTS = ("train", "test")

_TABLES = {
    "client_metadata": ("client_id", "split_name", "num_examples"),
    "examples": ("client_id", "split_name", "serialized_example_proto"),
}
# The largest there is, CelebA's image of 84 x 84 x 3 integers, has 43 KB.
_LARGEST_EXAMPLE = 1 << 18
_STEPS_AT_LEAST, _EVERY = 1_000_000, 10_000
# What unpacking may take of memory, and make of each packed byte; TFF's databases are
# some 20 times as large as they are packed.
_MEMORY, _LARGER, _BLOCK = 1 << 28, 100, 1 << 20
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Database:
    """A database as TFF ships it, and what is made of its examples."""

    dataset: str  # Its name in `leaf_data`.
    file: str  # Its name; TFF's download adds `.lzma`.
    words: str  # What it is, e.g. "TFF's EMNIST".
    splits: Mapping[str, str]  # For each `split_name` to read, "train" or "test".
    # The shape and type of each feature that an example has to have.
    features: Mapping[str, tuple[tuple[int, ...], str]]
    fields: cache.Fields  # What is made of an example; `y` is the label.
    num_classes: int
    convert: Callable[[Arrays], Mapping[str, Any]]  # An example's features to fields.
    download: Callable[[str], Any]  # Lets TFF download it into a folder.


def load(
    database: Database, folders: Sequence[str], cache_dir: Folder | None, download: bool
) -> tuple[Arrays, Origin]:
    """Finds, downloads if allowed, and reads a database, or reads its cache."""
    path, source = _find(database, folders, cache_dir, download)
    for more in (f"{path}-wal", f"{path}-journal"):
        if os.path.exists(more) and os.path.getsize(more):
            raise DataError(
                f"{more}: changes that are not in {path} yet: close what writes it, or "
                "open it once with sqlite3"
            )
    folder = os.path.dirname(path)
    arrays, (digest,) = cache.cached(
        f"{database.dataset}_tff",
        folder,
        [path],
        lambda: _unpacked(path, database),
        cache_dir,
        lambda found: cache.check_clients(
            found, PARTS, database.fields, database.num_classes
        ),
    )
    return arrays, Origin(source, ((os.path.basename(path), digest),), folder)


def _find(
    database: Database, folders: Sequence[str], cache_dir: Folder | None, download: bool
) -> tuple[str, str]:
    name = database.file
    for path in (os.path.join(f, n) for f in folders for n in (name, name + ".lzma")):
        if os.path.isfile(path):
            return path, database.words
    missing = data_files.missing(database.dataset, folders, f"{name} or {name}.lzma")
    if not download:
        raise missing
    own = os.path.expanduser(os.fspath(cache_dir or os.path.join("~", ".tff")))
    path = os.path.join(own, name)
    if os.path.isfile(path):
        return path, f"{database.words} (its cache)"
    _LOG.warning("%s: downloading %s by TFF", database.dataset, name)
    try:
        os.makedirs(own, exist_ok=True)
        # TFF writes to the file's final name and trusts what it finds there, whole or
        # not: so it is given a folder of its own first.
        with tempfile.TemporaryDirectory(dir=own) as partial:
            database.download(partial)
            os.replace(os.path.join(partial, name), path)
    except Exception as error:  # TensorFlow and urllib raise many kinds.
        start = f"{missing}, and" if folders else f"{database.dataset}:"
        raise DataError(
            f"{start} TFF could not download {name} ({one_line(error)}): pass data_dir "
            f"or set {data_files.ENVIRONMENT_VARIABLE} to the folder that holds it"
        ) from error
    return path, f"{database.words} (its download)"


def _unpacked(path: str, database: Database) -> Arrays:
    if not path.endswith(".lzma"):
        return read(path, database)
    with reading(path, "cannot be unpacked"):
        # Gigabytes, where the environment variable TMPDIR says.
        scratch = tempfile.TemporaryDirectory()
    with scratch as folder:
        unpacked = os.path.join(folder, database.file)
        with reading(path, "cannot be unpacked", EOFError, lzma.LZMAError):
            _unpack(path, unpacked)
        try:
            return read(unpacked, database)
        except DataError as error:
            raise DataError(str(error).replace(unpacked, path)) from error


def _unpack(path: str, unpacked: str) -> None:
    unpack = lzma.LZMADecompressor(memlimit=_MEMORY)
    with data_files.open_file(path) as packed, open(unpacked, "wb") as file:
        left = _LARGER * (os.fstat(packed.fileno()).st_size + _BLOCK)
        while not unpack.eof:
            block = packed.read(_BLOCK) if unpack.needs_input else b""
            if unpack.needs_input and not block:
                raise EOFError("it ends too early")
            data = unpack.decompress(block, _BLOCK)
            left -= len(data)
            if left < 0:
                raise lzma.LZMAError(f"it becomes {_LARGER} times as large and more")
            file.write(data)
        if unpack.unused_data or packed.read(1):
            raise lzma.LZMAError("more follows its end")


def read(path: str, database: Database) -> Arrays:
    """Reads an unpacked database, in the form of `cache.check_clients`."""
    words = f"not {database.words}, or damaged"
    # What SQLite says of a damaged schema is not always text.
    with reading(path, words, sqlite3.Error, UnicodeDecodeError):
        with _opened(path) as tables:
            return _read(path, tables, database)


@contextlib.contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """Opens a database, read only, for queries of plain columns and nothing else."""
    with data_files.open_file(path) as file:
        left = _STEPS_AT_LEAST + os.fstat(file.fileno()).st_size
    uri = f"file:{urllib.parse.quote(os.fsencode(path))}?mode=ro&immutable=1"

    def goes_on_too_long() -> bool:
        nonlocal left
        left -= _EVERY
        return left < 0

    def authorize(action: int, *where: str | None) -> int:
        # Not what a view selects, whose name comes last, and no function.
        selects = action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ)
        return sqlite3.SQLITE_DENY if where[-1] or not selects else sqlite3.SQLITE_OK

    with contextlib.closing(sqlite3.connect(uri, uri=True)) as tables:
        tables.set_progress_handler(goes_on_too_long, _EVERY)
        try:
            tables.execute("PRAGMA trusted_schema = OFF")
            tables.execute("PRAGMA cell_size_check = ON")
            for table, columns in _TABLES.items():
                _check(tables, table, columns)
            tables.set_authorizer(authorize)
            yield tables
        except sqlite3.OperationalError as error:
            if left < 0:
                raise DataError(
                    f"{path}: its tables have more rows than there are in its size"
                ) from error
            raise


def _check(tables: sqlite3.Connection, table: str, columns: Sequence[str]) -> None:
    # What a view or a virtual table says of itself is in its statement alone.
    made = tables.execute(
        "SELECT sql FROM sqlite_master WHERE name = ? COLLATE NOCASE", [table]
    ).fetchall()
    if not made or not all(str(sql).startswith("CREATE TABLE") for (sql,) in made):
        raise sqlite3.DatabaseError(f"no real table {table}")
    # The last value is 0 for a plain column, which is neither hidden nor computed.
    info = tables.execute(f"PRAGMA table_xinfo({table})")
    plain = {str(row[1]).lower() for row in info if not row[-1]}
    for column in columns:
        if column not in plain:
            raise sqlite3.DatabaseError(f"no plain column {table}.{column}")


def _rows(
    path: str, tables: sqlite3.Connection, table: str, value: str, splits: Any
) -> Iterator[tuple[str, str, Any]]:
    """Yields part, client and value of each row, in one pass in the file's order."""
    # No index: what one says may be something else than what the table does.
    rows = tables.execute(
        f"SELECT client_id, split_name, {value} FROM {table} NOT INDEXED "
        f"WHERE split_name IN ({', '.join(map(repr, splits))})"
    )
    for client, split, found in rows:
        if type(client) is not str or not client:
            raise DataError(f"{path}: {client!r:.40} is no client's name")
        check_name(client, f"{path}: client")
        if split in splits:  # A column can compare texts in its own way.
            yield splits[split], client, found


def _read(path: str, tables: sqlite3.Connection, database: Database) -> Arrays:
    splits = database.splits
    said: dict[tuple[str, str], Any] = {}
    said_rows = _rows(path, tables, "client_metadata", "num_examples", splits)
    for part, client, count in said_rows:
        if (part, client) in said:
            raise DataError(f"{path}: client {client} is there twice")
        said[part, client] = count
    if not said:
        raise DataError(f"{path}: has no clients with a split {' or '.join(splits)}")
    # Counted first: memory is asked for what is there, and not for what is said.
    counted = _rows(path, tables, "examples", "0", splits)
    sizes = collections.Counter((part, client) for part, client, _ in counted)
    for part, client in {**said, **sizes}:
        count = said.get((part, client), 0)
        if type(count) is not int or count != sizes[part, client]:
            raise DataError(
                f"{path}: client {client}: {sizes[part, client]} {part} examples, in "
                f"client_metadata {count!r:.40}"
            )
    clients = sorted({client for _, client in said})
    arrays: Arrays = {"client_ids": np.array(clients, str)}
    free: dict[tuple[str, str], int] = {}  # The next row to be filled.
    for part in PARTS:
        own = np.array([sizes[part, client] for client in clients], np.int64)
        arrays[f"sizes_{part}"] = own
        for field, (shape, dtype) in database.fields.items():
            arrays[f"{field}_{part}"] = np.zeros((own.sum(), *shape), dtype)
        free.update(zip([(part, c) for c in clients], np.cumsum(own) - own))
    rows = _rows(path, tables, "examples", "serialized_example_proto", splits)
    total = sum(sizes.values())
    progress = tqdm.tqdm(rows, "TFF's data, once", total, delay=2, mininterval=1)
    for part, client, proto in progress:
        try:
            values = database.convert(_parse(proto, database.features))
        except DataError as error:
            raise DataError(f"{path}: client {client}: {error}") from error
        for field, value in values.items():
            arrays[f"{field}_{part}"][free[part, client]] = value
        free[part, client] += 1
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
