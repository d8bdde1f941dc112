"""Stores: federations on disk that are mapped and not read."""

import dataclasses
import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from made_up import three_clients, toy_dataset

import leaf_data
from leaf_data.client_ids import ClientIds


def numbers(count, seed=0):
    random = np.random.RandomState(seed)
    return random.rand(count, 3).astype(np.float32), random.randint(0, 4, count)


CLIENTS = [("a", *numbers(5)), ("ü", *numbers(0)), ("c c", *numbers(10, 1))]


def written(folder, clients=None, **options):
    path = str(folder / "store")
    options = options or {"test_fraction": 0.2}
    leaf_data.write_store(
        iter(CLIENTS if clients is None else clients), path, **options
    )
    return path


def test_a_data_set_is_unchanged_in_a_store(tmp_path):
    data = leaf_data.load("digits5k", partition="noniid", seed=3)
    part = data.test_examples
    alone = leaf_data.Examples.from_parts(part.x, part.y, [np.arange(9)], ["central"])
    data = dataclasses.replace(data, central_test=alone)
    path = str(tmp_path / "store")
    leaf_data.write_store(data, path)
    stored = leaf_data.open_store(path, verify=True)
    assert stored.num_classes == data.num_classes
    assert stored.pixel_convention == data.pixel_convention
    for part in ("train_examples", "test_examples", "central_test"):
        original, reopened = getattr(data, part), getattr(stored, part)
        assert (
            reopened.client_ids == original.client_ids
            and original.client_ids == reopened.client_ids
        )
        for name in ("x", "y", "row_splits"):
            np.testing.assert_array_equal(
                getattr(reopened, name), getattr(original, name)
            )
            assert getattr(reopened, name).dtype == getattr(original, name).dtype
    assert stored.options == data.options and data.origin.source in str(stored.origin)
    assert stored.describe().splitlines()[1:-1] == data.describe().splitlines()[1:-1]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n": np.float32(1)}, "options cannot be written as JSON"),
        ({"n": "x" * 20_000}, "options have more than 16384"),
        ({"n": "a\nb"}, "the option 'n' has a character"),
    ],
)
def test_invalid_options_are_not_written(tmp_path, options, says):
    data = leaf_data.load("digits5k", partition="noniid", seed=3)
    with pytest.raises(leaf_data.DataError, match=says):
        leaf_data.write_store(
            dataclasses.replace(data, options=options), tmp_path / "store"
        )
    assert not os.listdir(tmp_path)


def test_a_part_without_examples_is_opened(tmp_path):
    """An array without bytes cannot be mapped."""
    data = toy_dataset(test_examples=three_clients().take(0))
    leaf_data.write_store(data, tmp_path / "store")
    opened = leaf_data.open_store(tmp_path / "store", verify=True)
    assert opened.test_examples.sizes.tolist() == [0, 0, 0]
    assert "test: 0 examples" in opened.describe()


def test_checked_pages_are_freed(tmp_path):
    path = written(tmp_path, [("a", *numbers(50_000))])
    data = leaf_data.open_store(path)

    def resident():
        """The kB of labels that this process holds, by Linux's account."""
        kept, kilobytes = False, 0
        with open("/proc/self/smaps") as smaps:
            for line in smaps:
                kept = f"{path}/train_y" in line if "-" in line.split()[0] else kept
                kilobytes += int(line.split()[1]) if kept and "Rss:" in line else 0
        return kilobytes

    assert resident() == 0
    assert data.train_examples.y.max() == 3 and resident() > 0
    data.describe()
    assert resident() == 0


def test_each_example_of_a_client_is_in_one_part_once(tmp_path):
    data = leaf_data.open_store(written(tmp_path))
    assert list(data.client_ids) == ["a", "ü", "c c"]
    assert list(data.train_examples.sizes) == [4, 0, 8]
    assert list(data.test_examples.sizes) == [1, 0, 2]
    assert data.num_classes == 4
    for name, x, y in CLIENTS:
        parts = [e.client(name) for e in (data.train_examples, data.test_examples)]
        rows = np.concatenate([np.c_[p["x"], p["y"]] for p in parts])
        want = np.c_[x, y]
        np.testing.assert_allclose(rows[np.lexsort(rows.T)], want[np.lexsort(want.T)])
    again = tmp_path / "again"
    again.mkdir()
    other = leaf_data.open_store(written(again, test_fraction=0.2, seed=1))
    assert not np.array_equal(other.test_examples.x, data.test_examples.x)


def test_a_store_accepts_test_examples_and_holds_nothing_in_memory(tmp_path):
    clients = [(name, x, y, x[:1] + 1, y[:1]) for name, x, y in CLIENTS]
    data = leaf_data.open_store(written(tmp_path, clients, test_fraction=0.0))
    np.testing.assert_array_equal(data.train_examples.x[:5], CLIENTS[0][1])
    np.testing.assert_array_equal(data.test_examples.x[0], CLIENTS[0][1][0] + 1)
    base = data.train_examples.x
    while not isinstance(base, np.memmap):
        base = base.base
    assert base.filename is None or base.filename.endswith("train_x.npy")


def test_only_examples_of_the_store_have_a_store_part(tmp_path):
    path = written(tmp_path)
    data = leaf_data.open_store(path)
    ((_, digest),) = data.origin.files
    examples = data.test_examples
    assert examples.store_part == (path, digest, "test")
    data = dataclasses.replace(data, test_examples=examples)
    assert data.train_examples.store_part[2] == "train"
    for copy in (
        examples.subset([0, 2]),
        examples.take(1),
        dataclasses.replace(examples, x=-examples.x),
        data.hold_out(0.5)[1],
    ):
        assert copy.store_part is None


def test_a_fraction_that_leaves_clients_without_test_examples_warns(tmp_path, caplog):
    written(tmp_path, [("a", *numbers(5)), ("b", *numbers(4)), ("c", *numbers(1))])
    (record,) = caplog.records
    assert record.getMessage() == (
        "2 of 3 clients have no test examples: for client b, 0.2 of 4 examples is less "
        "than one"
    )
    caplog.clear()
    clients = [("a", *numbers(5), *numbers(1)), ("b", *numbers(4), *numbers(0))]
    leaf_data.write_store(clients, tmp_path / "given")
    written(tmp_path / "given", [("a", *numbers(5))])
    assert not caplog.records


@pytest.mark.parametrize(("fraction", "count"), [(0.29, 29), (0.57, 57), (0.5, 50)])
def test_a_fraction_is_read_as_a_decimal(tmp_path, fraction, count):
    path = written(tmp_path, [("a", *numbers(100))], test_fraction=fraction)
    assert leaf_data.open_store(path).test_examples.num_examples == count


def doubled(*seeds, labels=0):
    """Clients of 100 examples, each there twice; two of one seed are equal."""
    clients = []
    for number, seed in enumerate(seeds):
        x, y = numbers(100, seed)
        y = (y + labels * number) % 4
        clients.append((f"c{number}", np.concatenate([x, x]), np.concatenate([y, y])))
    return clients


@pytest.mark.parametrize(
    ("clients", "sizes"),
    [
        (doubled(0, 1, 2), [40, 40, 40]),
        # Clients who have the same have the same test examples.
        (doubled(0, 0, 1), [40, 40, 40]),
        # The same x with another label is another example.
        (doubled(0, 0, labels=1), [40, 40]),
        (
            [("a", *numbers(50)), ("b", np.zeros((50, 3), np.float32), [0] * 50)],
            [10, 0],
        ),
    ],
)
def test_equal_examples_in_both_parts_are_counted_or_kept_together(
    tmp_path, caplog, clients, sizes
):
    def shared(data):
        """How many test examples are training examples, computed row by row."""
        train, test = (
            [(*x.tolist(), y) for x, y in zip(part.x, part.y)]
            for part in (data.train_examples, data.test_examples)
        )
        return sum(row in set(train) for row in test), len(test)

    data = leaf_data.open_store(written(tmp_path, clients))
    count, total = shared(data)
    assert count and f"{count} of {total} test examples are equal to" in caplog.text
    assert data.describe().startswith(f"store (equal_test_examples={count})")
    caplog.clear()
    folder = tmp_path / "together"
    folder.mkdir()
    options = {"test_fraction": 0.2, "keep_equal_together": True}
    data = leaf_data.open_store(written(folder, clients, **options))
    assert "equal" not in data.describe()
    assert shared(data) == (0, sum(sizes)) and list(data.test_examples.sizes) == sizes
    assert "are equal to" not in caplog.text
    if 0 in sizes:
        says = "0.2 of 50 examples is less than one, or equal examples are kept"
        assert says in caplog.text


def test_equal_examples_of_two_parts_are_counted(tmp_path, caplog):
    x, y = numbers(10)
    clients = [("a", x, y, x[:3], y[:3]), ("b", x + 5, y, x[4:5], y[4:5])]
    written(tmp_path, clients, test_fraction=0.0)
    assert "4 of 4 test examples are equal to training examples" in caplog.text
    assert "take them out of one of the two sets" in caplog.text
    data = leaf_data.open_store(tmp_path / "store")
    caplog.clear()
    leaf_data.write_store(data, tmp_path / "again")
    assert "4 of 4 test examples are equal to training examples" in caplog.text


def test_keeping_equal_examples_together_changes_no_draw_without_any(tmp_path, caplog):
    paths = [tmp_path / name for name in ("apart", "together")]
    for path, together in zip(paths, (False, True)):
        path.mkdir()
        clients = [("a", *numbers(41)), ("b", *numbers(30, 1))]
        options = {"test_fraction": 0.3, "keep_equal_together": together}
        written(path, clients, **options)
    apart, together = (leaf_data.open_store(path / "store") for path in paths)
    for part in ("train_examples", "test_examples"):
        np.testing.assert_array_equal(getattr(apart, part).x, getattr(together, part).x)
    assert not caplog.records


def test_the_header_records_the_names_of_classes(tmp_path):
    options = {"classes": ["no", "yes"]}
    leaf_data.write_store(
        [("a", X, [0, 1], X + 1, [1, 1])], tmp_path / "a", options=options
    )
    data = leaf_data.open_store(tmp_path / "a")
    assert data.options == options
    assert data.describe().startswith("store (classes=['no', 'yes']): 1 client, 2 cla")
    with pytest.raises(leaf_data.DataError, match="options cannot be written as JSON"):
        leaf_data.write_store([("a", X, [0, 1], X, [1, 1])], tmp_path / "b",
                              options={"classes": {1}})  # fmt: skip
    assert os.listdir(tmp_path) == ["a"]


X = np.zeros((2, 3), np.float32)


@pytest.mark.parametrize(
    "clients, test_fraction, says",
    [
        ([], 0.4, "at least one client"),
        ([("a", *numbers(2))], 0.0, "give a test_fraction"),
        ([("a", *numbers(2))], 0.1, "give a larger test_fraction than 0.1"),
        ([("a", *numbers(2))], 1.0, "below 1"),
        (
            [("a", *numbers(2))],
            "a",
            "test_fraction must be at least 0 and below 1, got 'a'",
        ),
        ([("a", *numbers(5))] * 2, 0.4, "'a' is not a name, or appears twice"),
        ([("", *numbers(5))], 0.4, "'' is not a name"),
        ([("a\n", *numbers(5))], 0.4, "control character"),
        ([("a", numbers(5)[0])], 0.4, "client a: must be"),
        ([("a", numbers(5)[0], numbers(4)[1])], 0.4, "client a: x and y must have"),
        ([("a", numbers(5)[0], -numbers(5)[1] - 1)], 0.4, "client a: y has a negative"),
        ([("a", numbers(1)[0], [2**32 + 1])], 0.4, "client a: y has a label beyond"),
        ([("a", [["w"]], [0])], 0.4, "client a: x must be one of"),
        ([(1, *numbers(5))], 0.4, "names are different texts, such as str(number)"),
        # What arrays of pandas and numpy say of their rows is not lost.
        (
            [("a", pd.DataFrame(X), pd.Series([0, 1], index=[1, 0]))],
            0.0,
            "client a: y has the rows of x in another order",
        ),
        ([("a", np.ma.masked_equal(X, X[0, 0]), [0, 1])], 0.0, "a: x has masked"),
        ([("a", X, np.ma.masked_equal([0, 1], 1))], 0.0, "client a: y has masked"),
        (
            [("a", *numbers(5)), ("b", X[:, :2], [0] * 2)],
            0.4,
            "b: train_x has rows of float32 [2], but earlier rows were float32 [3]",
        ),
        # What no store can be opened with.
        *(
            ([("a", X, np.array([0.5, bad]))], 0.0, "value that is not")
            for bad in (1e300, np.nan, np.inf)
        ),
        ([("a", X, np.array([0, 2**31 - 1]))], 0.0, "beyond 2^31 - 2"),
        ([("a", X, [0, 1], X[:1, :2], [0])], 0.0, "and a test x"),
        ([("a", X, [0, 1], X, [0, 1])], 0.4, "client a: already has test examples"),
        (
            [("a", X, [[[0]], [[1]]])],
            0.0,
            "a: y must have one label for each example, [n], or one for each of its T",
        ),
        (
            [("a", X, [0, 1], [[1], [1, 2]], [0, 1])],
            0.0,
            "a: x and y must be arrays",
        ),
    ],
)
def test_an_invalid_client_is_rejected_and_leaves_no_store(
    tmp_path, clients, test_fraction, says
):
    with pytest.raises(leaf_data.DataError, match=re.escape(says)):
        written(tmp_path, clients, test_fraction=test_fraction)
    assert os.listdir(tmp_path) == []


def test_an_existing_store_is_not_overwritten(tmp_path):
    path = written(tmp_path)
    with pytest.raises(leaf_data.DataError, match="already exists"):
        written(tmp_path)
    assert leaf_data.open_store(path).client_ids[0] == "a"


def changed(path, name, change):
    file = os.path.join(path, name)
    with open(file, "rb") as opened:
        content = change(opened.read())
    with open(file, "wb") as opened:
        opened.write(content)


def header(path, change):
    def change_header(content):
        fields = json.loads(content)
        change(fields)
        return json.dumps(fields).encode()

    changed(path, "header.json", change_header)


def renamed(path, name):
    changed(path, "client_ids.npy", lambda c: c.replace(b"c c", name))


BROKEN = {
    "no header": lambda p: os.remove(f"{p}/header.json"),
    "no JSON": lambda p: changed(p, "header.json", lambda c: c[:-2]),
    "another format": lambda p: header(p, lambda h: h.update(format=2)),
    "no list": lambda p: header(p, lambda h: h.update(arrays=[])),
    "long options": lambda p: header(p, lambda h: h["options"].update(a=["b"] * 9999)),
    "an option": lambda p: header(p, lambda h: h["options"].update({"a\ud800": 1})),
    "no classes": lambda p: header(p, lambda h: h.pop("num_classes")),
    "no part": lambda p: header(p, lambda h: h["parts"].remove("test")),
    "a shape": lambda p: header(p, lambda h: h["arrays"]["train_y"].update(shape=[9])),
    "two lines": lambda p: header(p, lambda h: h["arrays"].update({"a\nb": {}})),
    "an array is gone": lambda p: os.remove(f"{p}/train_x.npy"),
    "it is cut": lambda p: changed(p, "train_x.npy", lambda c: c[:-1]),
    "no array": lambda p: changed(p, "train_x.npy", lambda c: b"x" + c[1:]),
    "a label": lambda p: changed(p, "train_y.npy", lambda c: c[:-1] + b"\x01"),
    "splits": lambda p: changed(p, "train_row_splits.npy", lambda c: c[:-1] + b"\x01"),
    "a name twice": lambda p: renamed(p, b"a\0\0"),
    "a NUL in a name": lambda p: renamed(p, b"c\0c"),
    "no UTF-8": lambda p: renamed(p, b"\xffcc"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_damaged_store_is_named_in_one_line(tmp_path, name):
    path = written(tmp_path)
    BROKEN[name](path)
    with pytest.raises(leaf_data.DataError, match=path) as raised:
        leaf_data.open_store(path)
    assert "\n" not in str(raised.value)


def test_a_flipped_bit_is_detected_with_verify(tmp_path):
    path = written(tmp_path)
    changed(path, "train_x.npy", lambda c: c[:-1] + bytes([c[-1] ^ 1]))
    leaf_data.open_store(path)
    with pytest.raises(leaf_data.DataError, match="train_x.npy: its content is not"):
        leaf_data.open_store(path, verify=True)


def test_client_ids_behave_like_a_tuple():
    names = ("a", "ü", "c c")
    ids = ClientIds.from_names(names)
    assert len(ids) == 3 and list(ids) == [*names] and ids[1] == "ü"
    assert ids[1:] == names[1:] and ids == names and ids != names[:2]
    assert ids == ClientIds.from_names(ids) and "ü" in ids and ids.index("c c") == 2


NAMES = {"input_names": ["a", "b", "c"], "class_names": ["p", "q", "r", "s", "t"]}


def test_names_are_written_and_read(tmp_path):
    """The last of five classes has no example."""
    data = leaf_data.open_store(written(tmp_path, None, test_fraction=0.2, **NAMES))
    assert data.input_names == ("a", "b", "c") and data.num_classes == 5
    assert data.class_names == ("p", "q", "r", "s", "t")
    again = str(tmp_path / "again")
    leaf_data.write_store(data, again)
    copy = leaf_data.open_store(again)
    assert (copy.input_names, copy.class_names) == (data.input_names, data.class_names)
    third = str(tmp_path / "third")
    leaf_data.write_store(data, third, input_names=["x", "y", "z"])
    assert leaf_data.open_store(third).input_names == ("x", "y", "z")


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ({"input_names": ["a"]}, "input_names has 1 names, the data has 3"),
        ({"class_names": ["a"]}, "class_names has 1 names, the data has 4"),
        ({"input_names": "abc"}, "input_names must be a sequence, got 'abc'"),
        ({"input_names": ["a", "b", "a"]}, "input_names has 'a' twice"),
        ({"input_names": ["a", "b", 3]}, "input_names must be a sequence of texts"),
        ({"input_names": ["a", "b", "c\n"]}, "input_names: 'c.n' has the control"),
        ({"input_names": ["a", "b", ""]}, "input_names has an empty name"),
    ],
)
def test_mismatched_names_are_rejected(tmp_path, names, says):
    with pytest.raises(leaf_data.DataError, match=says):
        written(tmp_path, None, test_fraction=0.2, **names)
    assert not os.listdir(tmp_path)
    data = leaf_data.open_store(written(tmp_path))
    with pytest.raises(leaf_data.DataError, match=f"store: {says}"):
        dataclasses.replace(data, **names)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"classes": ["p", "q", "r", "s"]}, ("p", "q", "r", "s")),
        ({"classes": ["p"]}, ()),  # Something else, which a user wrote.
        ({"classes": 4}, ()),
        ({"classes": {"p": 1}}, ()),
        ({}, ()),
    ],
)
def test_headers_of_earlier_versions_are_read(tmp_path, options, names):
    path = written(tmp_path, None, test_fraction=0.2, options=options)
    header = os.path.join(path, "header.json")
    with open(header) as file:
        content = json.load(file)
    for name in ("input_names", "class_names"):
        del content[name]
    with open(header, "w") as file:
        json.dump(content, file)
    data = leaf_data.open_store(path)
    assert data.class_names == names and data.input_names == ()


def test_inputs_that_are_not_finite_are_reported_with_their_client(tmp_path, caplog):
    x = np.array([[0.5], [np.nan], [2]], np.float32)
    clients = [("a", x[::2], [0, 1]), ("b", x, [0, 1, 1]), ("c", x, [0, 1, 1])]
    tested = [(*client, x[:1], [1]) for client in clients]
    leaf_data.write_store(tested, tmp_path / "store")
    (line,) = [r.getMessage() for r in caplog.records if "nan" in r.getMessage()]
    assert line.startswith("2 of 3 clients have inputs that are nan or infinite, the ")
    assert "first b:" in line


@pytest.mark.parametrize("names", [{"a", "b"}, frozenset("ab")])
def test_names_without_an_order_are_rejected(tmp_path, names):
    x, y = np.zeros((2, 2), np.float32), np.array([0, 1])
    with pytest.raises(ValueError, match="client_ids .*no order: give a list"):
        leaf_data.Examples.from_parts(x, y, [[0], [1]], names)
    for field in ("input_names", "class_names"):
        with pytest.raises(ValueError, match=f"{field} .*no order: give a list"):
            leaf_data.write_store(
                [("a", x, y, x + 1, y)], tmp_path / field, **{field: names}
            )
    for ids in (dict.fromkeys("ba").keys(), {"b": [0], "a": [1]}):  # These have one.
        examples = leaf_data.Examples.from_parts(x, y, [[0], [1]], ids)
        assert examples.client_ids == ("b", "a")


WORDS = leaf_data.Vocabulary("words", ("to", "be", "<UNK>"))


@pytest.mark.parametrize("as_data", [False, True])
def test_the_header_has_the_vocabulary_of_text(tmp_path, as_data):
    x = np.array([[0, 1], [2, 2]], np.int32)
    clients = [("a", x, [0, 1], x[:1], [1])]
    path = written(tmp_path, clients, vocabulary=WORDS)
    if as_data:
        data, path = leaf_data.open_store(path), str(tmp_path / "again")
        leaf_data.write_store(data, path)
    data = leaf_data.open_store(path)
    assert data.vocabulary == WORDS and data.train_examples.x.tolist() == x.tolist()
    assert "vocabulary: 3 words" in data.describe()
    header = os.path.join(path, "header.json")
    with open(header) as file:
        content = json.load(file)
    content["vocabulary"]["tokens"][0] = "be"
    with open(header, "w") as file:
        json.dump(content, file)
    with pytest.raises(leaf_data.DataError, match="has the token 'be' twice"):
        leaf_data.open_store(path)


@pytest.mark.parametrize("wrong", [[[0, 3]], [[-1, 0]], [[0.5, 0]]])
def test_inputs_beyond_the_vocabulary_are_not_written(tmp_path, wrong):
    x = np.array(wrong, np.float32 if 0.5 in wrong[0] else np.int32)
    with pytest.raises(leaf_data.DataError, match="client a: train: .*vocabulary"):
        written(tmp_path, [("a", x, [0], x, [0])], vocabulary=WORDS)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("from_data", [False, True])
def test_a_store_keeps_a_label_for_each_position(tmp_path, from_data):
    x = np.arange(30, dtype=np.int32).reshape(10, 3) % 7
    y = np.where(x == 6, -1, x)
    clients = [("a", x[:6], y[:6], x[6:7], y[6:7]), ("b", x[7:9], y[7:9], x[9:], y[9:])]
    path = written(tmp_path, clients, input_names=())
    if from_data:
        leaf_data.write_store(leaf_data.open_store(path), tmp_path / "again")
        path = tmp_path / "again"
    data = leaf_data.open_store(path, verify=True)
    assert data.num_classes == 6
    np.testing.assert_array_equal(data.train_examples.y, np.delete(y, [6, 9], axis=0))
    counts = [int((part >= 0).sum()) for part in (y[:6], y[7:9])]
    assert data.train_examples.label_counts.tolist() == counts
    line = f"labels: one for each of 3 positions; {sum(counts)} of 24 in train count, "
    assert line in data.describe()
    assert "train: 8 examples, 2-6 a client, 6 labels a client" in data.describe()


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (
            [[0, -2], [1, 0]],
            "client a: y has a negative label, -2; -1 marks a position",
        ),
        ([[], []], "client a: y must have one label for each example, [n], or one"),
    ],
)
def test_invalid_labels_of_positions_are_named(tmp_path, y, says):
    clients = [("a", X, np.array(y, int), X, np.zeros((len(X), 2), int))]
    with pytest.raises(leaf_data.DataError, match=re.escape(says)):
        written(tmp_path, clients, input_names=())


def test_training_and_test_labels_must_have_one_shape(tmp_path):
    clients = [("a", X, [0] * len(X), X, np.zeros((len(X), 2), int))]
    says = "client a: a training y is int32 () and a test y int32 (2,): both must be"
    with pytest.raises(leaf_data.DataError, match=re.escape(says)):
        written(tmp_path, clients, input_names=())
