"""`FederatedDataset`: its description, the server's examples, what does not fit."""

import dataclasses

import numpy as np
import pytest
from made_up import assert_refused, three_clients, toy_dataset

from leaf_data import Examples, Vocabulary
from leaf_data.pixels import NO_PIXELS


def test_describe():
    assert toy_dataset().describe().splitlines() == [
        "toy (seed=0): 3 clients, 3 classes, 2 uint8",
        "train: 6 examples, 0-3 a client, 0-3 labels a client",
        "test: 2 examples, 0-1 a client",
        "equal to training examples: 2 of 2 test examples, which a model may remember",
        "pixels: white_on_black (0 = background, 255 = ink)",
        "from a test: toy.bin (sha256 00ff)",
    ]


def examples_of_sizes(sizes, value=0, ids="abcd"):
    """Examples of clients of these sizes, all equal and with the label 0."""
    splits = np.concatenate([[0], np.cumsum(sizes)])
    count = splits[-1]
    x, y = np.full((count, 2), value, np.uint8), np.zeros(count, np.int32)
    return Examples(x, y, splits, tuple(ids[: len(sizes)]))


@pytest.mark.parametrize(
    ("train", "test", "lines"),
    [
        ([1], [1], ["toy: 1 client, 1 class, 2 uint8",
                    "train: 1 example, 1 a client, 1 label a client",
                    "test: 1 example, 1 a client"]),
        # b has neither.
        ([3, 0, 0, 1], [0, 0, 9, 2],
         ["toy: 4 clients, 1 class, 2 uint8",
          "train: 4 examples, 0-3 a client, 0-1 label a client",
          "test: 11 examples, 0-9 a client",
          "clients without training examples: 1 of 4 clients (c first); they count in "
          "all test results",
          "clients without test examples: 1 of 4 clients (a first); they reach no "
          "target"]),
    ],
)  # fmt: skip
def test_clients_without_training_or_test_examples_are_described(train, test, lines):
    parts = {
        "train_examples": examples_of_sizes(train),
        "test_examples": examples_of_sizes(test, 1),
    }
    data = toy_dataset(**parts, num_classes=1, options={}, pixel_convention=NO_PIXELS)
    assert data.describe().splitlines()[:-1] == lines


def test_positions_that_count_are_described():
    y = np.array([[0, 1], [-1, 2], [0, 0], [-1, -1], [-1, -1], [-1, -1]], np.int32)
    data = toy_dataset(
        train_examples=three_clients(y=y),
        test_examples=three_clients(y=np.abs(y)),
    )
    lines = data.describe().splitlines()
    assert "train: 6 examples, 0-3 a client, 0-3 labels a client" in lines
    line = "labels: one for each of 2 positions; 5 of 12 in train count, 12 of 12 in"
    assert f"{line} test count" in lines
    assert (
        "clients without training positions that count: 1 of 3 clients (c first); they "
        "count in all test results"
    ) in lines
    y[1, 1] = 3
    says = "train has label 3, but there are 3 classes: client 'a' has it"
    assert_refused(lambda: changed_positions(y), says)


def changed_positions(y):
    """The data set with a label for each position."""
    return toy_dataset(
        train_examples=three_clients(y=y), test_examples=three_clients(y=y)
    )


def changed(**changes):
    """The data set with training examples of which these fields are others."""
    return toy_dataset(train_examples=three_clients(**changes))


def test_the_checksum_of_all_examples_changes_with_each_of_them(tmp_path):
    x, y = three_clients().x.copy(), three_clients().y.copy()
    x[5, 1], y[5] = 0, 0
    dates = np.arange("2026-01-01", "2026-01-07", dtype="datetime64[D]")
    alone = {"x": np.zeros((1, 2), np.uint8), "y": np.zeros(1, np.int32)}
    alone = Examples(**alone, row_splits=np.array([0, 1]), client_ids=("server",))
    np.save(tmp_path / "x.npy", three_clients().x)
    np.save(tmp_path / "other.npy", x)
    mapped, other = (
        np.load(tmp_path / name, mmap_mode="r") for name in ("x.npy", "other.npy")
    )
    others = [
        changed(x=x),
        changed(y=y),
        changed(row_splits=np.array([0, 2, 3, 6])),
        toy_dataset(test_examples=three_clients().take(2)),
        changed(attributes={}),
        changed(attributes={"blur": dates}),
        changed(attributes={"blur": np.array(["a", None] * 3, object)}),
        toy_dataset(server_examples=alone),
        changed(x=other),
    ]
    sums = [data.examples_sha256 for data in (toy_dataset(), *others)]
    assert len({*sums[:-1]}) == len(others)
    assert sums[-1] == sums[1]  # As it is read.
    renamed = toy_dataset(
        name="other", origin=toy_dataset().origin, options={"seed": 1}
    )
    for data in (renamed, changed(x=mapped)):
        assert data.examples_sha256 == sums[0]
    again = changed(attributes={"blur": np.array(["a", None] * 3, object)})
    assert again.examples_sha256 == sums[7]


SERVER = dict(x=np.zeros((1, 2), np.uint8), y=np.zeros(1, np.int32))
SERVER.update(row_splits=np.array([0, 1]), client_ids=("server",), attributes={})


@pytest.mark.parametrize(
    "part, changes, message",
    [
        ("test", {"client_ids": ("a", "c", "b")}, "train and test have different clie"),
        (
            *("test", {"x": np.zeros((6, 3), np.uint8)}),
            "one x of train is uint8 (2,), of test uint8 (3,)",
        ),
        (
            *("test", {"x": np.zeros((6, 2), np.float32)}),
            "one x of train is uint8 (2,), of test float32 (2,)",
        ),
        (
            *("train", {"y": np.array([0, 0, 0, 3, 0, 0], np.int32)}),
            "train has label 3, but there are 3 classes: client 'c' has it",
        ),
        ("server", {"client_ids": ("a",)}, "the one client of server is 'server'"),
        ("server", {"x": np.zeros((1, 3), np.uint8)}, "of server uint8 (3,)"),
        ("server", {"y": np.array([3], np.int32)}, "server has label 3"),
    ],
)
def test_mismatched_parts_are_rejected(part, changes, message):
    fields = {**SERVER, **changes} if part == "server" else changes
    examples = {f"{part}_examples": three_clients(**fields)}
    assert_refused(lambda: toy_dataset(**examples), message)


NOTHING = dict(x=np.zeros((0, 2), np.uint8), y=np.zeros(0, np.int32))
NOTHING["row_splits"] = np.array([0, 0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client_ids": ("server",)}, "the one client of central_test is 'central'"),
        ({"x": np.zeros((1, 3), np.uint8)}, "(2,), of central_test uint8 (3,)"),
        ({"y": np.zeros(1, np.float32)}, "is int32 (), of central_test float32 ()"),
        ({"y": np.array([3], np.int32)}, "central_test has label 3, but there are 3"),
        (NOTHING, "central_test has no examples"),
    ],
)
def test_a_central_test_set_must_match_the_data(changes, message):
    fields = {**SERVER, "client_ids": ("central",)}
    central = Examples(**fields)
    assert "central test: 1 example" in toy_dataset(central_test=central).describe()
    wrong = Examples(**{**fields, **changes})
    assert_refused(lambda: toy_dataset(central_test=wrong), message)


def test_a_regression_has_no_classes():
    numbers = three_clients(y=np.linspace(-1, 5, 6, dtype=np.float32))
    parts = {"train_examples": numbers, "test_examples": numbers}
    data = toy_dataset(**parts, num_classes=0, pixel_convention=NO_PIXELS)
    assert not data.has_classes
    text = data.describe()
    assert "float32 labels" in text and "pixels" not in text
    assert "labels a client" not in text
    assert_refused(lambda: toy_dataset(**parts), "num_classes must be 0, got 3")


def test_the_servers_examples_are_described_and_kept():
    data = toy_dataset(server_examples=Examples(**SERVER))
    assert "server: 1 example" in data.describe().splitlines()
    assert "server" not in toy_dataset().describe()
    kept, _ = data.hold_out(0.5)
    assert kept.server_examples is data.server_examples


def numbered_rows(values, labels=None, ids="abcd"):
    """Each client's values, as its examples' x; the labels are 0 if there are none."""
    x = np.concatenate([np.array(v, np.float32) for v in values])[:, np.newaxis]
    splits = np.concatenate([[0], np.cumsum([len(v) for v in values])])
    y = np.zeros(len(x), np.int32) if labels is None else np.array(labels, np.int32)
    return Examples(x, y, splits, tuple(ids[: len(values)]))


@pytest.mark.parametrize(
    ("train", "test", "count"),
    [
        (([1, 2], [3]), ([2, 2], [1, 4]), 3),  # Also of another client.
        (([0.0, 2], [3]), ([-0.0], [7]), 1),
        (([1, 2], [3]), ([4], [5]), 0),
        (([1, 2], []), ([], []), 0),
    ],
)
def test_equal_examples_of_both_parts_are_described(train, test, count):
    parts = {"train_examples": train, "test_examples": test}
    parts = {name: numbered_rows(values) for name, values in parts.items()}
    total = parts["test_examples"].num_examples
    central = numbered_rows([[3, 9]], ids=("central",))
    data = toy_dataset(**parts, pixel_convention=NO_PIXELS, central_test=central)
    lines = [line for line in data.describe().splitlines() if "equal" in line]
    words = "equal to training examples: {} test examples, which a model may remember"
    want = [words.format(f"{count} of {total}")] if count else []
    if 3 in parts["train_examples"].x:
        want.append(words.format("1 of 2 central"))
    assert lines == want


def test_examples_of_other_labels_are_not_equal():
    train = numbered_rows([[1, 2]], [0, 1])
    test = numbered_rows([[1, 2]], [1, 1])
    data = toy_dataset(train_examples=train, test_examples=test)
    assert "equal to training examples: 1 of 2 test examples" in data.describe()


@pytest.mark.parametrize("pooled", [False, True])
def test_equal_examples_are_counted_or_kept_together_by_hold_out(caplog, pooled):
    """Each value is there twice in a client, and the last also in another client."""
    values = [np.repeat(np.arange(20), 2), np.repeat(np.arange(19, 39), 2)]
    data = toy_dataset(
        train_examples=numbered_rows(values), test_examples=numbered_rows([[1], []])
    )
    kept, aside = data.hold_out(0.25, 1, pooled=pooled)
    shared = np.isin(aside.x, kept.train_examples.x).sum()
    assert f"{shared} of 20 examples that are set aside are equal to" in caplog.text
    caplog.clear()
    kept, aside = data.hold_out(0.25, 1, pooled=pooled, keep_equal_together=True)
    assert not np.isin(aside.x, kept.train_examples.x).any() and not caplog.records
    assert aside.num_examples == 20 and kept.train_examples.num_examples == 60


def test_keeping_equal_examples_together_changes_nothing_without_any(caplog):
    values = [np.arange(13), np.arange(20, 60)]
    data = toy_dataset(
        train_examples=numbered_rows(values), test_examples=numbered_rows([[], []])
    )
    (kept, aside), (kept_too, together) = (
        data.hold_out(0.3, 5, keep_equal_together=keep) for keep in (False, True)
    )
    np.testing.assert_array_equal(kept.train_examples.x, kept_too.train_examples.x)
    np.testing.assert_array_equal(aside.x, together.x)
    assert not caplog.records and aside.sizes.tolist() == [3, 12]


@pytest.mark.parametrize(
    ("fraction", "size", "count"),
    [(0.29, 100, 29), (0.57, 100, 57), (0.07, 100, 7), (1 / 3, 3, 1), (0.2, 9, 1)],
)
def test_the_fraction_of_hold_out_is_read_as_a_decimal(fraction, size, count):
    data = toy_dataset(
        train_examples=numbered_rows([np.arange(size)]),
        test_examples=numbered_rows([[]]),
    )
    assert data.hold_out(fraction)[1].num_examples == count


def test_examples_held_out_can_be_mixed_and_dealt_again():
    """The same examples, as many to each client, in other hands."""
    sizes = np.array([10, 4, 1, 35])
    x = np.arange(50, dtype=np.uint8).reshape(50, 1)
    ids = ("a", "b", "c", "d")
    splits = np.concatenate([[0], np.cumsum(sizes)])
    examples = Examples(x, (x[:, 0] % 3).astype(np.int32), splits, ids)
    data = toy_dataset(train_examples=examples, test_examples=examples.take(1))
    (kept, aside), (kept_too, pooled) = (
        data.hold_out(0.5, 3, pooled=pooled) for pooled in (False, True)
    )
    np.testing.assert_array_equal(kept.train_examples.x, kept_too.train_examples.x)
    all_x = np.concatenate([kept.train_examples.x, aside.x])
    assert sorted(all_x[:, 0]) == list(range(50))  # None is in both.
    assert aside.sizes.tolist() == pooled.sizes.tolist() == [5, 2, 0, 17]
    assert sorted(aside.x[:, 0]) == sorted(pooled.x[:, 0])
    np.testing.assert_array_equal(pooled.y, pooled.x[:, 0] % 3)
    # Of client d's 17 some are dealt to the others, whose own numbers are below 15.
    assert (aside.client("a")["x"] < 10).all()
    assert (np.concatenate([pooled.client(k)["x"] for k in "ab"]) >= 15).any()
    again = data.hold_out(0.5, 3, pooled=True)[1]
    np.testing.assert_array_equal(again.x, pooled.x)


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ([[0.5, 2], [1, 3]], None),
        ([[0.5, 49], [0.1, 3]], None),
        ([[0.5, 50], [0.1, 3]], "scales: age up to 0.5, pay up to 50: the larger"),
        ([[-3e4, 2], [0.1, 3]], "scales: pay up to 3, age up to 3e+04: the larger"),
        ([[0, 5e4], [0, 3]], None),  # A column of zeros has no scale.
        ([[np.nan, 5e4], [1, 3]], "scales: age up to 1, pay up to 5e+04: the larger"),
        ([[-1e30, 2], [4, 3]], "scales: pay up to 3, age up to 1e+30: the larger"),
    ],
)
def test_one_input_much_larger_than_another_is_described(columns, says):
    x = np.array(columns * 3, np.float32)
    parts = dict.fromkeys(("train_examples", "test_examples"), three_clients(x=x))
    data = toy_dataset(**parts, input_names=["age", "pay"])
    lines = data.describe().splitlines()
    assert "inputs: age, pay" in lines
    scales = [line for line in lines if line.startswith("scales")]
    assert len(scales) == bool(says) and all(line.startswith(says) for line in scales)


def test_many_names_are_described_by_the_first_and_the_last():
    data = toy_dataset(class_names=["zero", "one", "two"])
    assert "classes: zero, one, two" in data.describe().splitlines()
    names = [f"n{k}" for k in range(62)]
    data = toy_dataset(num_classes=62, class_names=names)
    listed = ", ".join([*names[:39], "...", "n61"])
    assert f"classes: {listed}" in data.describe().splitlines()


@pytest.mark.parametrize(
    ("shape", "count"), [((6,), 1), ((6, 4), 4), ((6, 8, 3), 3), ((6, 8, 8, 3), 3)]
)
def test_inputs_have_names_along_the_last_axis(shape, count):
    examples = three_clients(x=np.zeros(shape, np.float32))
    parts = dict.fromkeys(("train_examples", "test_examples"), examples)
    names = tuple("abcd"[:count])
    assert toy_dataset(**parts, input_names=names).input_names == names
    assert_refused(
        lambda: toy_dataset(**parts, input_names=[*names, "e"]),
        f"toy: input_names has {count + 1} names, the data has {count}",
    )


def as_text(x, **changes):
    """The toy data set with these inputs, ids of three words."""
    parts = {
        part: dataclasses.replace(examples, x=np.resize(x, (examples.num_examples, 2)))
        for part, examples in (
            ("train_examples", three_clients()),
            ("test_examples", three_clients().take(1)),
        )
    }
    words = Vocabulary("words", ("to", "be", "<UNK>"))
    return toy_dataset(**parts, **changes, vocabulary=words)


def test_inputs_are_ids_of_a_vocabulary():
    data = as_text(np.arange(3, dtype=np.int64))
    assert "vocabulary: 3 words" in data.describe()
    for x, message in (
        (np.zeros(2, np.uint8), "toy: train: a vocabulary needs int32 or int64 inputs"),
        (
            np.array([0, 3], np.int32),
            "inputs are 0 to 3, but the vocabulary's ids are 0",
        ),
        (np.array([0, -1], np.int32), "toy: train: inputs are -1 to 0"),
    ):
        assert_refused(lambda x=x: as_text(x), message)
