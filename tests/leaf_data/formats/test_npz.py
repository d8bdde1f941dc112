"""Archives of arrays: what their headers say is known before they are unpacked."""

import io
import zipfile

import numpy as np
import pytest
from made_up import assert_refused

from leaf_data.formats import idx, npz


def _npy(array, **changes):
    """The bytes of an array's file; the header may say something else."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, {**header, **changes})
    return file.getvalue() + array.tobytes()


def _write(path, members, method):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return str(path)


def _fails(path, words):
    with pytest.raises(ValueError, match=words):
        with npz.opened(path):
            pass


def test_an_array_is_not_unpacked_to_see_its_shape(tmp_path, peak_of):
    """A quarter of a gigabyte of zeros in a file of 300 KB."""
    path = tmp_path / "mnist.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("x", "y"):
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(_npy(np.zeros(0, np.uint8), shape=(1 << 28,)))
                for _ in range(1 << 8):
                    member.write(bytes(1 << 20))

    def refuse():
        assert_refused(
            lambda: idx.read_npz(str(path), {"x": (4, 3)}), path, "x is uint8 "
        )

    assert peak_of(refuse) < 5e6


def test_members_of_other_bytes_or_otherwise_compressed(tmp_path):
    path = tmp_path / "file.npz"
    zeros = np.zeros((1, 3), np.uint8)
    _write(path, {"x.npy": _npy(zeros)}, zipfile.ZIP_BZIP2)
    _fails(path, "compressed otherwise")
    _write(path, {"x.npy": _npy(zeros, shape=(2**40,))}, zipfile.ZIP_STORED)
    _fails(path, "has other bytes than its header says")
