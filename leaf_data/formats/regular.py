"""Opening files of data: regular files only, their sizes known before they are read.

A FIFO in the place of a file would be waited for, and a device may never end. Whoever
reads what others have made opens it here.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO, Union

File = Union[str, "os.PathLike[str]"]
"""The path of a file."""


def open_file(path: File, at_most: int | None = None) -> BinaryIO:
    """Opens a regular file, or a link to one, for reading."""
    try:
        # Asked first: opening a device can already do something.
        _check(os.stat(path), path, at_most)
        # What is there may have changed by now, so it is asked again, and a FIFO that
        # came meanwhile is not waited for.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # A NUL in the name, or half a character.
        name = ascii(os.fspath(path))
        raise OSError(errno.EINVAL, "this cannot be a file's name", name) from error
    try:
        _check(os.fstat(descriptor), path, at_most)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read(path: File, at_most: int) -> bytes:
    """Returns the bytes of a regular file; arguments and errors as in `open_file`."""
    with open_file(path, at_most) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1)  # One more: it may be growing.
    if len(content) > at_most:
        raise _too_large(path, at_most)
    return content


def _check(status: os.stat_result, path: File, at_most: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
    if at_most is not None and status.st_size > at_most:
        raise _too_large(path, at_most)


def _too_large(path: File, at_most: int) -> OSError:
    words = f"it has more than {at_most:,} bytes"
    return OSError(errno.EFBIG, words, os.fspath(path))
