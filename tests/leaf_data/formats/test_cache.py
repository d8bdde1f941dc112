"""The cache: made once, read after, never trusted if damaged, stale or forged."""

from __future__ import annotations

import logging
import os

import numpy as np
import pytest

from leaf_data import DataError
from leaf_data.formats import cache

ARRAYS = {
    "client_ids": np.array(["f0001_41", "é"]),
    "sizes_all": np.array([1, 2]),
    "x_all": np.arange(900, dtype=np.uint8).reshape(3, 300),
    "y_all": np.array([0, 2, 1], np.int32),
    "none_all": np.zeros((3, 0), np.int32),
}
FLIPPED = ARRAYS["x_all"][::-1]
FIELDS = {"x": ((300,), "uint8"), "y": ((), "int32"), "none": ((0,), "int32")}


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


def _get(folder, make, key="key", cache_dir=None):
    arrays = cache.cached(
        *(
            "toy",
            str(folder),
            key,
            make,
            cache_dir,
            cache.clients_form(("all",), FIELDS),
        ),
        check=lambda arrays: cache.check_clients(arrays, ("all",), 3),
    )
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


def _forge(**changes):
    """Saves other arrays, the checksum right; None for what is not there."""

    def save(path, whole):
        arrays = {**ARRAYS, **changes}
        arrays = {name: a for name, a in arrays.items() if a is not None}
        digest = np.array(cache._checksum(arrays))
        np.savez(path, key=whole["key"], sha256=digest, **arrays)

    return save


FORGED = {
    "cut": lambda path, whole: path.write_bytes(path.read_bytes()[:-1]),
    "empty": lambda path, whole: path.write_bytes(b""),
    "packed": lambda path, whole: np.savez_compressed(path, **whole),
    "other": lambda path, whole: np.savez(
        path, **{**whole, "x_all": ARRAYS["x_all"] + 1}
    ),
    "objects": lambda path, whole: np.savez(path, x=np.array([{}], dtype=object)),
    "no images": _forge(x_all=None),
    "one more": _forge(more=np.zeros(3)),
    "floats": _forge(x_all=ARRAYS["x_all"].astype(np.float32)),
    "other images": _forge(x_all=np.zeros((3, 9), np.uint8)),
    "one number": _forge(sizes_all=np.int64(3)),
    "negative sizes": _forge(sizes_all=np.array([5, -2])),
    "sizes that wrap": _forge(sizes_all=np.array([2**63 - 1, -(2**63) + 4])),
    "labels above": _forge(y_all=np.full(3, 3, np.int32)),
    "a name twice": _forge(client_ids=np.array(["a", "a"])),
    "an end of a line": _forge(client_ids=np.array(["a", "b\nc"])),
}


@pytest.mark.parametrize("name", FORGED)
def test_a_damaged_or_forged_cache_is_made_anew(home, name, caplog):
    _get(home / "data", Maker())
    path = home / "data" / "toy_cache" / "toy.npz"
    with np.load(path) as file:
        whole = {name: file[name] for name in file.files}
    _forge()(path, whole)
    never = Maker()
    _get(home / "data", never)
    assert never.calls == 0  # The forger's tools are good enough.
    FORGED[name](path, whole)
    make = Maker()
    for _ in range(2):
        _get(home / "data", make)
    assert make.calls == 1 and f"{path}: damaged" in caplog.text


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
