"""CIFAR-10's python batches: pickles, read without running what a pickle may hold.

A pickle can name any function of any module and have it called. CIFAR-10's batches
hold texts, numbers and one array of bytes, and `plain_pickle` reads no more than that.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, one_line
from leaf_data.formats import pickled_bytes, plain_pickle, regular

SIDE = 32
"""The width and height of the images, in pixels."""

_VALUES = 3 * SIDE * SIDE
# Of one image: four characters a byte in the oldest form, and its name; its label, its
# name and what is around them.
_BYTES, _STEPS = 4 * _VALUES + 100, 40


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
        content = regular.read(path, _BYTES * num_images + 100_000)
        batch = plain_pickle.load(content, _STEPS * num_images + 10_000)
    except pickled_bytes.ForbiddenName as error:
        raise DataError(
            f"{path}: refused, its pickle names {error}, which no CIFAR-10 batch needs"
        ) from error
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from error
    except ValueError as error:
        raise DataError(f"{path}: truncated or corrupt ({one_line(error)})") from error
    if not isinstance(batch, dict) or not {b"data", b"labels"} <= batch.keys():
        raise DataError(f"{path}: is no CIFAR-10 batch, a dict of data and labels")
    data, labels = batch[b"data"], batch[b"labels"]
    is_array = isinstance(data, pickled_bytes.UnsignedBytes)
    found = data.values.shape if is_array else type(data).__name__
    if found != (num_images, _VALUES):
        raise DataError(f"{path}: data is {found}, not uint8 ({num_images}, {_VALUES})")
    if (
        not isinstance(labels, list)
        or len(labels) != num_images
        or not all(type(label) is int and 0 <= label < 10 for label in labels)
    ):
        raise DataError(f"{path}: labels are not {num_images} integers from 0 to 9")
    planes = data.values.reshape(-1, 3, SIDE, SIDE)
    return np.ascontiguousarray(np.moveaxis(planes, 1, -1)), np.array(labels, np.int32)
