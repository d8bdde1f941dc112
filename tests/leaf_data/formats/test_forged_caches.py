"""Caches that somebody else wrote, and data whose size and time tell nothing."""

from __future__ import annotations

import json
import logging
import os

import numpy as np
import pytest

import leaf_data
from leaf_data.formats import cache

pytestmark = pytest.mark.usefixtures("empty_home")


def _write_leaf(folder, first):
    """LEAF's files of two users, whose images begin with a value."""
    for part in ("train", "test"):
        data = {
            user: {"x": [[first] + [1.0] * 783] * n, "y": [k] * n}
            for k, (user, n) in enumerate({"a": 3, "b": 2}.items())
        }
        document = {"users": ["a", "b"], "num_samples": [3, 2], "user_data": data}
        path = folder / part / f"all_data_0_{part}_9.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(document)
        if part == "test":  # The two would otherwise be one file.
            text += " "
        path.write_text(text)
        os.utime(path, ns=(5, 5))
    return folder


def _first_pixels(data):
    return set(data.train_examples.x[:, 0, 0].tolist())


def test_other_data_of_equal_size_and_time_is_not_the_old(tmp_path):
    _write_leaf(tmp_path, 0.2)
    before = leaf_data.load("femnist", tmp_path)
    assert _first_pixels(before) == {51}
    _write_leaf(tmp_path, 0.4)
    after = leaf_data.load("femnist", tmp_path)
    assert _first_pixels(after) == {102}
    assert before.origin.files != after.origin.files
    for name, digest in after.origin.files:
        path = next(tmp_path.rglob(name))
        assert digest == cache.places.sha256(str(path))


def _forge(path, change):
    """Changes a cache's arrays, and makes key and checksum those of the change."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    key = arrays.pop("key")
    del arrays["sha256"]
    arrays = change(arrays)
    digest = np.array(cache._checksum(arrays))
    np.savez(path, key=key, sha256=digest, **arrays)


def _set(name, value):
    return lambda arrays: {**arrays, name: value}


def _less(name):
    return lambda arrays: {k: v for k, v in arrays.items() if k != name}


FORGED = {
    "nothing": lambda arrays: {},
    "no images": _less("x_train"),
    "no names": _less("client_ids"),
    "one more": _set("more", np.zeros(3)),
    "floats": lambda a: {**a, "x_train": a["x_train"].astype(np.float32)},
    "labels as text": lambda a: {**a, "y_test": a["y_test"].astype(str)},
    "other images": _set("x_train", np.zeros((5, 9, 9), np.uint8)),
    "one number": _set("sizes_train", np.int64(5)),
    "too many sizes": _set("sizes_train", np.array([3, 1, 1])),
    "negative sizes": _set("sizes_train", np.array([7, -2])),
    "sizes that wrap": _set("sizes_test", np.array([2**63 - 1, -(2**63) + 6])),
    "sizes that are too few": _set("sizes_test", np.array([1, 1])),
    "labels above": _set("y_train", np.full(5, 62, np.int32)),
    "labels below": _set("y_train", np.full(5, -1, np.int32)),
    "a name twice": _set("client_ids", np.array(["a", "a"])),
    "no name": _set("client_ids", np.array(["a", ""])),
    "a name with an end of a line": _set("client_ids", np.array(["a", "b\nc"])),
    "names as numbers": _set("client_ids", np.array([1, 2])),
    "a file that is not there": _set("files", np.array([0, -1])),
    "other checksums": _set("source_sha256", np.array(["0" * 64] * 2)),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_cache_is_made_anew(tmp_path, name, caplog):
    _write_leaf(tmp_path, 0.2)
    good = leaf_data.load("femnist", tmp_path)
    path = tmp_path / "femnist_cache" / "femnist.npz"
    _forge(path, lambda arrays: arrays)
    with caplog.at_level(logging.WARNING):
        leaf_data.load("femnist", tmp_path)  # The forger's tools are good enough.
    assert caplog.text == ""
    _forge(path, FORGED[name])
    found = leaf_data.load("femnist", tmp_path)
    assert f"{path}: damaged" in caplog.text
    np.testing.assert_array_equal(found.train_examples.x, good.train_examples.x)
    assert found.client_ids == good.client_ids and found.origin == good.origin


def test_a_compressed_cache_is_not_unpacked(tmp_path, caplog, peak_of):
    path = tmp_path / "toy_cache" / "toy.npz"
    path.parent.mkdir()
    zeros = np.zeros(1 << 27, np.uint8)
    np.savez_compressed(path, key=np.array("key"), sha256=np.array(""), x=zeros)
    del zeros
    peak = peak_of(lambda: cache.cached("toy", str(tmp_path), "key", dict))
    assert f"{path}: damaged" in caplog.text and peak < 5e6


def test_files_that_change_while_they_are_read(tmp_path, monkeypatch, assert_refused):
    _write_leaf(tmp_path, 0.2)
    sha256 = cache.places.sha256

    def then_they_change(path):
        digest = sha256(path)
        with open(path, "a") as file:
            file.write(" ")
        return digest

    monkeypatch.setattr(cache.places, "sha256", then_they_change)
    assert_refused(lambda: leaf_data.load("femnist", tmp_path), tmp_path, "changed")


def test_a_database_that_is_packed_too_well(tmp_path, assert_refused, monkeypatch):
    import lzma

    from leaf_data.formats import tff_database

    monkeypatch.setattr(tff_database, "_BLOCK", 1 << 16)
    packed = tmp_path / "emnist_all.sqlite.lzma"
    with lzma.open(packed, "wb", format=lzma.FORMAT_ALONE) as file:
        for _ in range(50):
            file.write(bytes(1 << 20))

    def load():
        return leaf_data.load("femnist", tmp_path, source="tff")

    assert_refused(load, f"{packed}: cannot be unpacked (it becomes 100 times")
    # A dictionary of 4 GB, in a header of thirteen bytes.
    packed.write_bytes(b"\x5d\xff\xff\xff\xff" + b"\xff" * 8 + b"\0" * 20)
    assert_refused(load, f"{packed}: cannot be unpacked (")
