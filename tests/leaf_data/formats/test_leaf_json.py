"""LEAF's JSON: the files of a folder, one file's users, what is refused, memory."""

import json
import os

import pytest
from made_up import assert_refused

from leaf_data.formats import leaf_json


def _touch(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text("{}")


def _found(folder):
    files = leaf_json.find("toy", [str(folder), str(folder / "toy")])
    return [(os.path.relpath(f.path, folder), f.part, f.number) for f in files]


@pytest.mark.parametrize("sub", ["", "data", "toy", "toy/data"])
def test_files_in_numeric_order_train_before_test(tmp_path, sub):
    names = [f"all_data_{number}_niid_05_keep_0_{{}}_9.json" for number in (10, 2)]
    for part in ("test", "train"):
        _touch(tmp_path / sub / part, *(name.format(part) for name in names))
    _touch(tmp_path / sub / "train", "._all_data_3.json", "notes.txt")
    expected = [
        (os.path.join(sub, part, name.format(part)), part, number)
        for name, number in ((names[1], 2), (names[0], 10))
        for part in ("train", "test")
    ]
    assert _found(tmp_path) == expected


def test_the_most_processed_folder_is_read(tmp_path):
    data = tmp_path / "data"
    _touch(data / "all_data", "all_data_0.json", "all_data_1.json")
    (data / "sampled_data").mkdir()
    assert _found(tmp_path) == [
        ("data/all_data/all_data_0.json", "all", 0),
        ("data/all_data/all_data_1.json", "all", 1),
    ]
    _touch(data / "sampled_data", "all_data_0_niid_1.json")
    assert _found(tmp_path) == [("data/sampled_data/all_data_0_niid_1.json", "all", 0)]
    _touch(data / "train", "all_data_0_train_8.json")
    alone = f"{data / 'train'} ", f"but {data / 'test'} has none"
    assert_refused(lambda: _found(tmp_path), *alone)
    _touch(data / "test", "all_data_0_test_8.json")
    assert [part for _, part, _ in _found(tmp_path)] == ["train", "test"]
    (data / "train" / "all_data_0_train_8.json").unlink()
    alone = f"{data / 'test'} ", f"but {data / 'train'} has none"
    assert_refused(lambda: _found(tmp_path), *alone)


@pytest.mark.parametrize(
    "paths",
    [
        # FedProx's, a case that differs, and LEAF's without a number.
        "data/train/mytrain.json train, data/test/mytest.json test",
        "Train/a.JSON train, Train/b.json train, Testing/c.json test",
        "data/train/all_data_train_8.json train, data/test/all_data_test_8.json test",
        # The names alone say it, in the folder itself or in one of LEAF's.
        "mytrain.json train, mytest.json test",
        "all_data_train.json train, all_data_test.json test",
        "all_data/x_train.json train, all_data/x_test.json test",
        "all_data_0_train_9.json train, all_data_0_test_9.json test",
        # Nothing says it; users and not names tell different draws.
        "all_data/all_data_0_niid_05.json all, all_data/all_data_0_niid_1.json all",
        "all_data/mine.json all, all_data/yours.json all",
        "synthetic.json all",
        "train.json all",
        # A number of that many digits fits into no array.
        f"all_data/all_data_{'9' * 10}.json all",
    ],
)
def test_files_of_any_name_are_read(tmp_path, paths):
    want = [tuple(path.split()) for path in paths.split(", ")]
    for path, _ in want:
        _touch((tmp_path / path).parent, (tmp_path / path).name)
    parts_by_path = [(path, part) for path, part, _ in _found(tmp_path)]
    assert parts_by_path == want
    assert {number for *_, number in _found(tmp_path)} == {0}


def test_folders_take_precedence_over_files_next_to_them(tmp_path):
    """In all folders; a file of settings next to a data set's folder is not read."""
    _touch(tmp_path, "settings.json")
    for part in ("train", "test"):
        _touch(tmp_path / "toy" / "data" / part, f"my{part}.json")
    assert [part for _, part, _ in _found(tmp_path)] == ["train", "test"]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (
            ("train/a_train.json", "test/b_train.json"),
            "is a train file by its name, in the folder of test",
        ),
        (
            ("train/a_test.json", "test/b.json"),
            "is a test file by its name, in the folder of train",
        ),
        (("train.json", "test.json", "val.json"), "val.json is a validation set"),
        (("mytrain.json", "mytest.json", "b.json"), "b.json is neither by its name"),
        (("train.json", "b.json"), "no file next to it is a test set"),
        (("train/a\n.json", "test/b.json"), "'a\\n.json' has a character that cannot"),
    ],
)
def test_names_that_contradict_are_rejected(tmp_path, paths, message):
    for path in paths:
        _touch((tmp_path / path).parent, (tmp_path / path).name)
    assert_refused(lambda: _found(tmp_path), message)


@pytest.mark.parametrize("part", ["train", "test", "Train"])
def test_the_folder_of_one_part_is_refused(tmp_path, part):
    """Split again, its files would look like a whole data set."""
    _touch(tmp_path / part, "a.json")
    assert _found(tmp_path / part) == [("a.json", "all", 0)]
    _touch(tmp_path / ("train" if part == "test" else "test"), "b.json")
    words = f"{tmp_path / part}: has one part alone: give the folder above it"
    assert_refused(lambda: _found(tmp_path / part), words)


def test_a_folder_without_files_is_named(tmp_path):
    (tmp_path / "data" / "train").mkdir(parents=True)
    words = f"without any: {tmp_path / 'data' / 'train'}"
    assert_refused(lambda: _found(tmp_path), words)


def _document(**changes):
    user_data = {
        "b": {"x": [[1], [2]], "y": [3, 4]},
        "a": {"x": [[5]], "y": [6], "extra": 1},
    }
    document = {"users": ["a", "b"], "num_samples": [1, 2], "user_data": user_data}
    return {**document, **changes}


def _read(tmp_path, document):
    path = tmp_path / "all_data_0.json"
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_text(text)
    return leaf_json.read(str(path), lambda x, y: list(zip(x, y)))[0]


EXPECTED = {"a": [([5], 6)], "b": [([1], 3), ([2], 4)]}


@pytest.mark.parametrize(
    "document",
    [
        _document(),
        dict(reversed(list(_document().items()))),
        # LEAF keeps the whole list after it has dropped users.
        _document(hierarchies=["g", "h", "i"]),
        # What split_data.py leaves of users with fewer than two examples.
        _document(
            user_data={**_document()["user_data"], "dropped": {"x": [], "y": []}}
        ),
        # A name twice: user_data has what came last.
        _document(users=["a", "b", "a"], num_samples=[7, 2, 1]),
    ],
)
def test_users_are_yielded_in_the_order_of_the_list_users(tmp_path, document):
    users = _read(tmp_path, document)
    assert users == EXPECTED and list(users) == ["a", "b"]


def test_users_without_examples_and_with_any_name_are_kept(tmp_path):
    data = {"x": {"x": [], "y": []}, "y": {"x": [1], "y": [2]}}
    document = {"users": ["y", "x"], "num_samples": [1, 0], "user_data": data}
    assert _read(tmp_path, document) == {"y": [(1, 2)], "x": []}
    assert _read(tmp_path, {"users": [], "num_samples": [], "user_data": {}}) == {}


def _with_user(**fields):
    data = _document()["user_data"]
    return _document(user_data={**data, "b": {**data["b"], **fields}})


@pytest.mark.parametrize(
    "document, message",
    [
        ({"users": [], "num_samples": []}, "has no 'user_data'"),
        ({"users": [], "user_data": {}}, "has no 'num_samples'"),
        ({}, "has no 'users'"),
        (_document(users=["a"], num_samples=[1]), "user b: is in user_data but not in"),
        (
            _document(users=["a", "b", "c"], num_samples=[1, 2, 0]),
            "user c: is in users but not in user_data",
        ),
        (_document(num_samples=[1]), "2 users but 1 num_samples"),
        (_document(num_samples=[1, 3]), "user b: num_samples is 3, but there are 2"),
        (_document(num_samples=[1, True]), "num_samples is not a list of int"),
        (_document(users=["a", 1]), "users is not a list of str"),
        (_document(users=["a", ""]), "users has an empty name"),
        (_document(users=["a", "b\n"]), "user 'b\\n' has the control character U+000A"),
        (_document(user_data={"\ud800": {"x": [], "y": []}}), "user '\\ud800' has the"),
        (_document(user_data=[]), "user_data is not an object"),
        (_with_user(y=[3]), "user b: x has 2 examples, but y has 1 labels"),
        (_with_user(x=None), "user b: x is None, not a list"),
        (_with_user(y={"0": 1}), "user b: y is {'0': 1}, not a list"),
        (_with_user(x="text"), "user b: x is 'text', not a list"),
        (
            _document(user_data={"b": {"x": []}}),
            "user b: its user_data has no 'y'",
        ),
        (
            _document(user_data={"b": 3}),
            "user b: its user_data is 3, not an object with the lists x and y",
        ),
        (
            json.dumps(_document()).replace('"a": {"x"', '"b": {"x"'),
            "has the key 'b' twice",
        ),
        (json.dumps(_document())[:-9], "truncated or not JSON (Unterm"),
        (json.dumps(_document()).replace("3,", "3;"), "char 89"),
        ('{"users": ' + "[" * 99999, "truncated or not JSON"),
        ("[1]", "has no 'users'"),
        ("", "truncated or not JSON"),
    ],
)
def test_files_of_another_format_are_rejected(tmp_path, document, message):
    words = tmp_path / "all_data_0.json", ": ", message
    assert_refused(lambda: _read(tmp_path, document), *words)


def test_memory_holds_the_text_and_one_user(tmp_path, peak_of):
    users = [f"u{k}" for k in range(200)]
    rows = {"x": [[0.5] * 100] * 10, "y": [0] * 10}
    document = {"users": users, "num_samples": [10] * 200}
    text = json.dumps({**document, "user_data": dict.fromkeys(users, rows)})
    path = tmp_path / "all_data_0.json"
    path.write_text(text)
    peak = peak_of(lambda: leaf_json.read(str(path), lambda x, y: None))
    assert peak < 2.5 * len(text) < peak_of(lambda: json.loads(text)) / 2
