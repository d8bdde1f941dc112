"""TFF's databases whose schemas, rows and examples are not what they seem."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from leaf_data.datasets.femnist.femnist import DATABASE
from leaf_data.formats import tff_sqlite

CREATE = (
    "CREATE TABLE examples (split_name {0}, client_id {0}, "
    "serialized_example_proto BLOB)",
    "CREATE TABLE client_metadata (client_id {0}, split_name {0}, num_examples {1})",
)
ANY, NO_CASE = (
    [statement.format(*words) for statement in CREATE]
    for words in (("", ""), ("TEXT COLLATE NOCASE", "INTEGER"))
)
GRAY = [0.5] * 784
TWO = (("a", "all_train", 2),)


@pytest.fixture
def write(tmp_path, example_proto, write_tff_database):
    """Writes a database of one client with two examples; all may be changed."""

    def write(counts=TWO, client="a", proto=None, **changes):
        proto = example_proto(pixels=GRAY, label=[5]) if proto is None else proto
        rows = [(client, "all_train", proto)] * 2
        path = tmp_path / "emnist_all.sqlite"
        return str(write_tff_database(path, rows, counts=counts, **changes))

    return write


def test_a_client_with_two_examples(write):
    arrays = tff_sqlite.read(write(), DATABASE)
    assert arrays["client_ids"].tolist() == ["a"]
    assert arrays["sizes_train"].tolist() == [2]
    assert arrays["y_train"].tolist() == [5, 5] and (arrays["x_train"] == 128).all()
    assert len(arrays["y_test"]) == 0


@pytest.mark.parametrize(
    ("number", "message"),
    [
        *((n, "is no number of examples") for n in (None, "two", 1.9, -1, b"\2")),
        *((n, "more than there are in its size") for n in (10**9, 2**62)),
        (1, "client a: more train examples than the 1 of client_metadata"),
        (9, "client a: 7 of 9 train examples are missing"),
    ],
    ids=str,
)
def test_counts(write, number, message, assert_refused, peak_of, tf):
    path = write(counts=[("a", "all_train", number)], create=ANY)

    def refuse():
        assert_refused(lambda: tff_sqlite.read(path, DATABASE), f"{path}: ", message)

    assert peak_of(refuse) < 5e7


ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) "
SCHEMAS = {
    "a missing column": ["ALTER TABLE client_metadata RENAME num_examples TO other"],
    "a missing table": ["DROP TABLE client_metadata"],
    "an endless view": [
        "DROP TABLE client_metadata",
        f"CREATE VIEW client_metadata AS {ENDLESS}SELECT 'a' || n AS client_id, "
        "'all_train' AS split_name, 1 AS num_examples FROM t",
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
FORGED = {
    **{name: ({"after": s}, "not TFF's EMNIST") for name, s in SCHEMAS.items()},
    "a client twice": ({"counts": TWO * 2}, "client a is there twice"),
    "no client": ({"counts": []}, "has no clients with a split all_train or all_test"),
    "another client": ({"client": "b"}, "client b: more train examples than the 0"),
    "a number as a name": (
        {"counts": [(5, "all_train", 2)], "client": 5, "create": ANY},
        "5 is no client's name",
    ),
    "an end of a line in a name": ({"counts": [("a\nb", "all_train", 2)]}, "U+000A"),
    "texts compared otherwise": (
        {"counts": [("a", "ALL_train", 2)], "create": NO_CASE},
        "client a: 'ALL_train' is no split",
    ),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_tables(name, write, assert_refused, peak_of, no_hang, tf):
    changes, message = FORGED[name]
    path = write(**changes)

    def refuse():
        assert_refused(lambda: tff_sqlite.read(path, DATABASE), f"{path}: ", message)

    assert peak_of(refuse) < 5e7


NO_EXAMPLE = "client a: an example is no tf.train.Example with pixels and label"


@pytest.mark.parametrize(
    ("proto", "message"),
    [
        *((proto, NO_EXAMPLE) for proto in (b"", "text", b"\x0b\x0c", bytes(1 << 19))),
        (dict(pixels=GRAY), NO_EXAMPLE),
        (dict(pixels=GRAY[1:], label=[1]), NO_EXAMPLE),
        (dict(pixels=[1] * 784, label=[1]), NO_EXAMPLE),
        (dict(pixels=GRAY, label=[1, 2]), NO_EXAMPLE),
        (dict(pixels=[1.5] * 784, label=[1]), "has the value 1.5, not in [0, 1]"),
        (dict(pixels=[np.nan] * 784, label=[1]), "has the value nan, not in [0, 1]"),
        (dict(pixels=GRAY, label=[62]), "client a: the label 62, not one of 0 to 61"),
        (dict(pixels=GRAY, label=[-1]), "client a: the label -1, not one of 0 to 61"),
    ],
    ids=range(12),
)
def test_forged_examples(write, proto, message, example_proto, assert_refused):
    proto = example_proto(**proto) if isinstance(proto, dict) else proto
    path = write(proto=proto)
    assert_refused(lambda: tff_sqlite.read(path, DATABASE), f"{path}: ", message)


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
    path = write(proto=b"x", after=["UPDATE examples SET split_name = 'none'"])
    database = sqlite3.connect(path)
    (root,) = database.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'examples'"
    ).fetchone()
    database.close()
    with open(path, "rb") as file:
        content = file.read()
    size = int.from_bytes(content[16:18], "big")
    pages = [content[k : k + size] for k in range(0, len(content), size)]
    count, leaf = len(pages), pages[root - 1]
    pages[root - 1] = _all_lead_to(count + 1, size)
    pages += [_all_lead_to(count + k + 2, size) for k in range(11)] + [leaf]
    pages[0] = pages[0][:28] + len(pages).to_bytes(4, "big") + pages[0][32:]
    with open(path, "wb") as file:
        file.write(b"".join(pages))
    assert_refused(
        lambda: tff_sqlite.read(path, DATABASE), f"{path}: its tables have more"
    )
