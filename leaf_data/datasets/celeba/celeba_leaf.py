"""CelebA's photos by client, read from LEAF's JSON, split by LEAF or not yet.

LEAF's files hold the photos' names as `x` and Smiling as `y`, 0.0 or 1.0, of the
identities with 5 photos or more. Images and sharpness are CelebA's own files'.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leaf_data import client_names
from leaf_data.datasets.celeba.celeba_clients import Clients
from leaf_data.datasets.celeba.celeba_files import ATTRIBUTES, Photos, stem
from leaf_data.errors import DataError
from leaf_data.formats import leaf_json


def read(
    files: Sequence[leaf_json.LeafFile], attributes: Mapping[str, tuple[int, int]]
) -> tuple[Photos, Clients, tuple[tuple[str, str], ...]]:
    """Reads the files.

    Args:
        files: the files as `leaf_json.find` returns them.
        attributes: Smiling and Blurry of each photo, see
            `celeba_files.read_attributes`; empty if not known.

    Returns:
        The photos, users as identities; the clients of files that LEAF has split
        into train and test, in the files' order, none of other files; and the
        files' names and sha256s.

    Raises:
        DataError: a file cannot be used, a photo is there twice, is not among the
            attributes or has another label there; it names file and user.
    """
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
    return [(stem(name), int(label)) for name, label in zip(x, y)]
