"""The opening of a run folder's files, which may come from anybody."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from typing import BinaryIO

from leaf_data.formats import places
from tff_pmc.reports.record_error import RecordError, RecordMissingError

MOST_UNPACKED = 1 << 28
"""The largest content of a packed file, bytes: ten times a long run's `clients.csv`."""


def open_plain(path: str, *, at_most: int | None = None) -> BinaryIO:
    """Opens a file to be read, and nothing that only stands in the place of one.

    A pipe would wait for ever for its other end, and a device has no end.

    Args:
        path: the file; a link to one is followed.
        at_most: the largest size that is accepted, bytes; by default any.

    Raises:
        RecordError: it is missing (then a `RecordMissingError`), no regular file, too
            large, or cannot be opened; the message names it.
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

    Args:
        path: the file.
        at_most: the largest content that is accepted, bytes.

    Raises:
        RecordError: as `open_plain`; or it is no gzip file, or cut off.
    """
    with open_plain(path, at_most=at_most) as file:
        try:
            with gzip.GzipFile(fileobj=file) as packed:
                content = packed.read(at_most + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise RecordError(f"{path} cannot be unpacked: {error}") from error
    if len(content) > at_most:
        raise RecordError(f"{path} unpacks to more than {at_most:,} bytes")
    return io.BytesIO(content)


def names_in(folder: str) -> list[str]:
    """Returns the names in a folder.

    Raises:
        RecordError: it is none, or cannot be read; the message names it.
    """
    try:
        return os.listdir(folder)
    except OSError as error:
        raise RecordError(f"{folder} cannot be read: {error.strerror}") from error
