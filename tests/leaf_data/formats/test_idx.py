"""The idx format: bytes made by hand, and files that are something else."""

import gzip

import numpy as np
import pytest
from made_up import as_idx, assert_refused

from leaf_data.formats import idx


def test_idx_bytes_written_by_hand(tmp_path):
    data = bytes.fromhex("00000803 00000002 00000001 00000003 0102037f80ff")
    (tmp_path / "plain").write_bytes(data)
    (tmp_path / "packed.gz").write_bytes(gzip.compress(data))
    for name in ("plain", "packed.gz"):
        array = idx.read(str(tmp_path / name), (2, 1, 3))
        assert array.dtype == np.uint8
        assert array.tolist() == [[[1, 2, 3]], [[127, 128, 255]]]
    labels = bytes.fromhex("00000801 00000002 0709")
    (tmp_path / "labels").write_bytes(labels)
    assert idx.read(str(tmp_path / "labels"), (2,)).tolist() == [7, 9]


@pytest.mark.parametrize("packed", [False, True])
def test_invalid_idx_files_are_rejected(tmp_path, packed):
    path = tmp_path / ("file.gz" if packed else "file")
    good = as_idx(np.arange(6, dtype=np.uint8).reshape(2, 3))

    def fails(data, message):
        path.write_bytes(gzip.compress(data) if packed else data)
        assert_refused(lambda: idx.read(str(path), (2, 3)), path, message)

    fails(good[:-1], "is truncated, 2 x 3 values take 18 bytes")
    fails(good + b"\0", "is too long, 2 x 3 values take 18 bytes")
    words = "is not an idx file of 2 x 3 bytes: 0x"
    fails(good[:6], words)
    fails(b"", f"{words}, not 0x00000802")
    fails(b"\x89PNG" + good[4:], f"{words}89504e47")
    fails(as_idx(np.zeros(6, np.uint8)), f"{words}00000801")
    fails(as_idx(np.zeros((2, 3), np.uint8), kind=13), f"{words}00000d02")
    fails(as_idx(np.zeros((3, 2), np.uint8)), f"{words}000008020000000300000002, not")
