"""The opening of a run folder's files, which may come from anybody."""

from __future__ import annotations

import os
from typing import BinaryIO

from leaf_data.formats import regular
from tff_pmc.reports.record_error import RecordError, RecordMissingError


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
        return regular.open_file(path, at_most)
    except FileNotFoundError as error:
        raise RecordMissingError(f"{path} is missing") from error
    except OSError as error:
        raise RecordError(f"{path} cannot be read: {error.strerror}") from error


def names_in(folder: str) -> list[str]:
    """Returns the names in a folder.

    Raises:
        RecordError: it is none, or cannot be read; the message names it.
    """
    try:
        return os.listdir(folder)
    except OSError as error:
        raise RecordError(f"{folder} cannot be read: {error.strerror}") from error
