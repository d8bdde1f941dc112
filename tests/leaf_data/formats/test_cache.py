"""The cache: made once, read after, never trusted if damaged, stale or forged."""

from __future__ import annotations

import json
import logging
import os

import numpy as np
import pytest

import leaf_data
from leaf_data import DataError
from leaf_data.formats import cache

ARRAYS = {
    "x": np.arange(600, dtype=np.uint8).reshape(2, 300),
    "names": np.array(["f0001_41", "é"]),
    "none": np.zeros((0, 3), np.int32),
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    (tmp_path / "data").mkdir()
    return tmp_path


class Maker:
    """Counts how often the arrays were made."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return dict(ARRAYS)


def _get(folder, make, key="key", **options):
    arrays = cache.cached("toy", str(folder), key, make, **options)
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def _files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def test_made_once_beside_the_data(home):
    make = Maker()
    for _ in range(3):
        _get(home / "data", make)
    assert make.calls == 1
    assert _files(home) == ["data/toy_cache/toy.npz"]
    _get(home / "data", make, key="another")
    _get(home / "data", make, key="another")
    assert make.calls == 2
    assert _files(home) == ["data/toy_cache/toy.npz"]


DAMAGES = {
    "cut": lambda path, whole: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path, whole: path.write_bytes(b""),
    # What the table of contents has lost, what is not the same, and objects.
    "lost": lambda path, whole: np.savez(path, **{**whole, "x": whole["names"]}),
    "less": lambda path, whole: (whole.pop("x"), np.savez(path, **whole)),
    "other": lambda path, whole: np.savez(path, **{**whole, "none": 1}),
    "objects": lambda path, whole: np.savez(path, x=np.array([{}], dtype=object)),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_made_anew(home, damage, caplog):
    _get(home / "data", Maker())
    path = home / "data" / "toy_cache" / "toy.npz"
    with np.load(path) as file:
        whole = {name: file[name] for name in file.files}
    DAMAGES[damage](path, whole)
    make = Maker()
    _get(home / "data", make)
    assert make.calls == 1 and f"{path}: damaged" in caplog.text
    _get(home / "data", make)
    assert make.calls == 1


def test_an_interruption_leaves_nothing_half(home, monkeypatch):
    _get(home / "data", Maker())
    path = home / "data" / "toy_cache" / "toy.npz"
    good = path.read_bytes()

    def interrupted(file, **arrays):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _get(home / "data", Maker(), key="another")
    assert path.read_bytes() == good
    assert _files(home) == ["data/toy_cache/toy.npz"]


def test_a_full_disk_is_only_a_warning(home, monkeypatch, caplog):
    full = OSError(28, "No space left on device")
    monkeypatch.setattr(np, "savez", lambda *_, **__: (_ for _ in ()).throw(full))
    _get(home / "data", Maker())
    assert "No space left on device" in caplog.text and _files(home) == []


def test_cache_dir_holds_the_caches_of_several_folders(home):
    (home / "more").mkdir()
    first, second = Maker(), Maker()
    for _ in range(2):
        _get(home / "data", first, cache_dir=home / "caches")
        _get(home / "more", second, cache_dir=str(home / "caches"))
    assert (first.calls, second.calls) == (1, 1)
    assert len(_files(home / "caches" / "toy_cache")) == len(_files(home)) == 2
    (home / "file").write_text("")
    with pytest.raises(DataError, match="toy: cache_dir .*file is not writable"):
        _get(home / "data", Maker(), cache_dir=home / "file")


def test_a_read_only_folder_uses_the_users_cache(home, monkeypatch, caplog):
    access = os.access

    def read_only(path, mode):
        return not str(path).startswith(str(home / "data")) and access(path, mode)

    monkeypatch.setattr(os, "access", read_only)
    make = Maker()
    _get(home / "data", make)
    (path,) = _files(home / "xdg")
    assert path.startswith("tff_pmc/toy_cache/")
    assert f"not writable, the cache is {home / 'xdg' / path}" in caplog.text
    caplog.clear()
    _get(home / "data", make)
    assert make.calls == 1 and caplog.text == ""


def test_without_any_place_the_arrays_are_still_made(home, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    (home / "xdg").write_text("a file where a folder should be")
    (home / "data" / "toy_cache").write_text("the same")
    make = Maker()
    for calls in (1, 2):
        _get(home / "data", make)
        assert make.calls == calls
    assert "no cache is kept" in caplog.text


def test_the_key_of_files(home):
    paths = [home / "data" / name for name in ("a", "b")]

    def key(contents="ab", times=(5, 5), chosen=slice(None), version=1):
        for path, content, time in zip(paths, contents, times):
            path.write_text(content)
            os.utime(path, ns=(5, time))
        return cache.key_of_files(map(str, paths[chosen]), version=version)

    assert key() == key()
    others = {key(version=2), key(chosen=slice(1)), key(chosen=slice(None, None, -1))}
    # "ac" is as long as at first, and of the same time.
    others |= {key(times=(6, 5)), key(["a", "more"]), key("ac")}
    assert len(others) == 6 and key() not in others
    for path in (home / "none", home):
        with pytest.raises(DataError, match="cannot be read"):
            cache.key_of_files([str(path)])


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
    for value, byte in ((0.2, 51), (0.4, 102)):
        data = leaf_data.load("femnist", _write_leaf(tmp_path, value))
        assert set(data.train_examples.x[:, 0, 0].tolist()) == {byte}


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
    "one more": _set("more", np.zeros(3)),
    "floats": lambda a: {**a, "x_train": a["x_train"].astype(np.float32)},
    "other images": _set("x_train", np.zeros((5, 9, 9), np.uint8)),
    "one number": _set("sizes_train", np.int64(5)),
    "negative sizes": _set("sizes_train", np.array([7, -2])),
    "sizes that wrap": _set("sizes_test", np.array([2**63 - 1, -(2**63) + 6])),
    "labels above": _set("y_train", np.full(5, 62, np.int32)),
    "a name twice": _set("client_ids", np.array(["a", "a"])),
    "a name with an end of a line": _set("client_ids", np.array(["a", "b\nc"])),
    "a file that is not there": _set("files", np.array([0, -1])),
    "other checksums": _set("source_sha256", np.array(["0" * 64] * 2)),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_cache_is_made_anew(tmp_path, name, caplog, empty_home):
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
