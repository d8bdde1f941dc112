"""Random changes of what is more than values: databases, messages in them."""

from __future__ import annotations

import itertools
import os
import pathlib
import random
import sqlite3
import tempfile

from mutations import NUMBERS, TEXTS, flip

Random = random.Random

ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT "
SCHEMAS = (
    "ALTER TABLE client_metadata RENAME num_examples TO other",
    "ALTER TABLE examples ADD COLUMN more",
    "CREATE INDEX i ON examples (split_name, client_id)",
    "CREATE VIEW v AS " + ENDLESS + "n FROM t",
    "DROP TABLE client_metadata; CREATE VIEW client_metadata AS " + ENDLESS
    + "'a' || n AS client_id, 'all_train' AS split_name, 1 AS num_examples FROM t",
    "DROP TABLE examples; CREATE VIEW examples AS " + ENDLESS + "'a' AS client_id, "
    "'none' AS split_name, x'00' AS serialized_example_proto FROM t",
    "DROP TABLE examples; CREATE TABLE examples (client_id, split_name, "
    "serialized_example_proto AS (zeroblob(900000000)))",
    "DROP TABLE examples; CREATE VIRTUAL TABLE examples USING fts4(client_id)",
    "PRAGMA journal_mode = WAL",
    "PRAGMA user_version = 7",
    "DELETE FROM client_metadata",
    "VACUUM",
)  # fmt: skip


def _nasty(source: Random) -> object:
    kind = source.randrange(4)
    if kind == 0:
        return source.choice(TEXTS).encode(errors="surrogatepass").decode("latin1")
    if kind == 1:
        return source.choice((None, b"", b"\x02", source.randbytes(20)))
    number = source.choice(NUMBERS)
    return number if isinstance(number, float) or abs(number) < 2**63 else str(number)


def _edit_rows(source: Random, database: sqlite3.Connection) -> None:
    table, columns = source.choice(
        (
            ("client_metadata", ("client_id", "split_name", "num_examples")),
            ("examples", ("client_id", "split_name", "serialized_example_proto")),
        )
    )
    rows = [row for (row,) in database.execute(f"SELECT rowid FROM {table}")]
    if not rows:
        return
    row, kind = source.choice(rows), source.randrange(5)
    if kind == 0:
        database.execute(f"DELETE FROM {table} WHERE rowid = ?", [row])
    elif kind == 1:
        names = ", ".join(columns)
        database.execute(
            f"INSERT INTO {table} ({names}) SELECT {names} FROM {table} "
            "WHERE rowid = ?",
            [row],
        )
    elif kind == 2 and table == "examples":
        (proto,) = database.execute(
            f"SELECT {columns[2]} FROM examples WHERE rowid = ?", [row]
        ).fetchone()
        if isinstance(proto, bytes):
            change = source.choice((flip, edit_message))
            values = [change(source, proto), row]
            database.execute(
                f"UPDATE examples SET {columns[2]} = ? WHERE rowid = ?", values
            )
    else:
        column = source.choice(columns)
        database.execute(
            f"UPDATE {table} SET {column} = ? WHERE rowid = ?", [_nasty(source), row]
        )


def edit_database(source: Random, data: bytes) -> bytes:
    """Changes of a database's rows and schema, by SQLite itself, and of its bytes."""
    if source.random() < 0.3:
        return flip_database(source, data)
    handle, name = tempfile.mkstemp(prefix="fuzz_", suffix=".sqlite")
    path = pathlib.Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        database = sqlite3.connect(name)
        steps = itertools.count()  # Endless views are made here, and not waited for.
        database.set_progress_handler(lambda: next(steps) > 100, 1000)
        try:
            for _ in range(source.choice((1, 1, 2, 3))):
                if source.random() < 0.2:
                    database.executescript(source.choice(SCHEMAS))
                else:
                    _edit_rows(source, database)
            database.commit()
        except (sqlite3.Error, OverflowError, UnicodeError):
            pass  # Whatever came of it is an input, too.
        finally:
            database.close()
        data = path.read_bytes()
    finally:
        for more in ("", "-wal", "-shm", "-journal"):
            pathlib.Path(name + more).unlink(missing_ok=True)
    return flip_database(source, data) if source.random() < 0.2 else data


def flip_database(source: Random, data: bytes) -> bytes:
    """Changes of bytes where SQLite's own words are: headers of file and pages."""
    if source.random() < 0.3 or len(data) < 4096:
        return flip(source, data)
    made = bytearray(data)
    for _ in range(source.choice((1, 1, 2, 4))):
        page = 4096 * source.randrange(len(data) // 4096)
        start = source.choice((page, page, 0, 100, page + source.randrange(4096)))
        at = min(start + source.randrange(20), len(made) - 1)
        made[at] = source.choice((0, 1, 2, 5, 10, 13, 127, 128, 255, made[at] ^ 1))
    return bytes(made)


def varint(number: int) -> bytes:
    """A number as messages have it, of any size."""
    groups = []
    while number > 127:
        groups.append(number & 127 | 128)
        number >>= 7
    return bytes([*groups, number])


def field(number: int, content: bytes) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(name: str, floats: bytes | None = None, integers: bytes = b"") -> bytes:
    """A feature of floats or of integers, as their packed bytes."""
    kind, values = (3, integers) if floats is None else (2, floats)
    return field(1, field(1, name.encode()) + field(2, field(kind, field(1, values))))


def edit_message(source: Random, proto: bytes) -> bytes:
    """Changes of one field of a message, wherever it is nested."""
    fields, at = [], 0
    while at < len(proto):
        start = at
        try:
            tag, at = _read_varint(proto, at)
            size, at = _read_varint(proto, at)
        except IndexError:
            return flip(source, proto)
        if tag & 7 != 2 or at + size > len(proto):
            return flip(source, proto)
        fields.append((tag, proto[at : at + size]))
        at += size
        assert at > start
    if not fields:
        return flip(source, proto)
    place = source.randrange(len(fields))
    tag, content = fields[place]
    kind = source.randrange(8)
    number = varint(source.choice([n for n in NUMBERS if type(n) is int and n >= 0]))
    encoded = varint(tag) + varint(len(content)) + content
    if kind < 4:
        content = edit_message(source, content)
        encoded = varint(tag) + varint(len(content)) + content
    elif kind == 4:
        encoded = varint(tag & ~7) + number  # An integer where bytes should be.
    elif kind == 5:
        encoded = varint(tag) + number + content
    elif kind == 6:
        encoded = varint(tag & ~7 | source.randrange(8)) + content
    else:
        encoded = source.choice((b"", encoded * 2, varint(tag) + field(1, number)))
    whole = [varint(t) + varint(len(c)) + c for t, c in fields]
    whole[place] = encoded
    return b"".join(whole)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        number |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return number, at
