"""The wire format of `tf.train.Example`, read without TensorFlow.

Two pages say all of it (https://protobuf.dev/programming-guides/encoding): a message is
a row of fields, each a tag (its number and one of six kinds) and a value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Union

import numpy as np
import numpy.typing as npt

Features = dict[str, npt.NDArray[Any]]
"""The numeric features of an example, float32 or int64 [n], by name."""

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def parse_example(proto: bytes) -> Features:
    """Returns the numeric features of a serialized `tf.train.Example`.

    Args:
        proto: the bytes, which are
            Example{1: Features{1: repeated entry{1: name, 2: Feature}}} with
            Feature{2: FloatList{1: floats} or 3: Int64List{1: integers}}.

    Returns:
        The features by name; features of text are left out.

    Raises:
        ValueError: the bytes are no such message.
    """
    features: Features = {}
    for message in _values(proto, 1, _BYTES):
        for entry in _values(message, 1, _BYTES):
            (name,) = _values(entry, 1, _BYTES)
            for feature in _values(entry, 2, _BYTES):
                for floats in _values(feature, 2, _BYTES):
                    data = b"".join(_values(floats, 1, _BYTES, _FOUR_BYTES))
                    features[bytes(name).decode()] = np.frombuffer(data, "<f4")
                for integers in _values(feature, 3, _BYTES):
                    found = [
                        _integers(value)
                        for value in _values(integers, 1, _BYTES, _VARINT)
                    ]
                    unsigned = np.concatenate([np.zeros(0, np.uint64), *found])
                    features[bytes(name).decode()] = unsigned.view(np.int64)
    return features


def _values(message: Any, wanted: int, *kinds: int) -> Iterator[Any]:
    """Yields the values of one field: bytes, or an int for a varint.

    The kind is checked: what a number says where bytes should be is no length.
    """
    message, at = memoryview(message), 0
    while at < len(message):
        tag, at = _varint(message, at)
        kind = tag & 7
        value: Union[int, memoryview]
        if kind == _VARINT:
            value, at = _varint(message, at)
        else:
            if kind == _BYTES:
                size, at = _varint(message, at)
            elif kind in _FIXED:
                size = _FIXED[kind]
            else:
                raise ValueError(f"a field of the kind {kind}")
            if at + size > len(message):
                raise ValueError("truncated")
            value, at = message[at : at + size], at + size
        if tag >> 3 == wanted:
            if kind not in kinds:
                raise ValueError(f"field {wanted} is of the kind {kind}")
            yield value


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """Returns an integer (seven bits a byte, lowest first) and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise ValueError("truncated")
        byte = message[at]
        value |= (byte & 127) << shift
        at += 1
        if byte < 128:
            if value >> 64:
                raise ValueError("an integer of more than 64 bits")
            return value, at
    raise ValueError("an integer of more than ten bytes")


def _integers(value: Union[int, memoryview]) -> npt.NDArray[np.uint64]:
    """Returns one integer, or the many of a packed field: an image has 21,168."""
    if isinstance(value, int):
        return np.array([value], np.uint64)
    packed = np.frombuffer(value, np.uint8)
    ends = np.flatnonzero(packed < 128)
    if not len(packed):
        return np.zeros(0, np.uint64)
    if not len(ends) or ends[-1] != len(packed) - 1:
        raise ValueError("truncated")
    starts = np.concatenate([[0], ends[:-1] + 1])
    place = np.arange(len(packed)) - np.repeat(starts, ends - starts + 1)
    if place.max() > 9:
        raise ValueError("an integer of more than ten bytes")
    if (packed[place == 9] > 1).any():
        raise ValueError("an integer of more than 64 bits")
    sevens = (packed & 127).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.add.reduceat(sevens, starts)
