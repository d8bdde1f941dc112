"""The folders in which data sets may be found, and checksums of their files."""

from __future__ import annotations

import hashlib
import os
from typing import Union

from leaf_data.errors import DataError, reading
from leaf_data.formats import regular

Folder = Union[str, "os.PathLike[str]"]
"""The path of a folder, as users give it."""

ENVIRONMENT_VARIABLE = "TFF_PMC_DATA_DIR"
"""The variable that names the folder of the data where `data_dir` does not."""


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


def sha256(path: str) -> str:
    """Returns the sha256 of a file, in hexadecimal.

    Raises:
        DataError: it cannot be read, or is no regular file.
    """
    digest = hashlib.sha256()
    with reading(path), regular.open_file(path) as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()
