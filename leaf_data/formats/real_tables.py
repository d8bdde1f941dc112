"""SQLite databases that others made, of which tables are read and nothing is run.

A database brings its own schema, and what it calls a table can be a view without an
end, a virtual table, or columns that are computed. Read here are plain columns of real
tables, in one pass, with as many steps as the file's size can need.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from typing import Optional

from leaf_data.errors import DataError
from leaf_data.formats import regular

_STEPS_AT_LEAST, _EVERY = 1_000_000, 10_000


@contextlib.contextmanager
def opened(
    path: str, tables: Mapping[str, Sequence[str]]
) -> Iterator[sqlite3.Connection]:
    """Opens a database, read only, for queries of these tables and nothing else."""
    with regular.open_file(path) as file:
        left = _STEPS_AT_LEAST + os.fstat(file.fileno()).st_size
    uri = f"file:{urllib.parse.quote(os.fsencode(path))}?mode=ro&immutable=1"

    def goes_on_too_long() -> bool:
        nonlocal left
        left -= _EVERY
        return left < 0

    with contextlib.closing(sqlite3.connect(uri, uri=True)) as database:
        database.set_progress_handler(goes_on_too_long, _EVERY)
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA cell_size_check = ON")
            for table, columns in tables.items():
                _check(database, table, columns)
            database.set_authorizer(_authorize)
            yield database
        except sqlite3.OperationalError as error:
            if left < 0:
                raise DataError(
                    f"{path}: its tables have more rows than there are in its size"
                ) from error
            raise


def _check(database: sqlite3.Connection, table: str, columns: Sequence[str]) -> None:
    found = database.execute(
        "SELECT type, rootpage, sql FROM sqlite_master WHERE name = ? COLLATE NOCASE "
        "AND type IN ('table', 'view')",
        [table],
    ).fetchall()
    if not found:
        raise sqlite3.DatabaseError(f"no such table: {table}")
    for kind, page, sql in found:
        # What a view or a virtual table says of itself is in its statement.
        if kind != "table" or not page or not str(sql).startswith("CREATE TABLE"):
            raise sqlite3.DatabaseError(f"{table} is no real table")
    hidden = {
        str(name).lower(): hidden
        for _, name, _, _, _, _, hidden in database.execute(
            f"PRAGMA table_xinfo({table})"
        )
    }
    for column in columns:
        if column not in hidden:
            raise sqlite3.DatabaseError(f"no such column: {table}.{column}")
        if hidden[column]:
            raise sqlite3.DatabaseError(f"{table}.{column} is computed")


def _authorize(
    action: int,
    first: Optional[str],
    second: Optional[str],
    database: Optional[str],
    view: Optional[str],
) -> int:
    """Allows to select plain columns; not what a view selects, and no function."""
    if action in (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ) and view is None:
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY
