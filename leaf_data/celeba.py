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

from leaf_data import (
    celeba_clients,
    celeba_files,
    celeba_images,
    celeba_leaf,
    celeba_tff,
    leaf_json,
    partition,
    places,
)
from leaf_data.celeba_clients import Clients
from leaf_data.celeba_files import ATTRIBUTES, IDENTITIES, IMAGES, Photos
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin

SOURCES = ("raw", "leaf", "tff")
MISSING_IMAGES = ("skip", "refuse")

_AS_SPLIT = "as_split"
_LOG = logging.getLogger(__name__)

# The raw folder; the photos; the clients if the files say who they are, else none;
# names and sha256s of the files.
_Found = tuple[str, Photos, Clients, tuple[tuple[str, str], ...]]


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
    subfolder `celeba` are searched: for the images as `celeba_files.find` says, for
    LEAF's JSON as `leaf_json.find`, for TFF's database as `celeba_tff.load`.

    The client rule sees every photo the identity file lists. Only then are photos
    left out whose image is missing, and clients left without a training or without
    a test image: with a part of the images, the clients are those of CelebA that
    can be had, with the same photos in training and test. How many are left is
    logged as a warning and said in the data set's origin.

    The first load decodes all images that are there, into a cache (see
    `celeba_images.read`), which the later ones read whatever their options.

    Args:
        data_dir: the folder.
        client_rule: "paper" or "reference_code", see `celeba_clients`. Data that
            LEAF or TFF has split is taken as it is, and `options` then say
            "as_split"; "reference_code" needs the source "raw".
        source: "raw", CelebA's own files in LEAF's layout; "leaf", the JSON of
            LEAF's `preprocess.sh` and the images; or "tff", TFF's database.
        missing_images: "skip" or "refuse" clients' photos without an image.
        seed: of the client rule, 0 to 2**32 - 1.
        cache_dir: where to keep the cache, and TFF's download, instead.

    Returns:
        The data set: x uint8 [64, 64, 3] RGB, y 1 = smiling, `attributes["sharp"]`
        uint8, 1 = sharp, which "leaf" has only beside `list_attr_celeba.txt`.
        Client ids are the identities' numbers. It is named `drawn_faces` where an
        image is one of `leaf_data.drawn_faces`.

    Raises:
        DataError: no data found, a file is not what it should be (the message names
            it), text files and images disagree, no such option, no client is left.
    """
    _check("source", source, SOURCES)
    _check("missing_images", missing_images, MISSING_IMAGES)
    celeba_clients.check(client_rule)
    if client_rule == "reference_code" and source != "raw":
        raise DataError(
            f"celeba: client_rule=reference_code needs source=raw, not {source}: it "
            "shuffles the identities of the complete identity file"
        )
    partition.random_state(seed)
    folders = places.folders("celeba", data_dir)
    options = {
        "client_rule": client_rule,
        "source": source,
        "missing_images": missing_images,
        "seed": int(seed),
    }
    if source == "tff":
        train, test, origin = celeba_tff.load(folders, cache_dir, data_dir is None)
        options["client_rule"] = _AS_SPLIT
        return _dataset(train, test, origin, options, drawn=False)
    if source == "leaf":
        folder, photos, clients, files = _from_leaf(folders)
        words = "LEAF JSON and images"
    else:
        folder, photos, clients, files = _from_raw(folders)
        words = "CelebA's files"
    if clients:
        options["client_rule"] = _AS_SPLIT
    else:
        clients = celeba_clients.by_name(client_rule, photos.by_identity(), seed)

    image_folder = os.path.join(folder, IMAGES)
    images = celeba_files.find_images(image_folder)
    if source == "raw":  # LEAF's JSON may hold a part of the photos.
        celeba_files.check_known(image_folder, images, photos.names)
    # A photo's place among the images, -1 if it is missing.
    places_of = {name: place for place, name in enumerate(images)}
    place = np.array([places_of.get(name, -1) for name in photos.names])
    dealt = clients
    clients, note = _drop_missing(dealt, place)
    if note and (missing_images == "refuse" or not clients):
        used = np.concatenate([rows for parts in dealt.values() for rows in parts])
        first = min(photos.names[row] for row in used if place[row] < 0)
        raise DataError(
            f"{image_folder}: {note}; {first} is the first that is missing "
            "(--missing_images=skip leaves such images out)"
        )
    if note:
        _LOG.warning("%s: %s", image_folder, note)
    x, images_digest = celeba_images.read(image_folder, images, cache_dir)
    train, test = (_examples(x, photos, place, clients, part) for part in (0, 1))
    if photos.drawn:
        words = "drawn faces, no photographs"
    origin = Origin(
        f"{words}, {note}" if note else words, (*files, (IMAGES, images_digest)), folder
    )
    return _dataset(train, test, origin, options, photos.drawn)


def _check(option: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise DataError(f"celeba: no {option} {value!r}: there are {', '.join(known)}")


def _from_raw(folders: tuple[str, ...]) -> _Found:
    folder = celeba_files.find(folders, (IDENTITIES, ATTRIBUTES))
    return folder, celeba_files.read_photos(folder), {}, _digests(folder)


def _from_leaf(folders: tuple[str, ...]) -> _Found:
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
    return folder, photos, clients, digests + _digests(folder)


def _digests(folder: str) -> tuple[tuple[str, str], ...]:
    """Names and sha256s of those of CelebA's text files that are there."""
    paths = [os.path.join(folder, name) for name in (IDENTITIES, ATTRIBUTES)]
    return tuple(
        (os.path.basename(path), places.sha256(path))
        for path in paths
        if os.path.exists(path)
    )


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


def _dataset(
    train: Examples, test: Examples, origin: Origin, options: Any, drawn: bool
) -> FederatedDataset:
    return FederatedDataset(
        name="drawn_faces" if drawn else "celeba",
        train_examples=train,
        test_examples=test,
        num_classes=2,
        pixel_convention=celeba_images.DRAWING if drawn else celeba_images.PHOTOGRAPH,
        origin=origin,
        options=options,
    )
