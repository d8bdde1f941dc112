"""The idx format of the original MNIST files, and its numpy form `mnist.npz`.

An idx file is big-endian: two zero bytes, a byte for the type (8: unsigned byte),
a byte for the number of dimensions, 4 bytes a dimension, then the values. Both
readers check that a file has exactly the expected content, and name it in errors.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, raising_data_error
from leaf_data.formats import data_files


def read(path: str, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
    """Reads an idx file of unsigned bytes, gzipped when it ends in `.gz`."""
    header = struct.pack(f">HBB{len(shape)}I", 0, 8, len(shape), *shape)
    size = len(header) + math.prod(shape)
    data = data_files.read(path)
    if path.endswith(".gz"):
        with raising_data_error(path, "truncated or corrupt", EOFError, zlib.error):
            data = gzip.decompress(data)
    if not data.startswith(header):
        difference = f"0x{data[: len(header)].hex()}, not 0x{header.hex()}"
        raise DataError(
            f"{path}: is not an idx file of {_text(shape)} bytes: {difference}"
        )
    if len(data) != size:
        fault = "is truncated" if len(data) < size else "is too long"
        raise DataError(f"{path}: {fault}, {_text(shape)} values take {size} bytes")
    return np.frombuffer(data, np.uint8, offset=len(header)).reshape(shape)


def read_npz(
    path: str, shapes: dict[str, tuple[int, ...]]
) -> dict[str, npt.NDArray[np.uint8]]:
    """Reads arrays of unsigned bytes from an `.npz` without pickled objects."""
    # Damaged files make numpy raise nearly anything.
    with raising_data_error(path, "truncated or corrupt", Exception):
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in shapes}
    for name, shape in shapes.items():
        array = arrays[name]
        if array.dtype != np.uint8 or array.shape != shape:
            raise DataError(
                f"{path}: {name} is {array.dtype} {_text(array.shape)}, not uint8 "
                f"{_text(shape)}"
            )
    return arrays


def find(folder: str, name: str) -> str | None:
    """Returns the path of an idx file, gzipped or else unpacked, or None."""
    paths = [os.path.join(folder, name + suffix) for suffix in (".gz", "")]
    return next((path for path in paths if os.path.isfile(path)), None)


def _text(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
