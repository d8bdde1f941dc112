"""A folder of arrays, each a plain `.npy` file, which are mapped and not read.

`header.json` has the type, shape and sha256 of each array, and whatever else its
writer says of them. The files are written row by row, so that they may be larger than
memory, into a folder beside, which takes the name when it is whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import shutil
import uuid
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.lib.format
import numpy.typing as npt

from leaf_data.errors import DataError, parse_int, reading
from leaf_data.formats import data_files

HEADER = "header.json"

_FORMAT: Any = numpy.lib.format  # It has no types.
_LARGEST_HEADER = 1 << 20  # Bytes.
_LONGEST_NAME = 100
_CHUNK = 1 << 24


class Writer:
    """Writes such a folder; used as a context, it leaves nothing behind on an error.

    One that is there already is refused, or replaced when the new one is whole.
    """

    def __init__(self, path: str, *, replace: bool = False) -> None:
        self._path = os.path.abspath(os.path.expanduser(path))
        self._replace = replace
        if os.path.lexists(self._path) and not replace:
            raise DataError(f"{path}: is there already")
        self._partial = f"{self._path}.{uuid.uuid4().hex}.partial"
        self._old = f"{self._partial}.old"
        self._files: dict[str, BinaryIO] = {}
        self._like: dict[str, npt.NDArray[Any]] = {}
        self._rows: dict[str, int] = {}
        self._digests: dict[str, Any] = {}
        with reading(path, "cannot be made"):
            os.makedirs(self._partial)

    def append(self, name: str, rows: npt.NDArray[Any]) -> None:
        """Adds rows to an array, [n, ...]; the first decide about type and shape."""
        if name not in self._files:
            self._files[name] = open(self._file(name), "wb")
            self._like[name], self._rows[name] = rows[:0], 0
            self._digests[name] = hashlib.sha256()
            self._write_header(name)
        like = self._like[name]
        if (rows.dtype, rows.shape[1:]) != (like.dtype, like.shape[1:]):
            raise DataError(
                f"{name} is {rows.dtype} {rows.shape[1:]}, and {like.dtype} "
                f"{like.shape[1:]} before"
            )
        content = memory_of(rows)
        with reading(self._path, "cannot be written"):  # A full disk names no file.
            self._files[name].write(content)
        self._digests[name].update(content)
        self._rows[name] += len(rows)

    def finish(self, about: Mapping[str, Any]) -> None:
        """Writes the headers, and gives the folder its name."""
        arrays = {}
        for name, file in self._files.items():
            file.seek(0)
            self._write_header(name)
            file.flush()
            os.fsync(file.fileno())
            file.close()
            like = self._like[name]
            arrays[name] = {
                "dtype": like.dtype.str,
                "shape": [self._rows[name], *like.shape[1:]],
                "sha256": self._digests[name].hexdigest(),
            }
        header = json.dumps({"format": 1, **about, "arrays": arrays}, indent=1)
        with open(os.path.join(self._partial, HEADER), "wb") as file:
            file.write(header.encode())
            file.flush()
            os.fsync(file.fileno())
        if self._replace and os.path.lexists(self._path):
            # Who has mapped the old one keeps it.
            os.rename(self._path, self._old)
        os.rename(self._partial, self._path)

    def _file(self, name: str) -> str:
        return os.path.join(self._partial, f"{name}.npy")

    def _write_header(self, name: str) -> None:
        """Writes the array's own header: as long for any number of rows."""
        like = self._like[name]
        found = {
            "descr": _FORMAT.dtype_to_descr(like.dtype),
            "fortran_order": False,
            "shape": (self._rows[name], *like.shape[1:]),
        }
        _FORMAT.write_array_header_1_0(self._files[name], found)

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *unused: Any) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):  # A full disk, which is said already.
                file.close()
        for path in (self._partial, self._old):
            if os.path.lexists(path) and not os.path.isdir(path):
                os.remove(path)
            shutil.rmtree(path, ignore_errors=True)


def open_folder(
    path: str, *, verify: bool = False
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Maps the arrays of a folder, and returns them and what its header says.

    Types, shapes and the files' lengths are held against the header; with `verify` all
    is read and held against the checksums.
    """
    name = os.path.join(path, HEADER)
    with reading(name, "cannot be read", ValueError, RecursionError):
        content = data_files.read(name, _LARGEST_HEADER)
        header = json.loads(content, parse_int=parse_int)
    if not isinstance(header, dict) or header.get("format") != 1:
        raise DataError(f"{name}: is no header of this format, 1")
    listed = header.get("arrays")
    if not isinstance(listed, dict):
        raise DataError(f"{name}: lists no arrays")
    arrays = {}
    for array, declared in listed.items():
        usable = array.isidentifier() and len(array) <= _LONGEST_NAME
        if not usable or not isinstance(declared, dict):
            raise DataError(f"{name}: {array[:40]!a} is no array")
        file = os.path.join(path, f"{array}.npy")
        # Damaged headers make numpy raise nearly anything.
        with reading(file, "cannot be read", Exception):
            arrays[array] = _mapped(file, declared)
        if verify:
            digest, memory = hashlib.sha256(), memory_of(arrays[array])
            for start in range(0, len(memory), _CHUNK):
                digest.update(memory[start : start + _CHUNK])
            if digest.hexdigest() != declared.get("sha256"):
                raise DataError(f"{file}: is not what was written (sha256)")
    return arrays, header


def _mapped(path: str, declared: Mapping[str, Any]) -> npt.NDArray[Any]:
    with data_files.open_file(path) as file:
        if _FORMAT.read_magic(file) != (1, 0):
            raise ValueError("it is of another version than 1.0")
        shape, fortran, dtype = _FORMAT.read_array_header_1_0(file)
        if dtype.hasobject or fortran:
            raise ValueError("it holds objects, or columns first")
        if [dtype.str, list(shape)] != [declared.get("dtype"), declared.get("shape")]:
            raise ValueError(f"it is {dtype} {shape}, which {HEADER} does not say")
        size = math.prod(shape) * dtype.itemsize
        if min(shape) < 0 or os.fstat(file.fileno()).st_size != file.tell() + size:
            raise ValueError("it has other bytes than its header says")
        if not size:
            return np.zeros(shape, dtype)
        return np.memmap(file, dtype, "r", file.tell(), shape)


def memory_of(array: npt.NDArray[Any]) -> memoryview:
    """The array's memory as bytes; a copy where it is not in C order."""
    flat: npt.NDArray[np.uint8] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return flat.data
