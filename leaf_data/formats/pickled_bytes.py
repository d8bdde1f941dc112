"""The one kind of object that `plain_pickle` makes: an array of unsigned bytes.

How numpy's arrays are written in pickles: an empty array is made by a call, its type by
another, and both are then given a state. Exactly these calls and states are known, for
this one type, and none of them is made by numpy.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import numpy.typing as npt


class ForbiddenName(ValueError):
    """A pickle that names what no array of bytes needs; the message is the name."""


@dataclasses.dataclass(eq=False)
class UnsignedBytes:
    """An array of a pickle; its values are those of the last state it was given."""

    values: npt.NDArray[np.uint8]


@dataclasses.dataclass(frozen=True)
class Name:
    """A word for something of a module, and no more than the word."""

    module: str
    name: str


_RECONSTRUCT = Name("numpy.core.multiarray", "_reconstruct")
_NDARRAY = Name("numpy", "ndarray")
_DTYPE = Name("numpy", "dtype")
_ENCODE = Name("_codecs", "encode")  # How Python 3 writes bytes in old protocols.
_KNOWN = (_RECONSTRUCT, _NDARRAY, _DTYPE, _ENCODE)

_UINT8 = object()
# Its state: version, byte order, and no names, fields, size, alignment or flags.
_UINT8_STATES = tuple((3, bar, None, None, None, -1, -1, 0) for bar in ("|", b"|"))


def known(module: str, name: str) -> Name:
    """Returns the word for a name.

    Raises:
        ForbiddenName: the name is none of the four.
    """
    found = Name(module, name)
    if found not in _KNOWN:
        raise ForbiddenName(repr(f"{module}.{name}"[:80]))
    return found


def call(function: Any, arguments: Any) -> Any:
    """Returns what a call with these arguments stands for.

    Raises:
        ValueError: it is none of the calls that write arrays of bytes. The message
            shows no value: the text of one that is nested can be endless.
    """
    if type(function) is not Name or type(arguments) is not tuple:
        raise ValueError("a call of what is no function")
    if function == _ENCODE and len(arguments) == 2:
        text, encoding = arguments
        if encoding != "latin1" or type(text) is not str:
            short = type(encoding) is str and len(encoding) < 20
            raise ValueError(f"bytes in {encoding if short else 'no encoding'}")
        return text.encode("latin1")
    if function == _RECONSTRUCT and len(arguments) == 3:
        kind, shape, letter = arguments
        if kind == _NDARRAY and shape == (0,) and letter in (b"b", "b"):
            return UnsignedBytes(np.zeros(0, np.uint8))
    if function == _DTYPE and len(arguments) == 3:
        name, align, copy = arguments
        if name in (b"u1", "u1") and align in (0, 1) and copy in (0, 1):
            return _UINT8
        raise ValueError("a type that is not that of unsigned bytes")
    raise ValueError("a call that is not as numpy writes it")


def set_state(target: Any, state: Any) -> None:
    """Gives an array its values, or a type what it has already.

    Raises:
        ValueError: it is neither of them, or the state not as numpy writes it.
    """
    if target is _UINT8:
        if state not in _UINT8_STATES:
            raise ValueError("a type that is not as numpy writes it")
    elif type(target) is UnsignedBytes and type(state) is tuple and len(state) == 5:
        target.values = _array(*state)
    else:
        raise ValueError("a state for what has none")


def _array(
    version: Any, shape: Any, dtype: Any, fortran: Any, data: Any
) -> npt.NDArray[np.uint8]:
    sizes = type(shape) is tuple and len(shape) <= 8 and set(map(type, shape)) <= {int}
    if version != 1 or dtype is not _UINT8 or not sizes or type(data) is not bytes:
        raise ValueError("an array that is not as numpy writes it")
    if min(shape, default=0) < 0:
        raise ValueError("an array of a negative size")
    # reshape checks that the sizes' product is that of the bytes.
    values = np.frombuffer(data, np.uint8)
    return values.reshape(shape, order="F" if fortran in (1, True) else "C")
