"""The folders in which data sets may be found, and the opening of files.

Regular files only, their sizes known before they are read: a FIFO in the place of a
file would be waited for, and a device may never end. Whoever reads what others have
made opens it here, and so a `budget` holds for all that is read together.
"""

from __future__ import annotations

import contextlib
import contextvars
import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Union

from leaf_data.errors import DataError, reading

Folder = Union[str, "os.PathLike[str]"]
"""The path of a folder, as users give it."""

ENVIRONMENT_VARIABLE = "TFF_PMC_DATA_DIR"
"""The variable that names the folder of the data where `data_dir` does not."""

_LEAST = 1 << 12  # What a file takes on a disk, bytes: many tiny ones take time, too.
_budgets: contextvars.ContextVar[tuple[list[int], ...]] = contextvars.ContextVar(
    "budgets", default=()
)


@contextlib.contextmanager
def budget(at_most: int) -> Iterator[None]:
    """Refuses, by an `OSError`, files that have more than so many bytes together.

    A file counts as often as it is opened, and each time as 4,096 bytes at least. What
    it unpacks to is counted by who unpacks it (`spend`).
    """
    token = _budgets.set((*_budgets.get(), [at_most, at_most]))
    try:
        yield
    finally:
        _budgets.reset(token)


def spend(size: int, path: Folder) -> None:
    """Takes bytes from the budgets in force; an `OSError` names the file."""
    for one in _budgets.get():
        one[1] -= size
        if one[1] < 0:
            words = f"with it, more than {one[0]:,} bytes are to be read"
            raise OSError(errno.EFBIG, words, os.fspath(path))


def folders(name: str, data_dir: Folder | None) -> tuple[str, ...]:
    """Returns the folders in which to look for a data set's files, in order.

    Args:
        name: the data set, which is also the subfolder's name.
        data_dir: the folder that the user named; without it the one named by
            `TFF_PMC_DATA_DIR` counts.

    Returns:
        The folder and its subfolder `name`, or nothing when neither is set.

    Raises:
        DataError: the folder does not exist.
    """
    where = "data_dir"
    if data_dir is None:
        data_dir = os.environ.get(ENVIRONMENT_VARIABLE) or None
        where = ENVIRONMENT_VARIABLE
    if data_dir is None:
        return ()
    folder = os.path.expanduser(os.fspath(data_dir))
    if not os.path.isdir(folder):
        raise DataError(f"{name}: {where} {folder} is not a folder")
    return folder, os.path.join(folder, name)


def missing(name: str, folders: Sequence[str], looked_for: str) -> DataError:
    """Returns the error for a data set that is in none of the folders."""
    if not folders:
        return DataError(
            f"{name}: no folder to look for its files in: pass data_dir or set "
            f"{ENVIRONMENT_VARIABLE}"
        )
    where = " or ".join(folders)
    return DataError(f"{name}: no data in {where}: looked for {looked_for}")


def sha256(path: str) -> str:
    """Returns the sha256 of a file, in hexadecimal.

    Raises:
        DataError: it cannot be read, or is no regular file.
    """
    digest = hashlib.sha256()
    with reading(path), open_file(path) as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def open_file(path: Folder, at_most: int | None = None) -> BinaryIO:
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
        status = os.fstat(descriptor)
        _check(status, path, at_most)
        spend(max(status.st_size, _LEAST), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def read(path: Folder, at_most: int) -> bytes:
    """Returns the bytes of a regular file; arguments and errors as in `open_file`."""
    with open_file(path, at_most) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1)  # One more: it may be growing.
    if len(content) > at_most:
        raise _too_large(path, at_most)
    return content


def _check(status: os.stat_result, path: Folder, at_most: int | None) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file", os.fspath(path))
    if at_most is not None and status.st_size > at_most:
        raise _too_large(path, at_most)


def _too_large(path: Folder, at_most: int) -> OSError:
    words = f"it has more than {at_most:,} bytes"
    return OSError(errno.EFBIG, words, os.fspath(path))
