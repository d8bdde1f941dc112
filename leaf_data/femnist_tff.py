"""Where TFF's EMNIST database is: in a folder, in TFF's cache, or to be downloaded."""

from __future__ import annotations

import logging
import lzma
import os
import shutil
import tempfile
from typing import Union

import numpy as np

from leaf_data import emnist_sqlite, places
from leaf_data.cache import Arrays, cached, key_of_files
from leaf_data.errors import DataError
from leaf_data.federated import Origin

_NAME = "emnist_all.sqlite"


def load(
    folders: tuple[str, ...],
    cache_dir: Union[str, os.PathLike[str], None],
    download: bool,
    version: int,
) -> tuple[Arrays, Origin]:
    """Finds, downloads if allowed, and reads the database, or reads its cache.

    Args:
        folders: looked into first, for `emnist_all.sqlite` or `.sqlite.lzma`.
        cache_dir: where to keep the cache and the download; by default beside the
            database, and `~/.tff`, TFF's own.
        download: whether TFF's cache and download follow.
        version: of the conversion, part of the cache's key.

    Returns:
        The arrays as `emnist_sqlite.read` returns them, and where they came from.

    Raises:
        DataError: there is no database, it cannot be downloaded or is unusable.
    """
    path, source = _find(folders, cache_dir, download)
    folder = os.path.dirname(path)

    def make() -> Arrays:
        digest = places.sha256(path)
        return {**_read(path), "source_sha256": np.array([digest])}

    key = key_of_files([path], version=version)
    arrays = cached("femnist_tff", folder, key, make, cache_dir)
    digest = str(arrays["source_sha256"][0])
    return arrays, Origin(source, ((os.path.basename(path), digest),), folder)


def _find(
    folders: tuple[str, ...],
    cache_dir: Union[str, os.PathLike[str], None],
    download: bool,
) -> tuple[str, str]:
    for folder in folders:
        for name in (_NAME, _NAME + ".lzma"):
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path, "TFF's EMNIST"
    searched = f"no {_NAME} or {_NAME}.lzma in {' or '.join(folders)}"
    if not download:
        raise DataError(f"femnist: {searched}")
    own = os.path.expanduser(os.fspath(cache_dir or os.path.join("~", ".tff")))
    path = os.path.join(own, _NAME)
    if os.path.isfile(path):
        return path, "TFF's EMNIST (its cache)"
    logging.getLogger(__name__).warning("FEMNIST: downloading %s by TFF", _NAME)
    try:
        os.makedirs(own, exist_ok=True)
        # TFF writes to the file's final name and trusts what it finds there, whole or
        # not: so it is given a folder of its own first.
        with tempfile.TemporaryDirectory(dir=own) as partial:
            _download(partial)
            os.replace(os.path.join(partial, _NAME), path)
    except Exception as error:  # TensorFlow and urllib raise many kinds.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(
            f"femnist: {searched + ', and ' if folders else ''}TFF could not download "
            f"{_NAME} ({reason}): pass data_dir or set {places.ENVIRONMENT_VARIABLE} "
            "to the folder that holds it"
        ) from error
    return path, "TFF's EMNIST (its download)"


def _download(folder: str) -> None:
    """Lets TFF download and unpack the database into a folder."""
    import tensorflow_federated as tff

    tff.simulation.datasets.emnist.load_data(only_digits=False, cache_dir=folder)


def _read(path: str) -> Arrays:
    if not path.endswith(".lzma"):
        return emnist_sqlite.read(path)
    # Gigabytes, where the environment variable TMPDIR says.
    with tempfile.TemporaryDirectory() as folder:
        unpacked = os.path.join(folder, _NAME)
        try:
            with lzma.open(path) as packed, open(unpacked, "wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
        except (OSError, EOFError, lzma.LZMAError) as error:
            raise DataError(f"{path}: cannot be unpacked ({error})") from error
        try:
            return emnist_sqlite.read(unpacked)
        except DataError as error:
            raise DataError(str(error).replace(unpacked, path)) from error
