"""A state as one file: a header of dtypes and shapes, then the arrays' bytes.

    tff_pmc state 2                      the form, and its version
    {"round": 7, "arrays": [...]}        a dtype and a shape for each array
    ...                                  the arrays, one after another, in C order
    {"rounds.csv": [812, "9f..."], ...}  what the record's files were at this round:
                                         their lengths, and the SHA-256 of so much
    32 bytes                             SHA-256 of everything before

Nothing in it is code, and nothing in it is believed: whoever reads knows from a state
of the same process what the header must be, to the byte, and so how large the arrays
are. The rest is small.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tff_pmc.experiments.record import files
from tff_pmc.reports.plain_files import open_plain
from tff_pmc.reports.record_error import RecordError

VERSION = 2
"""The version of the form, in the file's first line."""

_FORM = b"tff_pmc state "
_KINDS = "biuf"
_MOST_LENGTHS = 1 << 14  # Bytes; a record has eight files.

Array = npt.NDArray[np.generic]


class Length(NamedTuple):
    """How long a file of the record is, and the SHA-256 of so many bytes of it."""

    size: int
    sha256: str


Lengths = Mapping[str, Length]
"""The length of each CSV of a record by its name, `rounds.csv`."""


def write(path: str, arrays: Sequence[Array], round_num: int, lengths: Lengths) -> None:
    """Writes a state; the file is in its place only when it is whole."""
    digest = hashlib.sha256()
    last = json.dumps(lengths, sort_keys=True).encode()
    with files.replacing(path) as file:
        for part in (_header(arrays, round_num), *map(_bytes, arrays), last):
            file.write(part)
            digest.update(part)
        file.write(digest.digest())


def read(
    path: str, like: Sequence[Array], round_num: int
) -> tuple[list[Array], Lengths]:
    """Reads a state."""
    header = _header(like, round_num)
    digest = hashlib.sha256()
    with open_plain(path) as file:
        found = file.read(len(header))
        if found != header:
            raise RecordError(f"{path} {_why_not(found, header)}")
        digest.update(found)
        arrays = [np.empty(array.shape, array.dtype) for array in like]
        for array in arrays:
            part = _bytes(array)
            file.readinto(part)  # type: ignore[attr-defined]
            digest.update(part)
        rest = file.read(_MOST_LENGTHS)
        last, checksum = rest[: -digest.digest_size], rest[-digest.digest_size :]
        digest.update(last)
        if file.read(1) or checksum != digest.digest():
            raise RecordError(
                f"{path} does not end in its checksum: it was cut off or changed"
            )
    lengths = _lengths(path, last)
    return [array if array.shape else array[()] for array in arrays], lengths


def _lengths(path: str, text: bytes) -> Lengths:
    try:
        found = json.loads(text)
        if all(_is_length(name, value) for name, value in found.items()):
            return {name: Length(*value) for name, value in found.items()}
    except (ValueError, AttributeError, RecursionError):
        pass
    raise RecordError(f"{path} does not say how long the record's files are")


def _is_length(name: str, value: Any) -> bool:
    # `True` is an integer to Python and to nobody else.
    return (
        re.fullmatch(r"[a-z0-9_]+\.csv", name) is not None
        and isinstance(value, list)
        and [type(part) for part in value] == [int, str]
        and value[0] >= 0
    )


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
