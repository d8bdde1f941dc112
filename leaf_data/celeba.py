"""`celeba`: photos of faces that smile or do not, a client a person.

CelebA (Liu et al. 2015) as "Prioritized Multi-Criteria Federated Learning" (PMC)
uses it: the label is the attribute Smiling, and `attributes["sharp"]` says for the
criterion IS whether an image is sharp, which is where Blurry is not set. CelebA may
be used for non-commercial research only.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from leaf_data import celeba_clients, celeba_files, celeba_images, partition, places
from leaf_data.celeba_clients import Clients
from leaf_data.celeba_files import ATTRIBUTES, IDENTITIES, IMAGES, Photos
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin

SOURCES = ("raw", "leaf", "tff")
MISSING_IMAGES = ("skip", "refuse")

_LOG = logging.getLogger(__name__)


def load(
    data_dir: Union[str, os.PathLike[str], None] = None,
    *,
    client_rule: str = "paper",
    source: str = "raw",
    missing_images: str = "skip",
    seed: int = 0,
    cache_dir: Union[str, os.PathLike[str], None] = None,
) -> FederatedDataset:
    """Loads CelebA, a client an identity.

    Without a `data_dir` the folder named by `TFF_PMC_DATA_DIR` counts. It and its
    subfolder `celeba` are searched, see `celeba_files.find`.

    The client rule sees every photo the identity file lists. Only then are photos
    left out whose image is missing, and clients left without a training or without
    a test image: with a part of the images, the clients are those of CelebA that
    can be had, with the same photos in training and test. How many are left is
    logged as a warning and said in the data set's origin, where the images are not
    complete.

    The first load decodes all images that are there, into a cache (see
    `celeba_images.read`), which the later ones read whatever their options.

    Args:
        data_dir: the folder.
        client_rule: "paper" or "reference_code", see `celeba_clients`.
        source: "raw", CelebA's own files in LEAF's layout.
        missing_images: "skip" or "refuse" clients' photos without an image.
        seed: of the client rule, 0 to 2**32 - 1.
        cache_dir: where to keep the cache instead.

    Returns:
        The data set: x uint8 [64, 64, 3] RGB, y 1 = smiling, `attributes["sharp"]`
        uint8, 1 = sharp. Client ids are the identities' numbers. It is named
        `drawn_faces` where an image is one of `leaf_data.drawn_faces`.

    Raises:
        DataError: no data found, a file is not what it should be (the message names
            it), text files and images disagree, no such option, no client is left.
    """
    _check("source", source, SOURCES)
    _check("missing_images", missing_images, MISSING_IMAGES)
    celeba_clients.check(client_rule)
    partition.random_state(seed)
    folders = places.folders("celeba", data_dir)
    options = {
        "client_rule": client_rule,
        "source": source,
        "missing_images": missing_images,
        "seed": int(seed),
    }
    folder = celeba_files.find(folders, (IDENTITIES, ATTRIBUTES))
    image_folder = os.path.join(folder, IMAGES)
    photos = celeba_files.read_photos(folder)
    images = celeba_files.find_images(image_folder)
    celeba_files.check_known(image_folder, images, photos.names)
    clients = celeba_clients.by_name(client_rule, photos.by_identity(), seed)
    # A photo's place among the images, -1 if it is missing.
    places_of = {name: place for place, name in enumerate(images)}
    place = np.array([places_of.get(name, -1) for name in photos.names])
    left, note = _drop_missing(clients, place)
    if note and (missing_images == "refuse" or not left):
        raise DataError(f"{image_folder}: {note}")
    if note:
        _LOG.warning("%s: %s", image_folder, note)
    x, images_digest = celeba_images.read(image_folder, images, cache_dir)
    train, test = (_examples(x, photos, place, left, part) for part in (0, 1))
    files = [
        (name, places.sha256(os.path.join(folder, name)))
        for name in (IDENTITIES, ATTRIBUTES)
    ]
    files.append((IMAGES, images_digest))
    words = "drawn faces, no photographs" if photos.drawn else "CelebA's files"
    return FederatedDataset(
        name="drawn_faces" if photos.drawn else "celeba",
        train_examples=train,
        test_examples=test,
        num_classes=2,
        pixel_convention=(
            celeba_images.DRAWING if photos.drawn else celeba_images.PHOTOGRAPH
        ),
        origin=Origin(f"{words}, {note}" if note else words, tuple(files), folder),
        options=options,
    )


def _check(option: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise DataError(f"celeba: no {option} {value!r}: there are {', '.join(known)}")


def _drop_missing(clients: Clients, place: npt.NDArray[Any]) -> tuple[Clients, str]:
    """The clients' rows that have an image, and what is missing in words, or ""."""
    left: Clients = {}
    wanted = found = 0
    for client, parts in clients.items():
        train, test = (rows[place[rows] >= 0] for rows in parts)
        wanted += sum(map(len, parts))
        found += len(train) + len(test)
        if len(train) and len(test):
            left[client] = train, test
    if found == wanted:
        return left, ""
    return left, (
        f"INCOMPLETE: {found:,} of the {wanted:,} images of its clients are there, "
        f"{len(left):,} of {len(clients):,} clients left"
    )


def _examples(
    x: npt.NDArray[np.uint8],
    photos: Photos,
    place: npt.NDArray[Any],
    clients: Clients,
    part: int,
) -> Examples:
    """The training (0) or test (1) examples."""
    rows = [parts[part] for parts in clients.values()]
    together = np.concatenate(rows)
    sharp = {} if photos.sharp is None else {"sharp": photos.sharp[together]}
    return Examples(
        x=x[place[together]],
        y=photos.smiling[together],
        row_splits=np.cumsum([0, *map(len, rows)], dtype=np.int64),
        client_ids=tuple(clients),
        attributes=sharp,
    )
