"""Archives of arrays (`.npz`), looked into before anything is unpacked.

An array of zeros takes a thousandth of its size in such a file, and a file can say of
an array whatever it likes. Here the headers are read first, so that whoever reads an
array knows its type and shape, and that the file has as many bytes of it.
"""

from __future__ import annotations

import contextlib
import math
import os
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.lib.format
import numpy.typing as npt

from leaf_data.formats import data_files

_FORMAT: Any = numpy.lib.format  # It has no types.
_SUFFIX = ".npy"
# What numpy writes. Others can ask for memory before a byte is unpacked.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED, _MOST = 1, 100


class Member(NamedTuple):
    """An array of an open file: what its header says, and a function that reads it."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    read: Callable[[], npt.NDArray[Any]]


@contextlib.contextmanager
def opened(
    path: data_files.Folder, at_most: int | None = None, most: int = _MOST
) -> Iterator[dict[str, Member]]:
    """Opens a file and reads all its headers; gives the arrays by name, in its order.

    Damaged files make Python and numpy raise nearly anything, here and in `read`: who
    opens one has to expect every `Exception`.
    """
    with data_files.open_file(path, at_most) as file:
        with zipfile.ZipFile(file) as archive:
            members: dict[str, Member] = {}
            found = archive.infolist()
            if len(found) > most:
                raise ValueError(f"it has more than {most} arrays")
            for info in found:
                name, suffix = os.path.splitext(info.filename)
                words = ascii(name[:40])
                if suffix != _SUFFIX:
                    raise ValueError(f"{words} is no array")
                if name in members:
                    raise ValueError(f"{words} is there twice")
                try:
                    members[name] = _member(archive, info, path)
                except ValueError as error:
                    raise ValueError(f"{words} {error}") from error
            yield members


def _member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: data_files.Folder
) -> Member:
    if info.flag_bits & _ENCRYPTED:
        raise ValueError("is encrypted")
    if info.compress_type not in _METHODS:
        raise ValueError("is compressed otherwise")
    with archive.open(info) as file:
        # The later versions are for headers of more than 64 KB.
        if _FORMAT.read_magic(file) != (1, 0):
            raise ValueError("is of another version than 1.0")
        shape, _, dtype = _FORMAT.read_array_header_1_0(file)
        size = info.file_size - file.tell()
    if dtype.hasobject:
        raise ValueError("holds pickled objects")
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != size:
        raise ValueError("has other bytes than its header says")

    def read() -> npt.NDArray[Any]:
        data_files.spend(size, path)
        with archive.open(info) as file:
            array: npt.NDArray[Any] = _FORMAT.read_array(file, allow_pickle=False)
            if file.read(1):  # At the end the checksum is looked at.
                raise ValueError(f"{info.filename} is longer than its header says")
        return array

    return Member(tuple(shape), dtype, read)
