"""Files of data: the folders in which they are looked for, and their contents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Union

from leaf_data.errors import DataError, raising_data_error

Folder = Union[str, "os.PathLike[str]"]
"""The path of a folder, as users give it."""

ENVIRONMENT_VARIABLE = "TFF_PMC_DATA_DIR"
"""The variable that names the folder of the data if no `data_dir` is given."""


def expand_path(path: Folder) -> str:
    """Returns a path as text, with the home of the user for a leading `~`.

    All paths that users give are expanded by it: after `=` and in quotes a shell does
    not expand `~`, and Python never does.

    Raises:
        DataError: `~NAME` names no user of this machine.

    Examples:
        >>> expand_path("~/runs") == os.path.join(os.path.expanduser("~"), "runs")
        True
    """
    text = os.fspath(path)
    expanded = os.path.expanduser(text)
    if expanded.startswith("~"):
        raise DataError(
            f"{text}: this machine has no user of this name: write ./{text} for a "
            "folder or a file with this name"
        )
    return expanded


def folders(name: str, data_dir: Folder | None) -> tuple[str, ...]:
    """Returns the folders in which to look for a data set's files, in order.

    Args:
        name: the data set, which is also the subfolder's name.
        data_dir: the folder that the user named; by default that of the variable
            `TFF_PMC_DATA_DIR`.

    Returns:
        The folder and its subfolder `name`, or () if neither is set.

    Raises:
        DataError: the folder does not exist.
    """
    where = "data_dir"
    if data_dir is None:
        data_dir = os.environ.get(ENVIRONMENT_VARIABLE) or None
        where = ENVIRONMENT_VARIABLE
    if data_dir is None:
        return ()
    folder = expand_path(data_dir)
    if not os.path.isdir(folder):
        raise DataError(f"{name}: {where} {folder} is not a folder")
    return folder, os.path.join(folder, name)


def check_folder(folder: Folder) -> str:
    """Returns the path of a folder, with the home folder instead of a `~`.

    Raises:
        DataError: it is a file, or does not exist.
    """
    path = expand_path(folder)
    if os.path.isfile(path):
        parent = os.path.dirname(path) or "."
        raise DataError(
            f"{folder}: is a file: name the folder that contains it, {parent}, without "
            "other tables in it"
        )
    if not os.path.isdir(path):
        raise DataError(f"{folder}: is not a folder")
    return path


def find(
    name: str, folders: Sequence[str], file_name: str, subs: Sequence[str] = ("",)
) -> str:
    """Returns the first folder, of these and their `subs`, that contains `file_name`.

    Raises:
        DataError: no folder contains it.
    """
    for folder in folders:
        for sub in subs:
            candidate = os.path.join(folder, sub).rstrip(os.sep)
            if os.path.exists(os.path.join(candidate, file_name)):
                return candidate
    where = [os.path.join(sub, file_name) for sub in subs]
    raise missing(name, folders, ", ".join(where))


def missing(name: str, folders: Sequence[str], looked_for: str) -> DataError:
    """Returns the error for a data set that no folder contains."""
    if not folders:
        return DataError(
            f"{name}: no folder to look for its files in: pass data_dir or set "
            f"{ENVIRONMENT_VARIABLE}"
        )
    where = " or ".join(folders)
    return DataError(f"{name}: no data in {where}: looked for {looked_for}")


def read(path: Folder) -> bytes:
    """Returns the bytes of a file, or raises a `DataError` that names it."""
    path = expand_path(path)
    with raising_data_error(path), open(path, "rb") as file:
        return file.read()


def sha256(path: Folder) -> str:
    """Returns the sha256 of a file, in hexadecimal; errors as in `read`."""
    digest = hashlib.sha256()
    path = expand_path(path)
    with raising_data_error(path), open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
