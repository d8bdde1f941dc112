"""The opening of a run folder's files, which may come from anybody."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

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
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise RecordMissingError(f"{path} is missing") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RecordError(f"{path} cannot be read: {reason}") from error
    found = os.fstat(descriptor)
    reason = ""
    if not stat.S_ISREG(found.st_mode):
        reason = "it is no file"
    elif at_most is not None and found.st_size > at_most:
        reason = f"it has {found.st_size:,} bytes, more than {at_most:,}"
    if reason:
        os.close(descriptor)
        raise RecordError(f"{path} cannot be read: {reason}")
    return open(descriptor, "rb")


def names_in(folder: str) -> list[str]:
    """Returns the names in a folder.

    Raises:
        RecordError: it is none, or cannot be read; the message names it.
    """
    try:
        return os.listdir(folder)
    except OSError as error:
        raise RecordError(f"{folder} cannot be read: {error.strerror}") from error
