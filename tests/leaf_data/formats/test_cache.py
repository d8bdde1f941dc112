"""The cache: made once, read after, made anew if damaged or stale."""

import hashlib
import logging
import os
from unittest import mock

import numpy as np
import pytest

from leaf_data import DataError
from leaf_data.formats import cache, npy_folder

ARRAYS = {
    "client_ids": np.array(["f0001_41", "é"]),
    "sizes_all": np.array([1, 2]),
    "files": np.array([7, 0]),
    "x_all": np.arange(900, dtype=np.uint8).reshape(3, 300),
    "y_all": np.array([0, 2, 1], np.int32),
    "none_all": np.zeros((3, 0), np.int32),
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    (tmp_path / "data").mkdir()
    (tmp_path / "source").write_text("data")
    return tmp_path


def maker():
    """Makes a function that makes the arrays, and counts how often."""
    return mock.Mock(side_effect=lambda: dict(ARRAYS))


def _get(folder, make, cache_dir=None, **parameters):
    source = folder.parent / "source"
    arrays, (digest,) = cache.load_or_make(
        *("toy", str(folder), [str(source)], make, cache_dir),
        **parameters,
    )
    assert digest == hashlib.sha256(source.read_bytes()).hexdigest()
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def _files(folder):
    """The caches, complete or not, below a folder."""
    paths = folder.glob("**/toy_cache/*")
    return sorted(str(path.relative_to(folder)) for path in paths)


def test_a_cache_is_written_once_next_to_the_data(home):
    make = maker()
    for _ in range(3):
        _get(home / "data", make)
    assert make.call_count == 1
    _get(home / "data", make, other=True)
    _get(home / "data", make, other=True)
    assert make.call_count == 2
    assert _files(home) == ["data/toy_cache/toy"]


def test_a_cache_is_rebuilt_if_a_file_changed_or_was_unpacked_with_its_times(home):
    make, source = maker(), home / "source"
    before = source.stat()
    for number, content in enumerate(["data", "atad", "more data"], 1):
        if number > 1:
            source.write_text(content)
            os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
        for _ in range(2):
            _get(home / "data", make)
        assert make.call_count == number


def test_files_that_change_while_they_are_read_are_rejected(home):
    def make():
        (home / "source").write_text("other data")
        return dict(ARRAYS)

    with pytest.raises(DataError, match="changed while they were read"):
        _get(home / "data", make)
    assert _files(home) == []
    (home / "source").unlink()
    with pytest.raises(DataError, match="source: cannot be read"):
        _get(home / "data", make)


def test_a_damaged_cache_is_rebuilt(home, caplog):
    _get(home / "data", maker())
    path = home / "data" / "toy_cache" / "toy"
    for damage in (
        lambda: os.truncate(path / "x_all.npy", 900),
        lambda: os.remove(path / "header.json"),
        lambda: np.save(path / "x_all.npy", np.array([{}], dtype=object)),
    ):
        damage()
        make = maker()
        for _ in range(2):
            _get(home / "data", make)
        assert make.call_count == 1 and f"{path}: the cache is damaged" in caplog.text
        caplog.clear()


def test_an_interruption_leaves_no_partial_cache(home, monkeypatch):
    _get(home / "data", maker())

    interrupted = mock.Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr(npy_folder.Writer, "finish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _get(home / "data", maker(), other=True)
    never = maker()
    _get(home / "data", never)
    assert never.call_count == 0 and _files(home) == ["data/toy_cache/toy"]


def test_a_full_disk_is_only_a_warning(home, monkeypatch, caplog):
    full = mock.Mock(side_effect=OSError(28, "No space left on device"))
    monkeypatch.setattr(npy_folder.Writer, "append", full)
    _get(home / "data", maker())
    assert "No space left on device" in caplog.text and _files(home) == []


def test_cache_dir_holds_the_caches_of_several_folders(home):
    (home / "more").mkdir()
    first, second = maker(), maker()
    for _ in range(2):
        _get(home / "data", first, cache_dir=home / "caches")
        _get(home / "more", second, cache_dir=str(home / "caches"))
    assert (first.call_count, second.call_count) == (1, 1)
    assert len(_files(home / "caches")) == len(_files(home)) == 2
    (home / "file").write_text("")
    with pytest.raises(DataError, match="toy: cache_dir .*file: is not writable"):
        _get(home / "data", maker(), cache_dir=home / "file")


def test_a_read_only_folder_uses_the_users_cache(home, monkeypatch, caplog):
    access = os.access

    def read_only(path, mode):
        return not str(path).startswith(str(home / "data")) and access(path, mode)

    monkeypatch.setattr(os, "access", read_only)
    make = maker()
    _get(home / "data", make)
    (path,) = _files(home / "xdg")
    assert path.startswith("tff_pmc/toy_cache/")
    assert f"not writable: the cache is in {home / 'xdg'}" in caplog.text
    _get(home / "data", make)
    assert make.call_count == 1


def test_without_a_writable_folder_the_arrays_are_still_returned(
    home, monkeypatch, caplog
):
    caplog.set_level(logging.WARNING)
    (home / "xdg").write_text("a file where a folder should be")
    (home / "data" / "toy_cache").write_text("the same")
    make = maker()
    for calls in (1, 2):
        _get(home / "data", make)
        assert make.call_count == calls
    assert "the cache cannot be written" in caplog.text
