"""The opening of a run folder's files, which may come from anybody."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from leaf_data.errors import one_line
from leaf_data.formats import npz, places
from tff_pmc.record.record_error import RecordError, RecordMissingError

MOST_UNPACKED = 1 << 28
"""The largest content of a packed file, bytes: ten times a long run's `clients.csv`."""

MOST_OF_RUN = 1 << 32
"""What is read of a run's record, or of a round of the published code's, bytes."""

LARGEST_ARRAYS = 1 << 24
"""The largest file of arrays that is read, bytes."""

_CHUNK = 1 << 20


def open_plain(path: str, *, at_most: int | None = None) -> BinaryIO:
    """Opens a file of `at_most` so many bytes, and nothing that stands in its place.

    A pipe would wait for ever for its other end, and a device has no end. A link to a
    file is followed. Whatever cannot be opened is a `RecordError` that names it.
    """
    try:
        return places.open_file(path, at_most)
    except FileNotFoundError as error:
        raise RecordMissingError(f"{path} is missing") from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from error


def open_packed(path: str, *, at_most: int = MOST_UNPACKED) -> BinaryIO:
    """Opens a gzip file to be read as what is packed in it.

    All of it is unpacked into memory, so that a few bytes that unpack to very many are
    refused and not waited for.
    """
    content = io.BytesIO()
    with open_plain(path, at_most=at_most) as file:
        try:
            with gzip.GzipFile(fileobj=file) as packed:
                # One read of all takes memory for all that may be.
                while content.tell() <= at_most and (part := packed.read(_CHUNK)):
                    places.spend(len(part), path)
                    content.write(part)
        except (OSError, EOFError, zlib.error) as error:
            raise RecordError(f"{path} cannot be unpacked: {error}") from error
    if content.tell() > at_most:
        raise RecordError(f"{path} unpacks to more than {at_most:,} bytes")
    content.seek(0)
    return content


def names_in(folder: str) -> list[str]:
    """Returns the names in a folder; a `RecordError` names it if it is none."""
    try:
        return os.listdir(folder)
    except OSError as error:
        raise RecordError(f"{folder} cannot be read: {error.strerror}") from error


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
    """Reads arrays of one dimension of an npz file, each within its limit by name.

    Others in the file are not looked at. Whatever is missing, broken or more than its
    limit is a `RecordError` that names the file.
    """
    try:
        with npz.opened(path, LARGEST_ARRAYS) as found:
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
