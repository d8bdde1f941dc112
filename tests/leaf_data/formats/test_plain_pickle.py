"""Pickles of plain values: read as pickle reads them, and programs that are not."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest

from leaf_data.formats import cifar10_batches, pickled_bytes, plain_pickle

VALUES = {
    "a": [1, -5, 255, 256, 2**31, -(2**40), True, False, None],
    b"b": (b"", (), ("é",), ("x", "y"), (1, 2, 3), (1, 2, 3, 4), [[], {}]),
    7: {"long": b"\xff\n'" * 300, "text": "a\n\\\u20ac\U0001f600" * 300},
    -1: [[k] for k in range(1200)],
}


@pytest.mark.parametrize("protocol", range(5))
def test_plain_values_are_those_that_pickle_reads(protocol):
    # Python 3 writes an empty text of bytes as a call of `bytes`.
    values = VALUES if protocol > 2 else {**VALUES, b"b": (b"x",)}
    content = pickle.dumps(values, protocol)
    assert plain_pickle.load(content, 100_000) == values
    for end in range(0, len(content), 97):
        with pytest.raises(ValueError):
            plain_pickle.load(content[:end], 100_000)


def test_text_of_python_2_is_bytes():
    assert plain_pickle.load(b"S'a\\xff\\n'\n.", 9) == b"a\xff\n"
    assert plain_pickle.load(b'(I1\nI01\nL-3L\nS"b"\nt.', 9) == (1, True, -3, b"b")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("protocol", range(5))
def test_arrays_of_bytes(protocol, order):
    array = np.asarray(np.arange(60, dtype=np.uint8).reshape(3, 4, 5), order=order)
    found = plain_pickle.load(pickle.dumps([array, array], protocol), 1000)
    assert found[0] is found[1]
    assert type(found[0]) is pickled_bytes.UnsignedBytes
    np.testing.assert_array_equal(found[0].values, array)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float64", "object", "U3", "V1"])
def test_arrays_of_anything_else_are_refused(dtype):
    content = pickle.dumps(np.zeros(3, dtype), 2)
    with pytest.raises(ValueError, match="not that of unsigned bytes|names"):
        plain_pickle.load(content, 1000)


START = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"


def array_over(memory):
    """An array of objects over bytes of the file, which are then their address.

    Another array is to have the objects as its shape, for which they are looked at.
    """
    dtype = b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R"
    # Flags 0: that its values are objects is taken from it.
    dtype += b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    data = b"U" + bytes([len(memory)]) + memory
    array = START + b"K\x00\x85U\x01b\x87R(K\x01K\x01\x85" + dtype + b"\x89" + data
    return b"\x80\x02" + START + array + b"tbU\x01b\x87R."


HOSTILE = {
    "memory of the file's choice": array_over(struct.pack("<Q", 0x4141414141414140)),
    "two gigabytes of text": b"\x80\x02T\xff\xff\xff\x7fa.",
    "four gigabytes of bytes": b"\x80\x03B\xff\xff\xff\xffa.",
    "a frame of 2^63 bytes": b"\x80\x04\x95" + b"\xff" * 8 + b".",
    "a place of 4e9 in the memo": b"\x80\x02Nr\xff\xff\xff\xff0.",
    "a number of 2^31 bytes": b"\x80\x02\x8b\xff\xff\xff\x7f1.",
    "a negative length": b"\x80\x02T\xff\xff\xff\xff.",
    "a million digits": b"I" + b"9" * 1_000_000 + b"\n.",
    "the same text encoded again and again": (
        b"V"
        + b"a" * 100_000
        + b"\np1\nVlatin1\np2\n]"
        + b"c_codecs\nencode\n(g1\ng2\ntRa" * 10_000
        + b"."
    ),  # fmt: skip
    "lists without an end": b"]" * 3_000_000,
    "a key that is nested": b"}" + b")" + b"\x85" * 60_000 + b"Ns.",
    "a shape that is nested": (
        b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n)"
        + b"\x85" * 60_000
        + b"U\x01b\x87R."
    ),  # fmt: skip
    "a text that doubles": (
        b"cnumpy\ndtype\n(K\x01" + b"q\x00h\x00\x86" * 64 + b"K\x00K\x01tR."
    ),
    "marks alone": b"((((t.",
    "nothing to pop": b"R.",
    "a list in itself": b"]q\x00h\x00a.",
    "an array without a state": (
        b"}(U\x04datacnumpy.core.multiarray\n_reconstruct\n"
        b"cnumpy\nndarray\nK\x00\x85U\x01b\x87RU\x06labels]u."
    ),
    "an array of a negative size": (
        b"}(U\x04datacnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\n"
        b"K\x00\x85U\x01b\x87R(K\x01J\xff\xff\xff\xffK\x02\x86"
        b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R\x89U\x01atbU\x06labels]u."
    ),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_programs_are_refused_in_little_memory(
    tmp_path, content, assert_refused, peak_of, no_hang
):
    path = tmp_path / "data_batch_1"
    path.write_bytes(content)

    def refuse():
        assert_refused(lambda: cifar10_batches.read(str(path), 40), f"{path}: ")

    assert peak_of(refuse) < 50e6 + 20 * len(content)
