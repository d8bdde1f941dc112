"""`Examples`: clients, subsets, and every error of theirs."""

import numpy as np
import pandas as pd
import pytest
from made_up import assert_refused, three_clients

from leaf_data import Examples, Origin
from leaf_data.client_ids import ClientIds, ClientNumber


def test_clients_are_views_by_number_or_id():
    examples = three_clients()
    assert (examples.num_clients, examples.num_examples) == (3, 6)
    assert examples.sizes.tolist() == [3, 0, 3]
    assert examples.element_shape == (2,)
    client = examples.client("c")
    assert list(client) == ["x", "y", "blur"]
    assert client["x"].tolist() == [[6, 7], [8, 9], [10, 11]]
    assert client["y"].tolist() == [0, 1, 2]
    assert client["blur"].tolist() == pytest.approx([0.6, 0.8, 1.0])
    for name, array in examples.client(2).items():
        np.testing.assert_array_equal(array, client[name])
    assert len(examples.client(np.int64(1))["y"]) == 0
    assert np.shares_memory(client["x"], examples.x)


def test_examples_are_read_only():
    x = np.zeros((6, 2), np.uint8)
    examples = three_clients(x=x)
    with pytest.raises(ValueError, match="read-only"):
        examples.client(0)["x"][0] = 1
    with pytest.raises(AttributeError):
        examples.y = None
    x[0] = 1  # The caller's own array stays the caller's.


def test_subset_and_take():
    subset = three_clients().subset(["c", 0, "b"])
    assert subset.client_ids == ("c", "a", "b")
    assert subset.x.tolist() == [[6, 7], [8, 9], [10, 11], [0, 1], [2, 3], [4, 5]]
    assert subset.row_splits.tolist() == [0, 3, 6, 6]
    assert subset.attributes["blur"][0] == pytest.approx(0.6)
    assert three_clients().subset(["b"]).num_examples == 0
    taken = three_clients().take(2)
    assert taken.client_ids == ("a", "b", "c")
    assert taken.sizes.tolist() == [2, 0, 2]
    assert taken.x.tolist() == [[0, 1], [2, 3], [6, 7], [8, 9]]
    assert taken.attributes["blur"].tolist() == pytest.approx([0, 0.2, 0.6, 0.8])
    assert three_clients().take(0).num_examples == 0


REFUSED_NAMES = {
    "a\nb": "U+000A",
    "a\0": "U+0000",
    "\x1b[31mred": "U+001B",
    "a\x85b": "U+0085",
    "a\u2028b": "U+2028",
    "a\ud800": "U+D800",
    "n" * 257: "257 characters",
}


def test_names_that_no_record_can_hold():
    for name, problem in REFUSED_NAMES.items():
        ids = ("a", name, "c")
        assert_refused(lambda i=ids: three_clients(client_ids=i), "client id ", problem)
    for name in ("f0001_41", "=1+1|cmd", "é\u00a0 ,;\"'", "\U0001f600", "n" * 256):
        assert three_clients(client_ids=("a", name, "c")).client_ids[1] == name


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"x": np.zeros((6, 2))}, "x must be an array of uint8 or float32 or "),
        ({"x": [[1]]}, "int64, got list"),
        ({"y": np.zeros(6, np.int64)}, "y must be an array of int32 or float32, got"),
        (
            {"row_splits": np.zeros(4, np.int32)},
            "row_splits must be an array of int64",
        ),
        (
            {"x": np.zeros((5, 2), np.uint8)},
            "one row for each example: x is (5, 2), y is (6,)",
        ),
        (
            {"y": np.full(6, -1, np.int32)},
            "y has a negative label, -1: client 'a' has it",
        ),
        (
            {"y": np.zeros((6, 2, 2), np.int32)},
            "or one for each of its T positions, [n, T]; got the shape [6, 2, 2]",
        ),
        ({"y": np.full(6, np.nan, np.float32)}, "y has a value that is not finite"),
        ({"client_ids": ()}, "at least one client"),
        ({"client_ids": ("a", "", "c")}, "non-empty text, got ''"),
        ({"client_ids": ("a", 1, "c")}, "non-empty text, got 1"),
        ({"client_ids": ("a", "b", "a")}, "client id 'a' appears twice"),
        ({"client_ids": ("a", "b")}, "row_splits must be [3] for 2 clients, got [4]"),
        ({"row_splits": np.array([0, 3, 3, 5])}, "the 6 examples; it goes from 0 to 5"),
        ({"row_splits": np.array([1, 3, 3, 6])}, "it goes from 1 to 6"),
        ({"row_splits": np.array([0, 4, 3, 6])}, "from 0 to 6 and falls between"),
        ({"attributes": {"x": np.zeros(6)}}, "an attribute cannot be named 'x'"),
        ({"attributes": {"row_splits": np.zeros(6)}}, "be named 'row_splits'"),
        ({"y": np.ma.array(np.zeros(6, np.int32), mask=[1, *[0] * 5])}, "y has masked"),
        ({"attributes": {"blur": np.ma.masked_equal([0.0] * 6, 0)}}, "blur has masked"),
        ({"attributes": {"blur": np.zeros(5)}}, "attribute 'blur' must have one"),
    ],
)
def test_mismatched_examples_are_rejected(changes, message):
    assert_refused(lambda: three_clients(**changes), message)


@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_inputs_of_other_types_and_labels_that_are_numbers(dtype):
    x = np.arange(12).reshape(6, 2).astype(dtype)
    y = np.linspace(-1, 1, 18, dtype=np.float32).reshape(6, 3)
    examples = three_clients(x=x, y=y)
    assert not examples.has_classes and three_clients().has_classes
    subset = examples.subset(["c"]).take(2)
    assert subset.x.dtype == dtype and subset.y.dtype == np.float32
    np.testing.assert_array_equal(subset.y, y[3:5])


POOL = {"x": np.arange(8, dtype=np.uint8).reshape(4, 2), "y": [0, 1, 2, 3]}


def from_pool(*parts, **changes):
    return Examples.from_parts(**{**POOL, **changes}, parts=parts, client_ids=[*"abc"])


def test_names_without_an_order_are_rejected():
    with pytest.raises(ValueError, match="client_ids must be a sequence, got"):
        Examples.from_parts(**POOL, parts=[[0], [1]], client_ids={"a", "b"})


def test_parts_are_indices_or_masks_of_a_pool():
    mask = np.array([False, True, False, True])
    examples = from_pool([2], mask, [])
    assert examples.y.tolist() == [2, 1, 3] and examples.sizes.tolist() == [1, 2, 0]
    assert examples.x.tolist() == [[4, 5], [2, 3], [6, 7]]
    assert from_pool([0, 1], [], [], y=mask).y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("part", "changes", "message"),
    [
        ([True, False], {}, "parts[1] must be indices, or a mask of 4, got bool [2]"),
        ([0.5], {}, "parts[1] must be indices, or a mask of 4, got float64 [1]"),
        (3, {}, "parts[1] must be indices, or a mask of 4, got int64 []"),
        ([-1], {}, "parts[1] has -1: indices go from 0 to 3"),
        ([3, 4], {}, "parts[1] has 4: indices go from 0 to 3"),
        ([0], {"y": np.array([2**32 + 1] * 4)}, "y has a label beyond 2^31 - 2"),
        ([0], {"y": np.array([2**63] * 4, np.uint64)}, "y has a label beyond"),
        *(
            ([0], {"y": np.zeros(4, kind)}, "y must be integers or floats, got ")
            for kind in (object, complex, "M8[s]", "U1")
        ),
        ([0], {"y": [0] * 5}, "one row per example, but x is (4, 2), y is (5,)"),
        ([0], {"attributes": {"blur": 1}}, "x is (4, 2), y is (4,), blur is ()"),
        ([0], {"attributes": {"x": [1] * 4}}, "an attribute cannot be named 'x'"),
        (["a"], {}, "parts[1] must be indices, or a mask of 4, got <U1 [1]"),
        (np.ma.array([0, 1], mask=[0, 1]), {}, "parts[1] has masked values"),
        ([0], {"x": np.ma.masked_equal(POOL["x"], 3)}, "x has masked values"),
        (pd.Index([1, 0]), {}, "give indices, such as table.groupby(column).indices"),
        (pd.RangeIndex(2), {}, "parts[1] is an index of pandas"),
    ],
)
def test_an_invalid_pool_or_part_is_rejected(part, changes, message):
    assert_refused(lambda: from_pool([0], part, [], **changes), message)


def test_rows_of_a_data_frame_are_positions():
    """Of a shuffled one, whose labels are other numbers than the places."""
    table = pd.DataFrame({"user": [*"abacbc"], "x": np.arange(6.0), "y": range(6)})
    shuffled = table.iloc[[4, 2, 0, 5, 1, 3]]
    x, y = shuffled[["x"]].astype("float32"), shuffled["y"]
    expected = {"a": [2, 0], "b": [4, 1], "c": [5, 3]}
    for parts in (
        [*shuffled.groupby("user").indices.values()],
        [shuffled["user"] == user for user in "abc"],
        [(shuffled["user"] == user).tolist() for user in "abc"],
    ):
        examples = Examples.from_parts(x, y, parts, [*"abc"])
        assert {k: examples.client(k)["y"].tolist() for k in "abc"} == expected
    groups = [*shuffled.groupby("user").groups.values()]
    masks = [table["user"] == user for user in "abc"]
    for columns, says in (
        ((x, y, groups), "parts[0] is an index of pandas"),
        ((x, y, masks), "parts[0] has the rows of x in another order"),
        ((x, table["y"], [[0], [1], [2]]), "y has the rows of x in another order"),
    ):
        assert_refused(lambda c=columns: Examples.from_parts(*c, [*"abc"]), says)
    other = table["y"].set_axis([*"uvwxyz"])  # With other labels, by place.
    assert Examples.from_parts(x, other, [[0], [1], [2]], [*"abc"]).y.tolist() == [
        0,
        1,
        2,
    ]


def as_ids(names, large):
    return ClientIds.from_names(names) if large else tuple(names)


@pytest.mark.parametrize("large", [False, True])
def test_a_number_that_is_also_a_name_is_rejected(large):
    """If both are the same client, or the number is not a name, it is a number."""
    named = three_clients(client_ids=as_ids(["1", "x", "2"], large))
    for client, says in ((1, "of 'x' and the name of another"), (np.int64(2), None)):
        if says:
            words = "client 1 is the number of 'x' and the name of another client"
            assert_refused(lambda c=client: named.client(c), words)
            assert_refused(lambda c=client: named.subset([0, c]), words)
        else:
            assert named.position(client) == 2
    assert named.position(0) == 0 and named.position("2") == 2
    assert named.position(ClientNumber(1)) == 1
    for clients in ("12", {"1", "2"}):
        with pytest.raises(ValueError, match="clients must be a sequence"):
            named.subset(clients)
    assert three_clients(client_ids=as_ids([*"012"], large)).position(2) == 2
    assert three_clients(client_ids=as_ids(["01", "b", "c"], large)).position(1) == 1


def test_invalid_clients_and_subsets_are_rejected():
    examples = three_clients()
    for client in ("d", 3, -1, True, 1.0, None):
        words = f"unknown client {client!r}: the 3 clients are "
        assert_refused(lambda c=client: examples.client(c), words)
    assert_refused(lambda: examples.subset([]), "a subset needs at least one")
    assert_refused(lambda: examples.subset(["a", 0]), "client id 'a' appears twice")
    assert_refused(lambda: examples.take(-1), "count must be 0 or more, got -1")


def test_earlier_names_work(tmp_path):
    examples = three_clients()
    assert examples.owner(0) == examples.describe_owner(0)
    assert examples.stored is examples.store_part is None
    arrays = {f"{name}_train": getattr(examples, name) for name in ("x", "y", "sizes")}
    arrays["client_ids"] = np.array(examples.client_ids)
    assert Examples.of_arrays(arrays, "train").client_ids == examples.client_ids
    path = tmp_path / "a"
    path.write_text("a")
    paths = [str(path)]
    assert Origin.of_files("files", paths) == Origin.from_files("files", paths)


def test_limited_examples_keep_their_order_and_attributes():
    examples = three_clients()
    limited = examples.limit(2, seed=1)
    assert limited.sizes.tolist() == [2, 0, 2]
    for client in examples.client_ids:
        before, after = examples.client(client), limited.client(client)
        places = [before["x"].tolist().index(x) for x in after["x"].tolist()]
        assert places == sorted(places)
        for name in ("y", "blur"):
            np.testing.assert_array_equal(after[name], before[name][places])
    # A client's draw depends on no other client.
    alone = examples.subset(["c"]).limit(2, seed=1).client("c")
    np.testing.assert_array_equal(alone["x"], limited.client("c")["x"])


POSITIONS = np.array(
    [[1, -1, 0], [2, 2, -1], [0, 1, 2], [-1, -1, -1], [3, 0, -1], [1, 0, 0]], np.int32
)


def test_a_label_for_each_position_is_counted_by_client():
    examples = three_clients(y=POSITIONS)
    assert examples.has_positions and examples.has_classes
    assert not three_clients().has_positions
    rows = [
        POSITIONS[a:b] for a, b in zip(examples.row_splits, examples.row_splits[1:])
    ]
    counts = [int((part >= 0).sum()) for part in rows]
    assert examples.label_counts.tolist() == counts
    assert examples.num_labels == sum(counts) == 12
    labels, splits = examples.counted_labels()
    for k, part in enumerate(rows):
        assert labels[splits[k] : splits[k + 1]].tolist() == part[part >= 0].tolist()
    single = three_clients()
    assert single.label_counts.tolist() == single.sizes.tolist()
    assert single.counted_labels() == (single.y, single.row_splits)
    subset = examples.subset(["c", "a"])
    assert subset.label_counts.tolist() == [counts[2], counts[0]]


def test_positions_are_counted_chunk_by_chunk(monkeypatch):
    expected = three_clients(y=POSITIONS).label_counts.tolist()
    monkeypatch.setattr("leaf_data.examples._ROWS_PER_CHUNK", 2)
    assert three_clients(y=POSITIONS).label_counts.tolist() == expected


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            POSITIONS - 1,
            "y has a negative label, -2; -1 marks a position that does not",
        ),
        (POSITIONS - 1, "count: client 'a' has it"),
        (
            POSITIONS[:, :0],
            "one for each of its T positions, [n, T]; got the shape [6, ",
        ),
        (POSITIONS[..., np.newaxis], "[n, T]; got the shape [6, 3, 1]"),
        (POSITIONS[:5], "x is (6, 2), y is (5, 3)"),
    ],
)
def test_invalid_labels_of_positions_are_named(y, message):
    assert_refused(lambda: three_clients(y=y), message)
