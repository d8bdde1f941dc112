"""FEMNIST as TFF ships it, `emnist_all.sqlite`."""

from __future__ import annotations

from leaf_data.datasets.femnist import emnist_sqlite
from leaf_data.datasets.femnist.femnist_values import FIELDS, NUM_CLASSES
from leaf_data.federated import Origin
from leaf_data.formats import tff_database
from leaf_data.formats.cache import Arrays
from leaf_data.formats.places import Folder

_DATABASE = tff_database.Database(
    "femnist", "emnist_all.sqlite", "TFF's EMNIST", FIELDS, NUM_CLASSES
)


def load(
    folders: tuple[str, ...],
    cache_dir: Folder | None,
    download: bool,
    version: int,
) -> tuple[Arrays, Origin]:
    """Finds, downloads if allowed, and reads the database, or reads its cache.

    Args:
        folders: the folders to look into first, see `tff_database.load`.
        cache_dir: the folder of the cache and the download, see there.
        download: whether TFF's cache and download follow.
        version: the version of the conversion, part of the cache's key.

    Returns:
        The arrays as `emnist_sqlite.read` returns them, and the file they came from.

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
