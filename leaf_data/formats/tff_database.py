"""Databases that TFF ships: found in a folder or in TFF's cache, or downloaded."""

from __future__ import annotations

import dataclasses
import logging
import lzma
import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Optional

import numpy as np

from leaf_data.errors import DataError
from leaf_data.federated import Origin
from leaf_data.formats import places
from leaf_data.formats.cache import Arrays, cached, key_of_files
from leaf_data.formats.places import Folder


@dataclasses.dataclass(frozen=True)
class Database:
    """A database as TFF ships it.

    Attributes:
        dataset: the name of the data set in `leaf_data`.
        file: the name of the database's file; TFF's download adds `.lzma`.
        words: the database in words, e.g. "TFF's EMNIST".
    """

    dataset: str
    file: str
    words: str


def load(
    database: Database,
    folders: tuple[str, ...],
    cache_dir: Folder | None,
    read: Callable[[str], Arrays],
    download: Optional[Callable[[str], None]],
    version: int,
) -> tuple[Arrays, Origin]:
    """Finds, downloads if allowed, and reads a database, or reads its cache.

    Args:
        database: the database.
        folders: the folders to look into first, for the file or the file with `.lzma`.
        cache_dir: the folder in which to keep the cache and the download; by default
            they are beside the database and in `~/.tff`, TFF's own.
        read: a function that makes arrays of an unpacked database; it may raise
            `DataError`.
        download: a function that lets TFF download the database into a folder; None if
            TFF's cache and download are not to follow.
        version: the version of the conversion, part of the cache's key.

    Returns:
        The arrays, and the file they came from.

    Raises:
        DataError: there is no database, it cannot be downloaded or is unusable.
    """
    path, source = _find(database, folders, cache_dir, download)
    folder = os.path.dirname(path)

    def make() -> Arrays:
        digest = places.sha256(path)
        return {**_read(path, database, read), "source_sha256": np.array([digest])}

    key = key_of_files([path], version=version)
    arrays = cached(f"{database.dataset}_tff", folder, key, make, cache_dir)
    digest = str(arrays["source_sha256"][0])
    return arrays, Origin(source, ((os.path.basename(path), digest),), folder)


def _find(
    database: Database,
    folders: tuple[str, ...],
    cache_dir: Folder | None,
    download: Optional[Callable[[str], None]],
) -> tuple[str, str]:
    name = database.file
    for folder in folders:
        for file in (name, name + ".lzma"):
            path = os.path.join(folder, file)
            if os.path.isfile(path):
                return path, database.words
    searched = f"no {name} or {name}.lzma in {' or '.join(folders)}"
    if download is None:
        raise DataError(f"{database.dataset}: {searched}")
    own = os.path.expanduser(os.fspath(cache_dir or os.path.join("~", ".tff")))
    path = os.path.join(own, name)
    if os.path.isfile(path):
        return path, f"{database.words} (its cache)"
    logging.getLogger(__name__).warning(
        "%s: downloading %s by TFF", database.dataset, name
    )
    try:
        os.makedirs(own, exist_ok=True)
        # TFF writes to the file's final name and trusts what it finds there, whole or
        # not: so it is given a folder of its own first.
        with tempfile.TemporaryDirectory(dir=own) as partial:
            download(partial)
            os.replace(os.path.join(partial, name), path)
    except Exception as error:  # TensorFlow and urllib raise many kinds.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"{database.dataset}: {searched + ', and ' if folders else ''}TFF could "
            f"not download {name} ({reason}): pass data_dir or set "
            f"{places.ENVIRONMENT_VARIABLE} to the folder that holds it"
        ) from error
    return path, f"{database.words} (its download)"


def _read(path: str, database: Database, read: Callable[[str], Arrays]) -> Arrays:
    if not path.endswith(".lzma"):
        return read(path)
    # Gigabytes, where the environment variable TMPDIR says.
    with tempfile.TemporaryDirectory() as folder:
        unpacked = os.path.join(folder, database.file)
        try:
            with lzma.open(path) as packed, open(unpacked, "wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise DataError(f"{path}: cannot be unpacked ({error})") from error
        try:
            return read(unpacked)
        except DataError as error:
            raise DataError(str(error).replace(unpacked, path)) from error
