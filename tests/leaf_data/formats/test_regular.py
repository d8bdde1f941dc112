"""What stands in the place of a file and is none: nothing waits for it."""

import os

import pytest
from made_up import assert_refused

import leaf_data
from leaf_data import DataError
from leaf_data.datasets import celeba, celeba_files, cifar10
from leaf_data.formats import (
    cache,
    data_files,
    idx,
    image_folder,
    leaf_json,
    tff_sqlite,
)

READERS = {
    "cifar10": lambda path: cifar10._read_batch(path, ""),
    "idx": lambda path: idx.read(path, (2, 2)),
    "npz": lambda path: idx.read_npz(path, {"x": (2,)}),
    "image": image_folder.decode,
    "json": lambda path: leaf_json.read(path, lambda x, y: x),
    "sha256": data_files.sha256,
    "tff": lambda path: tff_sqlite.read(path, celeba.DATABASE),
    "attributes": celeba_files.read_attributes,
    "table": leaf_data.read_client_table,
}


def _fifo(path):
    os.mkfifo(path)
    return path


def _link(target):
    def make(path):
        path.symlink_to(target)
        return path

    return make


def _folder(path):
    path.mkdir()
    return path


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    "make",
    [_fifo, _link("/dev/zero"), _folder, _link("nowhere")],
    ids=["fifo", "zero", "folder", "nowhere"],
)
def test_what_is_no_regular_file_is_refused(tmp_path, reader, make, no_hang):
    path = make(tmp_path / "file")
    assert_refused(lambda: READERS[reader](str(path)), path)


def _cached(folder, cache_dir=None):
    """A cache of no array."""
    cache.cached("toy", folder, [], dict, cache_dir, lambda arrays: None)


def test_a_fifo_as_the_cache_is_made_anew(tmp_path, no_hang):
    (tmp_path / "toy_cache").mkdir()
    path = _fifo(tmp_path / "toy_cache" / "toy")
    _cached(str(tmp_path))
    assert path.is_dir()


def test_names_that_no_file_can_have(tmp_path):
    for name in ("a\0b", "a\ud800"):
        path = str(tmp_path / name)
        with pytest.raises(OSError, match="cannot be a file's name"):
            data_files.open_file(path)
        with pytest.raises(DataError):
            _cached(path)
    assert_refused(lambda: _cached(str(tmp_path), f"{tmp_path}/a\0"), "is not writable")


def test_the_size_is_known_first(tmp_path, peak_of):
    path = tmp_path / "large"
    with open(path, "wb") as file:
        file.truncate(1 << 40)  # No more than a hole.

    def refuse():
        with pytest.raises(OSError, match="more than 1,000 bytes"):
            data_files.read(path, 1000)

    assert peak_of(refuse) < 1e6
    path.write_bytes(b"0" * 1000)
    assert data_files.read(path, 1000) == b"0" * 1000
    with data_files.open_file(_link(path)(tmp_path / "link")) as file:
        assert file.read() == b"0" * 1000
