"""Archives of arrays: what their headers say is known before they are unpacked."""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pytest

from leaf_data.formats import idx, npz

SHAPES = {"x": (4, 3), "y": (4,)}
ARRAYS = {name: np.arange(np.prod(s), dtype=np.uint8) for name, s in SHAPES.items()}


def _npy(array, **changes):
    """The bytes of an array's file; the header may say something else."""
    file = io.BytesIO()
    header = np.lib.format.header_data_from_array_1_0(array)
    np.lib.format.write_array_header_1_0(file, {**header, **changes})
    return file.getvalue() + array.tobytes()


def _write(path, members, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return str(path)


def _good(**changes):
    members = {f"{n}.npy": _npy(a.reshape(SHAPES[n])) for n, a in ARRAYS.items()}
    return {**members, **{f"{n}.npy": content for n, content in changes.items()}}


def _fails(path, words):
    with pytest.raises(ValueError, match=words):
        with npz.opened(path):
            pass


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_wrote_is_read(tmp_path, save):
    arrays = {**ARRAYS, "names": np.array(["a", "é"]), "none": np.zeros((0, 3)),
              "one": np.array(5.5), "turned": np.asfortranarray(np.eye(3))}  # fmt: skip
    save(tmp_path / "file.npz", **arrays)
    with npz.opened(tmp_path / "file.npz") as members:
        assert list(members) == list(arrays)
        for name, array in arrays.items():
            header, found = members[name], members[name].read()
            assert header.shape == array.shape == found.shape
            assert header.dtype == array.dtype == found.dtype
            np.testing.assert_array_equal(found, array)


ZEROS = np.zeros((1, 3), np.uint8)


def test_an_array_is_not_unpacked_to_see_its_shape(tmp_path, assert_refused, peak_of):
    """A quarter of a gigabyte of zeros in a file of 300 KB."""
    path = tmp_path / "mnist.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in ("x", "y"):
            with file.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(_npy(np.zeros(0, np.uint8), shape=(1 << 28,)))
                for _ in range(1 << 8):
                    member.write(bytes(1 << 20))

    def refuse():
        assert_refused(lambda: idx.read_npz(str(path), SHAPES), path, "x is uint8 ")

    assert peak_of(refuse) < 5e6


def test_members_of_other_bytes_or_otherwise_compressed(tmp_path):
    path = tmp_path / "file.npz"
    _write(path, _good(), zipfile.ZIP_BZIP2)
    _fails(path, "compressed otherwise")
    _write(path, {"x.npy": _npy(ZEROS, shape=(2**40,))}, zipfile.ZIP_STORED)
    _fails(path, "has other bytes than its header says")
