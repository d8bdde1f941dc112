"""CIFAR-10's python batches: pickles that are read, refused, or no batch."""

from __future__ import annotations

import os
import pickle
import struct

import numpy as np
import pytest

from leaf_data.formats import cifar10_batches

SIZE = 40  # Images of a batch that `cifar10_batch` makes.


class _Call:
    """Pickled, it is a call of a function when it is loaded."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_runs_something_is_refused_and_not_run(
    tmp_path, protocol, assert_refused
):
    proof = tmp_path / "proof"
    content = {b"data": _Call(os.system, f"touch {proof}"), b"labels": []}
    path = tmp_path / "data_batch_3"
    path.write_bytes(pickle.dumps(content, protocol))
    assert_refused(
        lambda: cifar10_batches.read(str(path), SIZE),
        f"{path}: refused, its pickle names 'posix.system'",
    )
    assert not proof.exists()
    pickle.loads(path.read_bytes())  # It would have.
    assert proof.exists()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"cbuiltins\neval\n.", "builtins.eval"),
        (b"cnumpy\nload\n.", "numpy.load"),
        (b"cnumpy.core.multiarray\nfromfile\n.", "numpy.core.multiarray.fromfile"),
        # Protocol 4 reads a dotted name as attributes of attributes.
        (b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.mro_x\x93.", "numpy.ndarray.mro_x"),
        (b"\x80\x04\x8c\x05numpy\x8c\x03a\nb\x93.", "numpy.a\\nb"),
    ],
)
def test_other_names_of_a_pickle(tmp_path, content, name, assert_refused):
    path = tmp_path / "batch"
    path.write_bytes(content)
    assert_refused(lambda: cifar10_batches.read(str(path), 1), path, "refused", name)


def test_bytes_are_read_without_importing_an_encoding(tmp_path, assert_refused):
    path = tmp_path / "batch"
    path.write_bytes(b"c_codecs\nencode\n(Va\nVhex\ntR.")
    assert_refused(lambda: cifar10_batches.read(str(path), 1), path, "bytes in hex")


def test_a_batch_as_python_2_wrote_it(tmp_path, cifar10_batch):
    """The pickle by hand: text of one byte a character, none of Python 3's detours."""

    def text(value):
        return b"U" + bytes([len(value)]) + value

    data, _ = cifar10_batch(1)
    raw = data[:2].tobytes()
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
        + text(b"b")
        + b"\x87R(K\x01K\x02M\x00\x0c\x86"  # Version, shape (2, 3072).
        + (b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R")
        + (b"(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb")
        + (b"\x89T" + struct.pack("<i", len(raw)) + raw + b"tb")
    )
    labels = b"](K\x07K\x03e"
    content = b"\x80\x02}(" + text(b"data") + array + text(b"labels") + labels + b"u."
    path = tmp_path / "batch"
    path.write_bytes(content)
    x, y = cifar10_batches.read(str(path), 2)
    assert y.tolist() == [7, 3] and y.dtype == np.int32
    np.testing.assert_array_equal(x[:, 4, 4], [[10, 0, 0], [10, 1, 0]])
    assert x[1, 0, 1].tolist() == [10, 1, 255]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], "is no CIFAR-10 batch"),
        ({b"data": np.zeros((SIZE, 3072), np.uint8)}, "is no CIFAR-10 batch"),
        (
            {b"data": np.zeros((3, 3072), np.uint8), b"labels": [0] * 3},
            "data is (3, 3072), not uint8 (40, 3072)",
        ),
        ({b"data": [], b"labels": []}, "data is list, not uint8"),
        (
            {b"data": np.zeros((SIZE, 3072), np.uint8), b"labels": [10] * SIZE},
            "labels are not 40 integers from 0 to 9",
        ),
        (
            {b"data": np.zeros((SIZE, 3072), np.uint8), b"labels": [0] * 39},
            "labels are not 40 integers",
        ),
    ],
)
def test_pickles_that_are_no_batch(tmp_path, content, message, assert_refused):
    path = tmp_path / "test_batch"
    path.write_bytes(pickle.dumps(content, 2))
    assert_refused(lambda: cifar10_batches.read(str(path), SIZE), path, message)
