"""`femnist`: split and unsplit data, the cache, the settings, folders without data."""

from __future__ import annotations

import glob
import hashlib
import os

import numpy as np
import pytest

import leaf_data
from leaf_data.datasets.femnist import femnist_leaf

pytestmark = pytest.mark.usefixtures("no_download")


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
    assert data.options == {
        "source": "leaf",
        "sample_fraction": 1.0,
        "min_samples": 0,
        "seed": 0,
    }
    assert data.origin.source == "LEAF JSON (train and test)"
    assert data.origin.folder == str(tmp_path / "in" / sub / "data")
    names = [name for name, _ in data.origin.files]
    assert [name.split("_")[2] for name in names] == ["2", "2", "10", "10"]
    for name, digest in data.origin.files:
        (path,) = glob.glob(os.path.join(data.origin.folder, "*", name))
        with open(path, "rb") as file:
            assert hashlib.sha256(file.read()).hexdigest() == digest


def test_the_cache_serves_every_option_and_notices_changes(tmp_path, monkeypatch, toy):
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
    assert (tmp_path / "data" / "femnist_cache" / "femnist.npz").is_file()
    toy.load(tmp_path, cache_dir=tmp_path / "caches")
    toy.load(tmp_path, cache_dir=tmp_path / "caches")
    assert len(calls) == 2
    path = next((tmp_path / "data" / "test").glob("all_data_10_*"))
    toy.write(path, {"d": toy.user(4, 3, 9), "a": toy.user(1, 1, 1)})
    assert len(toy.seen(toy.load(tmp_path).test_examples)["d"]) == 3
    assert len(calls) == 3


def test_unsplit_data_is_split_by_leafs_rule(tmp_path, toy):
    sizes = {"one": 1, "two": 2, "ten": 10, "nineteen": 19, "none": 0, "fifty": 50}
    numbers = {user: place for place, user in enumerate(sizes)}
    users = {user: toy.user(numbers[user], size) for user, size in sizes.items()}
    toy.write(tmp_path / "data" / "all_data" / "all_data_0.json", users)
    data = toy.load(tmp_path)
    train, test = toy.seen(data.train_examples), toy.seen(data.test_examples)
    assert {u: (len(train[u]), len(test[u])) for u in train} == {
        "two": (1, 1),
        "ten": (9, 1),
        "nineteen": (17, 2),
        "fifty": (45, 5),
    }
    for user in train:
        assert sorted(train[user] + test[user]) == toy.numbered(
            numbers[user], 0, sizes[user]
        )
        assert train[user] == sorted(train[user]) and test[user] == sorted(test[user])
    assert data.origin.source == "LEAF JSON (all_data, split here)"
    assert toy.seen(toy.load(tmp_path).test_examples) == test
    other = toy.seen(toy.load(tmp_path, seed=1).test_examples)
    assert other["fifty"] != test["fifty"]
    # A user's split does not depend on who else is there.
    fewer = toy.seen(toy.load(tmp_path, min_samples=11).test_examples)
    assert fewer == {u: test[u] for u in ("nineteen", "fifty")}


def test_folders_without_data(tmp_path, assert_refused, toy):
    assert_refused(
        lambda: toy.load(tmp_path / "none"), "femnist: data_dir", "is not a folder"
    )
    assert_refused(
        lambda: toy.load(tmp_path),
        f"femnist: no LEAF data in {tmp_path} or {tmp_path / 'femnist'}",
    )
    (tmp_path / "data" / "all_data").mkdir(parents=True)
    assert_refused(
        lambda: toy.load(tmp_path), f"without any: {tmp_path / 'data' / 'all_data'}"
    )
    assert_refused(
        lambda: leaf_data.load("femnist"), "pass data_dir or set TFF_PMC_DATA_DIR"
    )
