"""The list of photos and their people, from CelebA's own files or LEAF's JSON.

LEAF's files hold the photos' names as `x` and Smiling as `y`, 0.0 or 1.0, of the
identities with 5 photos or more. Images and sharpness are CelebA's own files'.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from leaf_data import client_names
from leaf_data.datasets.celeba import celeba_files
from leaf_data.datasets.celeba.celeba_clients import Clients
from leaf_data.datasets.celeba.celeba_files import ATTRIBUTES, IDENTITIES, Photos
from leaf_data.errors import DataError
from leaf_data.formats import leaf_json, places

_LOG = logging.getLogger(__name__)


class Listing(NamedTuple):
    """The photos that files list, with all that is known but the images."""

    words: str  # The kind of files, for the data set's origin.
    folder: str  # LEAF's raw folder, which holds the images.
    photos: Photos
    clients: Clients  # None where the files do not say who they are.
    files: tuple[tuple[str, str], ...]  # Their names and sha256s.


def of_own_files(folders: tuple[str, ...]) -> Listing:
    """Reads CelebA's own text files."""
    folder = celeba_files.find(folders, (IDENTITIES, ATTRIBUTES))
    photos = celeba_files.read_photos(folder)
    return Listing("CelebA's files", folder, photos, {}, _digests(folder))


def of_leaf(folders: tuple[str, ...]) -> Listing:
    """Reads LEAF's JSON, and CelebA's attributes if they are there."""
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
    photos, clients, digests = _read_leaf(files, attributes)
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


def _read_leaf(
    files: Sequence[leaf_json.LeafFile], attributes: Mapping[str, tuple[int, int]]
) -> tuple[Photos, Clients, tuple[tuple[str, str], ...]]:
    """Returns photos, clients of files that LEAF has split, and the files' sha256s."""
    labels: dict[str, int] = {}
    users: list[str] = []
    clients: dict[str, dict[str, list[int]]] = {}
    digests = []
    for file in files:
        found, digest = leaf_json.read(file.path, _names_and_labels)
        digests.append((os.path.basename(file.path), digest))
        for user, examples in found.items():
            rows = clients.setdefault(user, {}).setdefault(file.part, [])
            for name, label in examples:
                where = f"{file.path}: user {user}: {name}"
                if name in labels:
                    raise DataError(f"{where} is there twice")
                if attributes and name not in attributes:
                    raise DataError(f"{where} is not in {ATTRIBUTES}")
                if attributes and attributes[name][0] != label:
                    raise DataError(
                        f"{where} has the label {label}, Smiling in {ATTRIBUTES} is "
                        f"{attributes[name][0]}"
                    )
                rows.append(len(labels))
                labels[name] = label
                users.append(user)
    photos = Photos(
        names=tuple(labels),
        identities=tuple(users),
        smiling=np.array(list(labels.values()), np.int32),
        sharp=(
            np.array([1 - attributes[name][1] for name in labels], np.uint8)
            if attributes
            else None
        ),
    )
    split: Clients = {}
    if files[0].part != "all":
        for user, parts in clients.items():
            train, test = (
                np.array(parts.get(p, []), np.int64) for p in ("train", "test")
            )
            split[user] = train, test
    return photos, split, tuple(digests)


def _names_and_labels(x: list[Any], y: list[Any]) -> list[tuple[str, int]]:
    for name, label in zip(x, y):
        if not isinstance(name, str) or not name:
            raise DataError(f"x holds {name!r:.40}, not a photo's name")
        client_names.check(name, "the photo")
        if type(label) not in (int, float) or label not in (0, 1):
            raise DataError(f"{name} has the label {label!r:.40}, not 0 or 1")
    return [(celeba_files.stem(name), int(label)) for name, label in zip(x, y)]
