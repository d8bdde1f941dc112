"""Messages that are not what `tf.train.Example` is: refused, in little memory."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from leaf_data.formats.tf_example import parse_example


def test_what_is_right_is_read(wire):
    found = parse_example(wire.digit(label=wire.varint(2**64 - 3) + b"\x07"))
    assert found["label"].tolist() == [-3, 7]
    np.testing.assert_array_equal(found["pixels"], np.full(784, 0.5, np.float32))
    # Not packed: one field a value.
    floats = b"".join(b"\x0d" + struct.pack("<f", value) for value in (0.25, -1))
    feature = wire.field(1, b"k") + wire.field(2, wire.field(2, floats))
    assert parse_example(wire.example(wire.field(1, feature)))["k"].tolist() == [
        0.25,
        -1,
    ]


HOSTILE = {
    "a varint where bytes of floats should be": lambda w: w.digit(pixels=3136),
    "a terabyte of floats": lambda w: w.digit(pixels=10**12),
    "a name of 4e9 bytes": lambda w: w.example(w.feature(4 * 10**9, 3, b"\x05")),
    "a varint for a feature": lambda w: w.example(w.field(1, 7)),
    "a varint for all features": lambda w: w.field(1, 10**12),
    "a label of 2^64 + 5": lambda w: w.digit(label=w.varint(2**64 + 5)),
    "a label of 2^70": lambda w: w.digit(label=w.varint(2**70)),
    "a label by itself of 2^64": lambda w: w.digit(label=2**64),
    "a label of a byte more than ten": lambda w: w.digit(label=w.varint(5, size=11)),
    "a varint of two megabytes": lambda w: b"\x08" + b"\xff" * 2_000_000 + b"\x01",
    "a label that is cut": lambda w: w.digit(label=b"\xff"),
    "a length of 2^63": lambda w: b"\x0a" + w.varint(2**63),
    "a group": lambda w: b"\x0b\x0c",
    "floats of three bytes": lambda w: w.digit(pixels=b"abc"),
    "a name that is no text": lambda w: w.example(
        w.field(1, w.field(1, b"\xff") + w.field(2, w.field(3, w.field(1, b"\x05"))))
    ),
    "two names": lambda w: w.example(w.field(1, w.field(1, b"a") + w.field(1, b"b"))),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_wrong_is_a_value_error(name, wire, peak_of, no_hang):
    proto = HOSTILE[name](wire)

    def refuse():
        with pytest.raises(ValueError):
            parse_example(proto)

    assert peak_of(refuse) < 50e6
