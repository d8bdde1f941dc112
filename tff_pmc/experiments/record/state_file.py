"""A state as one file: a header of dtypes and shapes, then the arrays' bytes.

    tff_pmc state 1                      the form, and its version
    {"round": 7, "arrays": [...]}        a dtype and a shape for each array
    ...                                  the arrays, one after another, in C order
    32 bytes                             SHA-256 of everything before

Nothing in it is code, and nothing in it is believed: whoever reads knows from a state
of the same process what the header must be, to the byte, and so how large the file is.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tff_pmc.experiments.record import files
from tff_pmc.reports.plain_files import open_plain
from tff_pmc.reports.record_error import RecordError

VERSION = 1
"""The version of the form, in the file's first line."""

_FORM = b"tff_pmc state "
_KINDS = "biuf"

Array = npt.NDArray[np.generic]


def write(path: str, arrays: Sequence[Array], round_num: int) -> None:
    """Writes a state; the file is in its place only when it is whole.

    Args:
        path: the file, which is replaced.
        arrays: the values of the state: booleans, integers and floats.
        round_num: the round that the state was reached in.

    Raises:
        TypeError: an array is of another kind.
        OSError: the disk is full, say, or the folder is gone.
    """
    digest = hashlib.sha256()
    with files.replacing(path) as file:
        for part in (_header(arrays, round_num), *map(_bytes, arrays)):
            file.write(part)
            digest.update(part)
        file.write(digest.digest())


def read(path: str, like: Sequence[Array], round_num: int) -> list[Array]:
    """Reads a state.

    Args:
        path: the file.
        like: arrays of the dtypes and shapes that there must be.
        round_num: the round that the state must be of.

    Raises:
        RecordError: the file is missing, broken, of another version, or of another
            state; the message says which, and is one line.
    """
    header = _header(like, round_num)
    digest = hashlib.sha256()
    size = len(header) + sum(array.nbytes for array in like) + digest.digest_size
    with open_plain(path) as file:
        found = file.read(len(header))
        if found != header:
            raise RecordError(f"{path} {_why_not(found, header)}")
        if os.fstat(file.fileno()).st_size != size:
            raise RecordError(f"{path} is not {size:,} bytes long: it was cut off")
        digest.update(found)
        arrays = [np.empty(array.shape, array.dtype) for array in like]
        for array in arrays:
            part = _bytes(array)
            file.readinto(part)  # type: ignore[attr-defined]
            digest.update(part)
        if file.read() != digest.digest():
            raise RecordError(f"{path} does not have the checksum that it states")
    return [array if array.shape else array[()] for array in arrays]


def _header(arrays: Sequence[Array], round_num: int) -> bytes:
    listed = []
    for array in arrays:
        if array.dtype.kind not in _KINDS:
            raise TypeError(f"a state of {array.dtype} cannot be kept")
        listed.append({"dtype": array.dtype.str, "shape": list(array.shape)})
    text = json.dumps({"round": round_num, "arrays": listed})
    return b"%s%d\n%s\n" % (_FORM, VERSION, text.encode())


def _bytes(array: Array) -> memoryview:
    """The array's memory; a copy where it is not in C order."""
    flat: npt.NDArray[np.uint8] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat.data


def _why_not(found: bytes, header: bytes) -> str:
    first = header.split(b"\n", 1)[0]
    if not found:
        return "is empty"
    if not found.startswith(_FORM):
        return "is no state of tff_pmc"
    if found.split(b"\n", 1)[0] != first:
        return f"has another form than {first.decode()!r}"
    return "is of another state: its arrays or its round are others"
