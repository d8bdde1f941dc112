"""The idx format of the original MNIST files, and its numpy form `mnist.npz`.

An idx file is big-endian: two zero bytes, a byte for the type (8: unsigned byte),
a byte for the number of dimensions, 4 bytes a dimension, then the values. Both
readers check that a file is exactly what is expected and name it when it is not.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, reading
from leaf_data.formats import data_files, npz

# Bytes that a file may have beside twice its values: headers, other arrays.
_MORE = 1 << 20


def read(path: str, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Reads an idx file of unsigned bytes, gzipped when it ends in `.gz`."""
    header = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)
    size = len(header) + math.prod(shape)
    with reading(path, "truncated or corrupt", EOFError, zlib.error):
        with data_files.open_file(path, 2 * size + _MORE) as file:
            packed = path.endswith(".gz")
            content: Any = gzip.GzipFile(fileobj=file) if packed else file
            # One byte more than there should be: it shows a file that is too long,
            # and makes gzip read its checksum at the end.
            data = content.read(size + 1)
    if not data.startswith(header):
        found = f"0x{data[: len(header)].hex()}, not 0x{header.hex()}"
        raise DataError(f"{path}: is no idx file of {_text(shape)} bytes: {found}")
    if len(data) != size:
        fault = "is truncated" if len(data) < size else "is too long"
        raise DataError(f"{path}: {fault}, {_text(shape)} values take {size} bytes")
    return np.frombuffer(data, np.uint8, offset=len(header)).reshape(shape)


def read_npz(
    path: str, shapes: dict[str, tuple[int, ...]]
) -> dict[str, npt.NDArray[np.uint8]]:
    """Reads arrays of unsigned bytes from an `.npz`; pickled objects are refused."""
    size = sum(map(math.prod, shapes.values()))
    # Damaged files make numpy raise nearly anything.
    with reading(path, "truncated or corrupt", Exception):
        with npz.opened(path, 2 * size + _MORE) as arrays:
            for name, shape in shapes.items():
                if name not in arrays:
                    raise DataError(f"{path}: has no array {name!r}")
                found = arrays[name]
                if found.dtype != np.uint8 or found.shape != shape:
                    raise DataError(
                        f"{path}: {name} is {str(found.dtype)[:40]} "
                        f"{_text(found.shape)}, not uint8 {_text(shape)}"
                    )
            return {name: arrays[name].read() for name in shapes}


def find(folder: str, name: str) -> str | None:
    """Returns the path of an idx file, gzipped or else unpacked; None without one."""
    paths = [os.path.join(folder, name + suffix) for suffix in (".gz", "")]
    return next((path for path in paths if os.path.isfile(path)), None)


def _text(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
