"""`femnist` of LEAF's files: parts, cache, sampling, splits, and what is refused."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil

import numpy as np
import pytest

from leaf_data.datasets import femnist_leaf

pytestmark = pytest.mark.usefixtures("empty_home")


@pytest.mark.parametrize("sub", ["", "femnist"])
def test_split_data(tmp_path, sub, caplog, toy):
    toy.write_split(tmp_path / "in" / sub)
    data = toy.load(tmp_path / "in")
    train, test = toy.seen(data.train_examples), toy.seen(data.test_examples)
    assert list(train) == list(toy.SPLIT)
    for client, (number, first, second) in toy.SPLIT.items():
        assert train[client] == toy.numbered(number, 0, first)
        start = 0 if client == "e" else first
        assert test[client] == toy.numbered(number, start, start + second)
    assert "1 of 5 users have no training examples" in caplog.text
    assert (data.num_classes, data.element_shape) == (62, (28, 28))
    assert (data.train_examples.x.dtype, data.train_examples.y.dtype) == ("u1", "i4")
    convention = data.pixel_convention
    assert (convention.background, convention.ink) == (255, 0)
    assert np.mean(data.train_examples.x == 255) > 0.99
    assert list(data.options) == ["source", "sample_fraction", "min_samples", "seed"]
    assert data.origin.source == "LEAF JSON (train and test)"
    assert data.origin.folder == str(tmp_path / "in" / sub / "data")
    names = [name for name, _ in data.origin.files]
    assert [name.split("_")[2] for name in names] == ["2", "2", "10", "10"]
    for name, digest in data.origin.files:
        (path,) = glob.glob(os.path.join(data.origin.folder, "*", name))
        with open(path, "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == digest


def test_the_cache_serves_every_option_and_notices_changes(
    tmp_path, monkeypatch, toy, assert_refused
):
    toy.write_split(tmp_path)
    calls = []
    read = femnist_leaf.read
    monkeypatch.setattr(
        femnist_leaf, "read", lambda files: calls.append(files) or read(files)
    )
    first = toy.load(tmp_path)
    again = toy.load(tmp_path)
    np.testing.assert_array_equal(first.train_examples.x, again.train_examples.x)
    assert first.describe() == again.describe()
    toy.load(tmp_path, sample_fraction=0.5, min_samples=3, seed=4)
    assert len(calls) == 1
    assert (tmp_path / "data" / "femnist_cache" / "femnist").is_dir()
    toy.load(tmp_path, cache_dir=tmp_path / "caches")
    toy.load(tmp_path, cache_dir=tmp_path / "caches")
    assert len(calls) == 2
    path = next((tmp_path / "data" / "test").glob("all_data_10_*"))
    status = path.stat()
    # Of equal size and time, but other data.
    path.write_text(path.read_text().replace("[13, 14]", "[14, 13]"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    own = toy.load(tmp_path).test_examples.client("d")["y"].tolist()
    assert own != first.test_examples.client("d")["y"].tolist()
    assert len(calls) == 3


def test_unsplit_data_is_sampled_and_split_by_leafs_rule(tmp_path, toy):
    sizes = {"one": 1, "two": 2, "ten": 10, "nineteen": 19, "none": 0, "fifty": 50}
    numbers = {user: place for place, user in enumerate(sizes)}
    users = {user: toy.user(numbers[user], size) for user, size in sizes.items()}
    toy.write(tmp_path / "data" / "all_data" / "all_data_0.json", users)
    data = toy.load(tmp_path)
    train, test = toy.seen(data.train_examples), toy.seen(data.test_examples)
    found = {u: (len(train[u]), len(test[u])) for u in train}
    assert found == {
        "two": (1, 1),
        "ten": (9, 1),
        "nineteen": (17, 2),
        "fifty": (45, 5),
    }
    for user in train:
        own = toy.numbered(numbers[user], 0, sizes[user])
        assert sorted(train[user] + test[user]) == own
        assert train[user] == sorted(train[user]) and test[user] == sorted(test[user])
    assert data.origin.source == "LEAF JSON (all_data, split here)"
    assert toy.seen(toy.load(tmp_path).test_examples) == test
    other = toy.seen(toy.load(tmp_path, seed=1).test_examples)
    assert other["fifty"] != test["fifty"]
    # A user's split does not depend on who else is there.
    fewer = toy.seen(toy.load(tmp_path, min_samples=11).test_examples)
    assert fewer == {u: test[u] for u in ("nineteen", "fifty")}
    for seed in range(4):
        half = toy.load(tmp_path, sample_fraction=0.5, seed=seed)
        total = half.train_examples.num_examples + half.test_examples.num_examples
        assert 39 <= total <= 41  # Whoever is left with one image is left out.


def test_sampling_split_data(tmp_path, toy):
    toy.write_split(tmp_path)
    whole = toy.load(tmp_path)
    for seed in range(6):
        data = toy.load(tmp_path, sample_fraction=0.5, seed=seed)
        train, test = toy.seen(data.train_examples), toy.seen(data.test_examples)
        assert list(train) == [client for client in toy.SPLIT if client in train]
        total = {u: len(train[u]) + len(test[u]) for u in train}
        in_2 = sum(total.get(u, 0) for u in "cbe")
        in_10 = sum(total.get(u, 0) for u in "da")
        assert (in_2, in_10) == (int(0.5 * 33), int(0.5 * 13))
        for user in train:  # The first of each part.
            for found, source in ((train, whole.train_examples), (test, None)):
                source = source or whole.test_examples
                assert found[user] == toy.seen(source)[user][: len(found[user])]


def test_min_samples_counts_both_parts_after_sampling(tmp_path, assert_refused, toy):
    toy.write_split(tmp_path)
    assert toy.load(tmp_path, min_samples=10).client_ids == ("c", "b", "d")
    assert toy.load(tmp_path, min_samples=11).client_ids == ("c", "d")
    assert toy.load(tmp_path, min_samples=20).client_ids == ("c",)
    for seed in range(6):
        options = {"sample_fraction": 0.5, "seed": seed}
        sampled = toy.load(tmp_path, **options)
        sizes = sampled.train_examples.sizes + sampled.test_examples.sizes
        kept = [u for u, n in zip(sampled.client_ids, sizes) if n >= 4]
        assert list(toy.load(tmp_path, min_samples=4, **options).client_ids) == kept
    assert_refused(
        lambda: toy.load(tmp_path, min_samples=21),
        "no writer in",
        "sample_fraction=1.0 and min_samples=21",
    )
    assert_refused(lambda: toy.load(tmp_path, sample_fraction=0.001), "no writer in")


def test_a_writer_in_several_files(tmp_path, caplog, toy):
    toy.write(tmp_path / "all_data" / "all_data_1.json", {"b": toy.user(2, 4)})
    toy.write(
        tmp_path / "all_data" / "all_data_2.json",
        {"a": toy.user(1, 3), "b": toy.user(2, 5, 4), "c": toy.user(3, 2)},
    )
    toy.write(tmp_path / "all_data" / "all_data_3.json", {"c": toy.user(3, 2)})
    data = toy.load(tmp_path)
    assert data.client_ids == ("b", "a", "c")
    train, test = toy.seen(data.train_examples), toy.seen(data.test_examples)
    assert sorted(train["b"] + test["b"]) == toy.numbered(2, 0, 9)
    assert sorted(train["c"] + test["c"]) == toy.numbered(3, 0, 2)
    assert "all_data_2.json: user b: joined" in caplog.text
    assert "all_data_3.json: user c: the same examples as before" in caplog.text


def test_a_user_without_any_example_is_named(tmp_path, assert_refused, toy):
    toy.write_split(tmp_path)
    name = "data/{0}/all_data_7_niid_05_keep_0_{0}_9.json"
    toy.write(
        tmp_path / name.format("train"), {"f": toy.user(6, 3), "g": toy.user(7, 0)}
    )
    toy.write(
        tmp_path / name.format("test"), {"f": toy.user(6, 1, 3), "g": toy.user(7, 0)}
    )
    assert_refused(
        lambda: toy.load(tmp_path),
        "all_data_7_niid_05_keep_0_train_9.json: user g: has no examples in any file",
    )


def test_one_file_as_train_and_test_is_refused(tmp_path, assert_refused, toy):
    toy.write_split(tmp_path)
    names = [f"all_data_10_niid_05_keep_0_{part}_9.json" for part in ("train", "test")]
    train, test = (tmp_path / "data" / n.split("_")[-2] / n for n in names)
    shutil.copy(train, test)
    assert_refused(lambda: toy.load(tmp_path), f"{train} and {test} are the same")


def test_pixels_are_rounded_from_floats_and_ints(tmp_path, toy):
    image = [k % 256 / 255 for k in range(784)]
    image[256:260] = [0, 1, 0.3, 0.999]
    for part, label in (("train", 61), ("test", 60)):
        user = {"x": [image], "y": [label]}
        toy.write(tmp_path / part / f"all_data_0_{part}_9.json", {"a": user})
    found = toy.load(tmp_path).train_examples.x.reshape(-1)
    expected = [k % 256 for k in range(784)]
    expected[256:260] = [0, 255, 76, 255]  # 76.5 goes to the even one.
    assert found.tolist() == expected


def _with(place, value):
    """A user whose second of three images has this value."""
    x = [[1.0] * 784 for _ in range(3)]
    x[1][place] = value
    return {"x": x, "y": [1, 2, 3]}


@pytest.mark.parametrize(
    "user, message",
    [
        *(
            (_with(5, value), f"image 1 has the value {value!r}")
            for value in (255, 1.0001, -0.5, float("nan"), "0.5", None, True)
        ),
        (_with(5, 10**400), "an image has a value that is not in [0, 1]"),
        ({"x": [[1.0] * 783], "y": [1]}, "image 0 is 783 values, not 784 values"),
        ({"x": ["f.png"], "y": [1]}, "image 0 is 'f.png', not 784 values"),
        *(
            ({"x": [[1.0] * 784], "y": [label]}, f"label 0 is {label!r}, not one of 0")
            for label in (62, -1, 1.5, "A", False)
        ),
    ],
)
def test_users_that_are_not_femnists(tmp_path, user, message, assert_refused, toy):
    path = tmp_path / "all_data" / "all_data_0.json"
    toy.write(path, {"good": toy.user(2, 2), "bad": user})
    assert_refused(lambda: toy.load(tmp_path), f"{path}: user bad: {message}")
    assert not list(tmp_path.rglob("*.npz"))
