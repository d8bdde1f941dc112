"""FEMNIST's images and labels: checked, and the images made bytes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError

SIDE = 28
"""The width and height of the images, in pixels."""

NUM_CLASSES = 62
"""The number of classes: digits, capital and small letters."""

FIELDS: dict[str, tuple[tuple[int, ...], Any]] = {
    "x": ((SIDE, SIDE), np.uint8),
    "y": ((), np.int32),
}
"""The shapes and types of an example's image and label, as they are kept."""

_PIXELS = SIDE * SIDE


def examples(
    x: list[Any], y: list[Any]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Makes arrays of a LEAF user's lists `x` and `y`.

    Args:
        x: the n images, lists of 784 numbers in [0, 1], integers or not; 1 = white
            paper.
        y: the n labels, whole numbers from 0 to 61.

    Returns:
        The images, uint8 [n, 28, 28], and the labels, int32 [n].

    Raises:
        DataError: an image or a label is not so; the message gives its number.
    """
    for place, image in enumerate(x):
        if not isinstance(image, list) or len(image) != _PIXELS:
            found = f"{len(image)} values" if isinstance(image, list) else repr(image)
            raise DataError(f"image {place} is {found[:40]}, not {_PIXELS} values")
    # Booleans and digits in quotes would pass for numbers in numpy.
    if not set(map(type, itertools.chain.from_iterable(x))) <= {int, float}:
        for place, image in enumerate(x):
            for value in image:
                if type(value) not in (int, float):
                    raise DataError(f"image {place} has the value {value!r:.40}")
    for place, label in enumerate(y):
        if type(label) not in (int, float) or label not in range(NUM_CLASSES):
            raise DataError(
                f"label {place} is {label!r:.40}, not one of 0 to {NUM_CLASSES - 1}"
            )
    try:
        values = np.array(x, np.float64).reshape(-1, _PIXELS)
    except OverflowError as error:  # An integer of hundreds of digits.
        raise DataError("an image has a value that is not in [0, 1]") from error
    return to_bytes(values), np.array(y, np.int32)


def to_bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Makes pixels in [0, 1] bytes by `round(255 * v)`, which undoes LEAF's division.

    Args:
        values: the pixels, floats [n, 784].

    Returns:
        The images, uint8 [n, 28, 28], rows from the top; 255 = white paper, 0 = ink.

    Raises:
        DataError: a value is not in [0, 1], or not a number.
    """
    good = (values >= 0) & (values <= 1)  # False for NaN.
    if not good.all():
        place, pixel = np.argwhere(~good)[0]
        raise DataError(
            f"image {place} has the value {values[place, pixel]:g}, not in [0, 1]"
        )
    pixels: npt.NDArray[np.uint8] = np.rint(255 * values).astype(np.uint8)
    return pixels.reshape(-1, SIDE, SIDE)
