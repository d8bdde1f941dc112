"""Databases that TFF ships: found in a folder or in TFF's cache, or downloaded."""

from __future__ import annotations

import dataclasses
import logging
import lzma
import os
import tempfile
from collections.abc import Callable
from typing import Optional

from leaf_data.errors import DataError, one_line
from leaf_data.federated import Origin
from leaf_data.formats import cached_clients, places, regular
from leaf_data.formats.cache import Arrays, cached, checksums, key_of_files
from leaf_data.formats.places import Folder

_PARTS = ("train", "test")
# What unpacking may take of memory, and make of each packed byte; TFF's databases are
# some 20 times as large as they are packed.
_MEMORY, _LARGER, _BLOCK = 1 << 28, 100, 1 << 20


@dataclasses.dataclass(frozen=True)
class Database:
    """A database as TFF ships it.

    Attributes:
        dataset: the name of the data set in `leaf_data`.
        file: the name of the database's file; TFF's download adds `.lzma`.
        words: the database in words, e.g. "TFF's EMNIST".
        fields: the shape and type of each field of an example, by name; `y` is its
            label.
        num_classes: the number of labels.
    """

    dataset: str
    file: str
    words: str
    fields: cached_clients.Fields
    num_classes: int


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
    key = key_of_files([path], version=version)
    (digest,) = checksums(key)
    arrays = cached(
        f"{database.dataset}_tff",
        folder,
        key,
        lambda: _read(path, database, read),
        cache_dir,
        form=cached_clients.form(_PARTS, database.fields),
        check=lambda found: cached_clients.check(found, _PARTS, database.num_classes),
    )
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
        reason = one_line(error)
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
            _unpack(path, unpacked)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise DataError(
                f"{path}: cannot be unpacked ({one_line(error)})"
            ) from error
        try:
            return read(unpacked)
        except DataError as error:
            raise DataError(str(error).replace(unpacked, path)) from error


def _unpack(path: str, unpacked: str) -> None:
    unpack = lzma.LZMADecompressor(memlimit=_MEMORY)
    with regular.open_file(path) as packed, open(unpacked, "wb") as file:
        left = _LARGER * (os.fstat(packed.fileno()).st_size + _BLOCK)
        while True:
            block = b""
            if unpack.eof:  # Another stream may follow.
                block = unpack.unused_data or packed.read(_BLOCK)
                if not block:
                    return
                unpack = lzma.LZMADecompressor(memlimit=_MEMORY)
            elif unpack.needs_input:
                block = packed.read(_BLOCK)
                if not block:
                    raise EOFError("it ends too early")
            data = unpack.decompress(block, _BLOCK)
            left -= len(data)
            if left < 0:
                raise lzma.LZMAError(f"it becomes {_LARGER} times as large and more")
            file.write(data)
