"""Arrays of one dimension in an npz file that may come from anybody.

NumPy's own reader parses a member's header as Python and makes room for the shape that
it states. This one takes the headers that NumPy writes for such arrays and no others,
and reads no more than it was told to.
"""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tff_pmc.reports.plain_files import open_plain
from tff_pmc.reports.record_error import RecordError, RecordMissingError

LARGEST = 1 << 24
"""The largest file that is read, bytes."""

_HEADER = re.compile(
    rb"\{'descr': '([<|][iuU][1-9][0-9]{0,5})', 'fortran_order': False, "
    rb"'shape': \(([0-9]{1,10}),\), \} *\n"
)
_BROKEN = (
    *(OSError, ValueError, KeyError, TypeError, EOFError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, struct.error),
    # Other compressions, and encryption.
    *(NotImplementedError, RuntimeError),
)


class Limit(NamedTuple):
    """What an array may be.

    Attributes:
        kind: `i` for integers of any kind, `U` for text.
        items: the largest number of items.
        item_bytes: the largest item, bytes.
    """

    kind: str
    items: int
    item_bytes: int = 8


def read_arrays(
    path: str, limits: Mapping[str, Limit]
) -> dict[str, npt.NDArray[np.generic]]:
    """Reads arrays of an npz file.

    Args:
        path: the file.
        limits: what each array may be, by name; others are not looked at.

    Returns:
        The arrays by name, of one dimension each.

    Raises:
        RecordError: the file is missing (then a `RecordMissingError`) or broken, or an
            array is missing or more than its limit; the message names the file.
    """
    with open_plain(path, at_most=LARGEST) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return {
                    name: _member(archive, name, limit)
                    for name, limit in limits.items()
                }
        except RecordMissingError:
            raise
        except _BROKEN as error:
            reason = " ".join(str(error).split())
            raise RecordError(f"{path} cannot be read: {reason}") from error


def _member(
    archive: zipfile.ZipFile, name: str, limit: Limit
) -> npt.NDArray[np.generic]:
    info = archive.getinfo(f"{name}.npy")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError(f"{name} is compressed in an unknown way")
    with archive.open(info) as member:
        return _array(member, name, limit)


def _array(member: IO[bytes], name: str, limit: Limit) -> npt.NDArray[np.generic]:
    magic = member.read(10)
    if magic[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError(f"{name} is no array")
    header = _HEADER.fullmatch(member.read(int.from_bytes(magic[8:], "little")))
    if header is None:
        raise ValueError(f"{name} is no array of one dimension")
    dtype: np.dtype[Any] = np.dtype(header[1].decode())
    items = int(header[2])
    kinds = {"i": "iu"}.get(limit.kind, limit.kind)
    if dtype.kind not in kinds or dtype.itemsize > limit.item_bytes:
        raise ValueError(f"{name} is of {dtype}")
    if items > limit.items:
        raise ValueError(f"{name} has {items:,} items, more than {limit.items:,}")
    content = member.read(items * dtype.itemsize)
    if len(content) != items * dtype.itemsize or member.read(1):
        raise ValueError(f"{name} has not the {items:,} items that it states")
    if dtype.kind == "U":
        # What is no character, or half of one, ends Python's own words for it.
        codes = np.frombuffer(content, "<u4")
        if ((codes > 0x10FFFF) | (codes >> 11 == 0xD800 >> 11)).any():
            raise ValueError(f"{name} is no text")
    return np.frombuffer(content, dtype)
