"""Databases that TFF ships: found in a folder or in TFF's cache, or downloaded."""

from __future__ import annotations

import logging
import lzma
import os
import tempfile

from leaf_data.errors import DataError, one_line, reading
from leaf_data.federated import Origin
from leaf_data.formats import cache, places, regular
from leaf_data.formats.cache import Arrays
from leaf_data.formats.places import Folder
from leaf_data.formats.tff_sqlite import PARTS, Database, read

# What unpacking may take of memory, and make of each packed byte; TFF's databases are
# some 20 times as large as they are packed.
_MEMORY, _LARGER, _BLOCK = 1 << 28, 100, 1 << 20


def load(
    database: Database,
    folders: tuple[str, ...],
    cache_dir: Folder | None,
    download: bool,
    version: int,
) -> tuple[Arrays, Origin]:
    """Finds, downloads if allowed, and reads a database, or reads its cache."""
    path, source = _find(database, folders, cache_dir, download)
    folder = os.path.dirname(path)
    key = cache.key_of_files([path], version=version)
    (digest,) = cache.checksums(key)
    arrays = cache.cached(
        f"{database.dataset}_tff",
        folder,
        key,
        lambda: _unpacked(path, database),
        cache_dir,
        form=cache.clients_form(PARTS, database.fields),
        check=lambda found: cache.check_clients(found, PARTS, database.num_classes),
    )
    return arrays, Origin(source, ((os.path.basename(path), digest),), folder)


def _find(
    database: Database,
    folders: tuple[str, ...],
    cache_dir: Folder | None,
    download: bool,
) -> tuple[str, str]:
    name = database.file
    for folder in folders:
        for file in (name, name + ".lzma"):
            path = os.path.join(folder, file)
            if os.path.isfile(path):
                return path, database.words
    searched = f"no {name} or {name}.lzma in {' or '.join(folders)}"
    if not download:
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
            database.download(partial)
            os.replace(os.path.join(partial, name), path)
    except Exception as error:  # TensorFlow and urllib raise many kinds.
        reason = one_line(error)
        raise DataError(
            f"{database.dataset}: {searched + ', and ' if folders else ''}TFF could "
            f"not download {name} ({reason}): pass data_dir or set "
            f"{places.ENVIRONMENT_VARIABLE} to the folder that holds it"
        ) from error
    return path, f"{database.words} (its download)"


def _unpacked(path: str, database: Database) -> Arrays:
    if not path.endswith(".lzma"):
        return read(path, database)
    # Gigabytes, where the environment variable TMPDIR says.
    with tempfile.TemporaryDirectory() as folder:
        unpacked = os.path.join(folder, database.file)
        with reading(path, "cannot be unpacked", EOFError, lzma.LZMAError):
            _unpack(path, unpacked)
        try:
            return read(unpacked, database)
        except DataError as error:
            raise DataError(str(error).replace(unpacked, path)) from error


def _unpack(path: str, unpacked: str) -> None:
    unpack = lzma.LZMADecompressor(memlimit=_MEMORY)
    with regular.open_file(path) as packed, open(unpacked, "wb") as file:
        left = _LARGER * (os.fstat(packed.fileno()).st_size + _BLOCK)
        while not unpack.eof:
            block = packed.read(_BLOCK) if unpack.needs_input else b""
            if unpack.needs_input and not block:
                raise EOFError("it ends too early")
            data = unpack.decompress(block, _BLOCK)
            left -= len(data)
            if left < 0:
                raise lzma.LZMAError(f"it becomes {_LARGER} times as large and more")
            file.write(data)
        if unpack.unused_data or packed.read(1):
            raise lzma.LZMAError("more follows its end")
