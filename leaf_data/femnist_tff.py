"""FEMNIST as TFF ships it, `emnist_all.sqlite`."""

from __future__ import annotations

import os
from typing import Union

from leaf_data import emnist_sqlite, tff_database
from leaf_data.cache import Arrays
from leaf_data.federated import Origin

_DATABASE = tff_database.Database("femnist", "emnist_all.sqlite", "TFF's EMNIST")


def load(
    folders: tuple[str, ...],
    cache_dir: Union[str, os.PathLike[str], None],
    download: bool,
    version: int,
) -> tuple[Arrays, Origin]:
    """Finds, downloads if allowed, and reads the database, or reads its cache.

    Args:
        folders: see `tff_database.load`.
        cache_dir: see there.
        download: whether TFF's cache and download follow.
        version: of the conversion, part of the cache's key.

    Returns:
        The arrays as `emnist_sqlite.read` returns them, and where they came from.

    Raises:
        DataError: there is no database, it cannot be downloaded or is unusable.
    """
    return tff_database.load(
        _DATABASE,
        folders,
        cache_dir,
        lambda path: emnist_sqlite.read(path),
        _download if download else None,
        version,
    )


def _download(folder: str) -> None:
    """Lets TFF download and unpack the database into a folder."""
    import tensorflow_federated as tff

    tff.simulation.datasets.emnist.load_data(only_digits=False, cache_dir=folder)
