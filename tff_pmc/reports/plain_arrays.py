"""Arrays of one dimension in an npz file that may come from anybody."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leaf_data.errors import one_line
from leaf_data.formats import npz
from tff_pmc.reports.record_error import RecordError, RecordMissingError

LARGEST = 1 << 24
"""The largest file that is read, bytes."""


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
    try:
        with npz.opened(path, LARGEST) as found:
            return {name: _read(found, name, limit) for name, limit in limits.items()}
    except FileNotFoundError as error:
        raise RecordMissingError(f"{path} is missing") from error
    except Exception as error:  # Damaged archives raise nearly anything.
        reason = getattr(error, "strerror", None) or one_line(error)
        raise RecordError(f"{path} cannot be read: {reason}") from error


def _read(
    found: Mapping[str, npz.Member], name: str, limit: Limit
) -> npt.NDArray[np.generic]:
    header = found.get(name)
    if header is None or len(header.shape) != 1:
        raise ValueError(f"there is no array {name} of one dimension")
    kinds = {"i": "iu"}.get(limit.kind, limit.kind)
    if header.dtype.kind not in kinds or header.dtype.itemsize > limit.item_bytes:
        raise ValueError(f"{name} is of {header.dtype}")
    if header.shape[0] > limit.items:
        raise ValueError(
            f"{name} has {header.shape[0]:,} items, more than {limit.items:,}"
        )
    array = header.read()
    if header.dtype.kind == "U":
        # What is no character, or half of one, ends Python's own words for it.
        codes = np.frombuffer(array.tobytes(), header.dtype.byteorder + "u4")
        if ((codes > 0x10FFFF) | (codes >> 11 == 0xD800 >> 11)).any():
            raise ValueError(f"{name} is no text")
    return array
