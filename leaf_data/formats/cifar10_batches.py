"""CIFAR-10's python batches: pickles, read without running what a pickle may hold.

A pickle can name any function of any module and have it called. CIFAR-10's batches
need four names, with which numpy makes an array; a file with any other is refused.
"""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError

SIDE = 32
"""The width and height of the images, in pixels."""

_VALUES = 3 * SIDE * SIDE
_NUMPY = {
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
}


class _ForbiddenGlobal(pickle.UnpicklingError):
    """A pickle that names what no batch needs."""


class _BatchUnpickler(pickle.Unpickler):
    """An unpickler that knows the four names and no other."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _NUMPY:
            return super().find_class(module, name)
        # How Python 3 writes bytes in the old protocols; encodings are modules, so
        # that the real function would import what it is told to.
        if (module, name) == ("_codecs", "encode"):
            return _latin1
        raise _ForbiddenGlobal(repr(f"{module}.{name}"))


def read(
    path: str, num_images: int
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Reads one batch, `data_batch_1` to `data_batch_5` or `test_batch`.

    Args:
        path: the file, a pickled dict; `b"data"` is uint8 [n, 3072], the red, green
            and blue plane of each image, and `b"labels"` a list of n labels.
        num_images: the number n of images that the file has to hold.

    Returns:
        The images, uint8 [n, 32, 32, 3], and the labels, int32 [n], in file order.

    Raises:
        DataError: the file cannot be read, is truncated or corrupt, names anything but
            numpy's arrays, or holds no such batch.
    """
    try:
        with open(path, "rb") as file:
            batch = _BatchUnpickler(file, encoding="bytes").load()
    except _ForbiddenGlobal as error:
        raise DataError(
            f"{path}: refused, its pickle names {error}, which no CIFAR-10 batch needs"
        ) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except Exception as error:  # Damaged pickles raise nearly anything.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{path}: truncated or corrupt ({reason})") from error
    if not isinstance(batch, dict) or not {b"data", b"labels"} <= batch.keys():
        raise DataError(f"{path}: is no CIFAR-10 batch, a dict of data and labels")
    data, labels = batch[b"data"], batch[b"labels"]
    if (
        not isinstance(data, np.ndarray)
        or data.dtype != np.uint8
        or data.shape != (num_images, _VALUES)
    ):
        found = getattr(data, "shape", type(data).__name__)
        raise DataError(f"{path}: data is {found}, not uint8 ({num_images}, {_VALUES})")
    if (
        not isinstance(labels, list)
        or len(labels) != num_images
        or not all(type(label) is int and 0 <= label < 10 for label in labels)
    ):
        raise DataError(f"{path}: labels are not {num_images} integers from 0 to 9")
    planes = data.reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(np.moveaxis(planes, 1, -1)), np.array(labels, np.int32)


def _latin1(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in {encoding}")
    return text.encode("latin1")
