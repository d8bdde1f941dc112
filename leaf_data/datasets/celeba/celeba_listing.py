"""The list of photos and their people, from CelebA's own files or LEAF's JSON."""

from __future__ import annotations

import logging
import os
from typing import NamedTuple

from leaf_data.datasets.celeba import celeba_files, celeba_leaf
from leaf_data.datasets.celeba.celeba_clients import Clients
from leaf_data.datasets.celeba.celeba_files import ATTRIBUTES, IDENTITIES, Photos
from leaf_data.errors import DataError
from leaf_data.formats import leaf_json, places

_LOG = logging.getLogger(__name__)


class Listing(NamedTuple):
    """The photos that files list, with all that is known but the images.

    Attributes:
        words: the kind of files, for the data set's origin.
        folder: LEAF's raw folder, which holds the images.
        photos: the photos.
        clients: the clients, if the files say who they are; else none.
        files: the names and sha256s of the files.
    """

    words: str
    folder: str
    photos: Photos
    clients: Clients
    files: tuple[tuple[str, str], ...]


def of_own_files(folders: tuple[str, ...]) -> Listing:
    """Reads CelebA's own text files.

    Args:
        folders: the folders to look into, see `celeba_files.find`.

    Raises:
        DataError: a file is missing or not what it should be.
    """
    folder = celeba_files.find(folders, (IDENTITIES, ATTRIBUTES))
    photos = celeba_files.read_photos(folder)
    return Listing("CelebA's files", folder, photos, {}, _digests(folder))


def of_leaf(folders: tuple[str, ...]) -> Listing:
    """Reads LEAF's JSON, and CelebA's attributes if they are there.

    Args:
        folders: the folders to look into, see `leaf_json.find` and `celeba_files.find`.

    Raises:
        DataError: there is no JSON or no image, the JSON is sampled but not split, or
            a file is not what it should be.
    """
    files = leaf_json.find("celeba", folders)
    sub = os.path.basename(os.path.dirname(files[0].path))
    if sub in ("sampled_data", "rem_user_data"):
        raise DataError(
            f"{files[0].path}: is sampled but not split: let preprocess.sh split it, "
            "with -t sample"
        )
    folder = celeba_files.find(folders, ())
    path = os.path.join(folder, ATTRIBUTES)
    attributes = celeba_files.read_attributes(path) if os.path.exists(path) else {}
    if not attributes:
        _LOG.warning("%s: is not there, so nothing is known of sharpness", path)
    photos, clients, digests = celeba_leaf.read(files, attributes)
    digests += _digests(folder)
    return Listing("LEAF JSON and images", folder, photos, clients, digests)


def _digests(folder: str) -> tuple[tuple[str, str], ...]:
    """Returns names and sha256s of those of CelebA's text files that are there."""
    paths = [os.path.join(folder, name) for name in (IDENTITIES, ATTRIBUTES)]
    return tuple(
        (os.path.basename(path), places.sha256(path))
        for path in paths
        if os.path.exists(path)
    )
