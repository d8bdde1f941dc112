"""Databases whose schemas and rows are not what they seem."""

from __future__ import annotations

import random
import sqlite3

import pytest

from leaf_data import DataError
from leaf_data.datasets.femnist import emnist_sqlite

EXAMPLES = "examples (split_name {0}, client_id {0}, serialized_example_proto {1})"
COUNTS = "client_metadata (client_id {0}, split_name {0}, num_examples {1})"

TABLES = (
    "CREATE TABLE " + EXAMPLES.format("TEXT", "BLOB"),
    "CREATE TABLE " + COUNTS.format("TEXT", "INTEGER"),
)


@pytest.fixture
def write(tmp_path, wire):
    """Writes a database of one client with two examples; statements may be changed."""

    def write(
        counts=(("a", "all_train", 2),),
        rows=(("all_train", "a", None),) * 2,
        tables=TABLES,
        after=(),
    ):
        path = tmp_path / "emnist_all.sqlite"
        path.unlink(missing_ok=True)
        database = sqlite3.connect(path)
        for statement in tables:
            database.execute(statement)
        rows = [(s, c, wire.digit() if p is None else p) for s, c, p in rows]
        database.executemany("INSERT INTO examples VALUES (?, ?, ?)", rows)
        if counts:
            database.executemany("INSERT INTO client_metadata VALUES (?, ?, ?)", counts)
        for statement in after:
            database.execute(statement)
        database.commit()
        database.close()
        return str(path)

    return write


def test_a_client_with_two_examples(write):
    arrays = emnist_sqlite.read(write())
    assert arrays["client_ids"].tolist() == ["a"]
    assert arrays["sizes_train"].tolist() == [2] and arrays["y_train"].tolist() == [
        5,
        5,
    ]


@pytest.mark.parametrize(
    "count",
    [None, "two", 1.9, float("inf"), -1, 2.0, b"\x02", 10**9, 2**62, -(2**63)],
    ids=str,
)
def test_counts_that_are_none(write, count, assert_refused, peak_of):
    columns = COUNTS.format("TEXT", "")  # No type, so that nothing is converted.
    tables = ["CREATE TABLE " + t for t in (EXAMPLES.format("TEXT", "BLOB"), columns)]
    path = write(counts=[("a", "all_train", count)], tables=tables)
    assert peak_of(lambda: assert_refused(lambda: emnist_sqlite.read(path), path)) < 5e7


def test_a_client_that_is_there_twice(write, assert_refused):
    path = write(counts=[("a", "all_train", 1), ("a", "all_train", 2)])
    assert_refused(lambda: emnist_sqlite.read(path), f"{path}: client a is there twice")


@pytest.mark.parametrize(
    "client", [None, 5, 0.5, b"a", "", "a\nb", "a\0", "\x1b[31m", "a" * 257], ids=repr
)
def test_clients_that_have_no_name(write, client, assert_refused):
    tables = [
        "CREATE TABLE " + table.format("", "BLOB") for table in (EXAMPLES, COUNTS)
    ]
    path = write(
        counts=[(client, "all_train", 2)],
        rows=[("all_train", client, None)] * 2,
        tables=tables,
    )
    assert_refused(lambda: emnist_sqlite.read(path), f"{path}: ")


def test_columns_that_compare_otherwise(write, assert_refused):
    tables = [
        "CREATE TABLE " + table.format("TEXT COLLATE NOCASE", "BLOB")
        for table in (EXAMPLES, COUNTS)
    ]
    path = write(counts=[("a", "ALL_train", 2)], tables=tables)
    assert_refused(lambda: emnist_sqlite.read(path), f"{path}: client a: 'ALL_train'")


ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "
SCHEMAS = {
    "a missing column": ["ALTER TABLE client_metadata RENAME num_examples TO other"],
    "a missing table": ["DROP TABLE client_metadata"],
    "an endless view": [
        "DROP TABLE client_metadata",
        f"CREATE VIEW client_metadata AS {ENDLESS}SELECT 'a' || n AS client_id, "
        "'all_train' AS split_name, 1 AS num_examples FROM t",
    ],
    "an endless view of nothing": [
        "DROP TABLE examples",
        f"CREATE VIEW examples AS {ENDLESS}SELECT 'a' AS client_id, 'none' AS "
        "split_name, x'00' AS serialized_example_proto FROM t",
    ],
    "a view of another case": [
        "ALTER TABLE examples RENAME TO other",
        "CREATE VIEW Examples AS SELECT * FROM other",
    ],
    "a column that is computed": [
        "DROP TABLE examples",
        "CREATE TABLE examples (client_id TEXT, split_name TEXT, "
        "serialized_example_proto BLOB AS (zeroblob(900000000)))",
        "INSERT INTO examples (client_id, split_name) VALUES ('a', 'all_train')",
    ],
    "a virtual table": [
        "DROP TABLE examples",
        "CREATE VIRTUAL TABLE examples USING fts4(client_id, split_name, "
        "serialized_example_proto)",
    ],
}


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_that_are_not_tffs(name, write, assert_refused, peak_of, no_hang):
    path = write(after=SCHEMAS[name])

    def refuse():
        assert_refused(lambda: emnist_sqlite.read(path), f"{path}: not TFF's EMNIST")

    assert peak_of(refuse) < 50e6


def _all_lead_to(page, size, cells=100):
    """An interior page of a table, all of whose cells are the way to one page."""
    made = bytearray(size)
    made[0] = 5
    made[3:5] = cells.to_bytes(2, "big")
    made[5:7] = (size - 5 * cells).to_bytes(2, "big")
    made[8:12] = page.to_bytes(4, "big")
    for cell in range(cells):
        at = size - 5 * (cell + 1)
        made[12 + 2 * cell : 14 + 2 * cell] = at.to_bytes(2, "big")
        made[at : at + 4] = page.to_bytes(4, "big")
        made[at + 4] = cell + 1
    return bytes(made)


def test_a_tree_of_more_ways_than_anybody_counts(write, assert_refused, no_hang):
    """Twelve pages, of which each leads a hundred times to the next."""
    path = write(rows=[("none", "a", b"x")] * 3)
    database = sqlite3.connect(path)
    (root,) = database.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'examples'"
    ).fetchone()
    database.close()
    with open(path, "rb") as file:
        content = file.read()
    size = int.from_bytes(content[16:18], "big")
    count = len(content) // size
    leaf = content[(root - 1) * size : root * size]
    pages = [content[k * size : (k + 1) * size] for k in range(count)]
    pages[root - 1] = _all_lead_to(count + 1, size)
    pages += [_all_lead_to(count + k + 2, size) for k in range(11)] + [leaf]
    pages[0] = pages[0][:28] + len(pages).to_bytes(4, "big") + pages[0][32:]
    with open(path, "wb") as file:
        file.write(b"".join(pages))
    assert_refused(lambda: emnist_sqlite.read(path), f"{path}: its tables have more")


def test_flipped_bytes_are_refused_or_right(write, no_hang):
    """Every byte of the schema's page, and many of the others."""
    path = write()
    with open(path, "rb") as file:
        good = file.read()
    generator = random.Random(0)
    right = emnist_sqlite.read(path)
    places = [*range(0, 100), *generator.sample(range(100, len(good)), 900)]
    refused = 0
    for place in places:
        flipped = bytearray(good)
        flipped[place] ^= 1 << generator.randrange(8)
        with open(path, "wb") as file:
            file.write(flipped)
        try:
            found = emnist_sqlite.read(path)
        except DataError as error:
            assert str(error).startswith(path) and "\n" not in str(error)
            refused += 1
        else:
            assert found.keys() == right.keys()
            assert found["sizes_train"].sum() == len(found["x_train"]) == 2
    assert 50 < refused < 1000
