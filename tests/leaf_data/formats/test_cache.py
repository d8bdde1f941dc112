"""The cache: made once, read after, never trusted when it is damaged or stale."""

from __future__ import annotations

import logging
import os

import numpy as np
import pytest

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


def _halved(path, whole):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGES = {
    "cut": lambda path, whole: path.write_bytes(path.read_bytes()[:-1]),
    "half": _halved,
    "empty": lambda path, whole: path.write_bytes(b""),
    "text": lambda path, whole: path.write_bytes(b"text"),
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
    def full(file, **arrays):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
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
    # One that somebody put beside the data is used, writable or not.
    monkeypatch.setattr(os, "access", access)
    _get(home / "data", Maker())
    (home / "xdg" / path).unlink()
    monkeypatch.setattr(os, "access", read_only)
    never = Maker()
    _get(home / "data", never)
    assert never.calls == 0


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
    paths = [str(home / "data" / name) for name in ("a", "b")]
    for path in paths:
        with open(path, "w") as file:
            file.write(path[-1])
        os.utime(path, ns=(5, 5))
    key = cache.key_of_files(paths, version=1)
    assert cache.key_of_files(paths, version=1) == key
    others = {cache.key_of_files(paths, version=2), cache.key_of_files(paths[:1])}
    others.add(cache.key_of_files(paths[::-1], version=1))
    os.utime(paths[0], ns=(5, 6))
    others.add(cache.key_of_files(paths, version=1))
    with open(paths[1], "a") as file:
        file.write("more")
    os.utime(paths[1], ns=(5, 5))
    others.add(cache.key_of_files(paths, version=1))
    assert len(others) == 5 and key not in others
    for content in "cb":  # As long as at first, and of the same time.
        with open(paths[1], "w") as file:
            file.write(content)
        for path in paths:
            os.utime(path, ns=(5, 5))
        assert (cache.key_of_files(paths, version=1) == key) == (content == "b")
    for path in (home / "none", home):
        with pytest.raises(DataError, match="cannot be read"):
            cache.key_of_files([str(path)])
