"""The opening of a run folder's files, which may come from anybody."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from typing import BinaryIO

from leaf_data.formats import places
from tff_pmc.record.record_error import RecordError, RecordMissingError

MOST_UNPACKED = 1 << 28
"""The largest content of a packed file, bytes: ten times a long run's `clients.csv`."""

MOST_OF_RUN = 1 << 32
"""What is read of a run's record, or of a round of the published code's, bytes."""

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
