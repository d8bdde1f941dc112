"""Random changes of databases, by SQLite itself and of their bytes."""

from __future__ import annotations

import itertools
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


def _edit_rows(source: Random, database: sqlite3.Connection) -> None:
    table, column = source.choice(
        (("client_metadata", "num_examples"), ("examples", "serialized_example_proto"))
    )
    rows = database.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
    if not rows:
        return
    (row, value), kind = source.choice(rows), source.randrange(5)
    if kind == 0:
        database.execute(f"DELETE FROM {table} WHERE rowid = ?", [row])
    elif kind == 1:
        names = f"client_id, split_name, {column}"
        select = f"SELECT {names} FROM {table} WHERE rowid = ?"
        database.execute(f"INSERT INTO {table} ({names}) {select}", [row])
    else:
        if kind == 2 and isinstance(value, bytes):
            value = flip(source, value)
        else:
            column = source.choice(("client_id", "split_name", column))
            text = source.choice(TEXTS).encode(errors="surrogatepass").decode("latin1")
            number = source.choice(NUMBERS)
            if isinstance(number, int) and abs(number) >= 2**63:
                number = str(number)
            value = source.choice((text, number, number, None, b"", b"\x02"))
        statement = f"UPDATE {table} SET {column} = ? WHERE rowid = ?"
        database.execute(statement, [value, row])


def edit_database(source: Random, data: bytes) -> bytes:
    """Changes of a database's rows and schema, by SQLite itself, and of its bytes."""
    if source.random() < 0.3:
        return flip_database(source, data)
    with tempfile.TemporaryDirectory(prefix="fuzz_") as folder:
        path = pathlib.Path(folder, "seed.sqlite")
        path.write_bytes(data)
        database = sqlite3.connect(path)
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
