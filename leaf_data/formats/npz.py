"""Archives of arrays (`.npz`), looked into before anything is unpacked.

An array of zeros takes a thousandth of its size in such a file, and a file can say of
an array whatever it likes. Here the headers are read first, so that whoever reads an
array knows its type and shape, and that the file has as many bytes of it.
"""

from __future__ import annotations

import dataclasses
import math
import zipfile
from types import TracebackType
from typing import Any

import numpy as np
import numpy.lib.format
import numpy.typing as npt

from leaf_data.formats import regular

_FORMAT: Any = numpy.lib.format  # It has no types.
_SUFFIX = ".npy"
# What numpy writes. Others can ask for memory before a byte is unpacked.
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED, _MOST = 1, 100


@dataclasses.dataclass(frozen=True)
class Header:
    """What a file says of one of its arrays."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class Archive:
    """An open `.npz` file; a context manager.

    Damaged files make Python and numpy raise nearly anything, here and in `read`: who
    opens one has to expect every `Exception`.

    Attributes:
        headers: the arrays by name, in the file's order.
    """

    def __init__(
        self, path: regular.File, at_most: int | None = None, stored: bool = False
    ) -> None:
        """Opens the file and reads all its headers."""
        self._file = regular.open_file(path, at_most)
        try:
            self._zip = zipfile.ZipFile(self._file)
            self._members = self._list(stored)
            self.headers = {name: self._header(name) for name in self._members}
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Archive:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def read(self, name: str) -> npt.NDArray[Any]:
        """Returns an array, of the shape and type that its header says."""
        with self._zip.open(self._members[name]) as member:
            array: npt.NDArray[Any] = _FORMAT.read_array(member, allow_pickle=False)
            if member.read(1):  # At the end the checksum is looked at.
                raise ValueError(f"{name} is longer than its header says")
        return array

    def _list(self, stored: bool) -> dict[str, zipfile.ZipInfo]:
        members: dict[str, zipfile.ZipInfo] = {}
        if len(self._zip.infolist()) > _MOST:
            raise ValueError(f"it has more than {_MOST} arrays")
        for member in self._zip.infolist():
            name = member.filename
            if not name.endswith(_SUFFIX):
                raise ValueError(f"{ascii(name[:40])} is no array")
            if member.flag_bits & _ENCRYPTED:
                raise ValueError(f"{ascii(name[:40])} is encrypted")
            if member.compress_type not in (_METHODS[:1] if stored else _METHODS):
                raise ValueError(f"{ascii(name[:40])} is compressed otherwise")
            if members.setdefault(name[: -len(_SUFFIX)], member) is not member:
                raise ValueError(f"{ascii(name[:40])} is there twice")
        size = self._file.seek(0, 2)
        if stored and sum(member.file_size for member in members.values()) > size:
            raise ValueError("its arrays share bytes")
        return members

    def _header(self, name: str) -> Header:
        with self._zip.open(self._members[name]) as file:
            # The later versions are for headers of more than 64 KB.
            if _FORMAT.read_magic(file) != (1, 0):
                raise ValueError(f"{ascii(name[:40])} is of another version than 1.0")
            shape, _, dtype = _FORMAT.read_array_header_1_0(file)
            start = file.tell()
        if dtype.hasobject:
            raise ValueError(f"{ascii(name[:40])} holds pickled objects")
        if min(shape, default=0) < 0:
            raise ValueError(f"{ascii(name[:40])} has a negative size")
        size = self._members[name].file_size - start
        if math.prod(shape) * dtype.itemsize != size:
            raise ValueError(f"{ascii(name[:40])} has other bytes than its header says")
        return Header(tuple(shape), dtype)
