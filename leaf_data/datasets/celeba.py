"""`celeba`: photos of faces that smile or do not; each person is a client.

CelebA (Liu et al. 2015) as "Prioritized Multi-Criteria Federated Learning" (PMC)
uses it: the label is the attribute Smiling, and `attributes["sharp"]` says for the
criterion IS whether an image is sharp, which is where Blurry is not set. CelebA may
be used for non-commercial research only.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from leaf_data.dataset import register
from leaf_data.datasets import celeba_clients, celeba_files
from leaf_data.datasets.celeba_clients import Clients, WithClientRule
from leaf_data.datasets.celeba_files import IMAGES, SIDE
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin
from leaf_data.formats import cache, data_files, image_folder, tff_sqlite
from leaf_data.formats.cache import Arrays
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import DRAWING, PHOTOGRAPH
from leaf_data.settings import SettingError, setting

_AS_SPLIT = "as_split"
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Celeba(WithClientRule):
    """CelebA, in which each identity is a client.

    The client rule sees every photo the identity file lists. Only then are photos
    left out whose image is missing, and clients left without a training or without
    a test image: with a part of the images, the clients are those of CelebA that
    can be had, with the same photos in training and test. How many are left is
    logged as a warning and said in the data set's origin.

    Data that LEAF or TFF has split is taken as it is, and the loaded data set's
    `options` then say `client_rule="as_split"`; the rule "reference_code" needs the
    source "raw".

    The first load decodes all images that are there, into a cache (see
    `image_folder.decoded`), which the later ones read whatever their settings.
    """

    cached = True

    source: str = setting(
        "raw",
        "Where CelebA is read from: its own files in LEAF's raw folder, the JSON of "
        "LEAF's preprocess.sh with the images, or TFF's celeba.sqlite.",
        flag="celeba_source",
        choices=("raw", "leaf", "tff"),
    )
    missing_images: str = setting(
        "skip",
        "What is done about CelebA's images that are not there: skip them, or refuse "
        "the data.",
        choices=("skip", "refuse"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.client_rule == "reference_code" and self.source != "raw":
            raise SettingError(
                "--client_rule=reference_code needs --celeba_source=raw, not "
                f"{self.source}: it shuffles the identities of the complete identity "
                "file"
            )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [64, 64, 3] RGB, y 1 = smiling.

        `attributes["sharp"]` is uint8, 1 = sharp, which "leaf" has only beside
        `list_attr_celeba.txt`. Client ids are the identities' numbers. The data set is
        named `drawn_faces` where an image is one of `leaf_data.datasets.drawn_faces`.
        """
        folders = data_files.folders("celeba", data_dir)
        if self.source == "tff":
            arrays, origin = tff_sqlite.load(
                DATABASE, folders, cache_dir, data_dir is None
            )
            parts = [cache.clients_examples(arrays, part) for part in tff_sqlite.PARTS]
            return self._dataset(origin, _AS_SPLIT, False, *parts)
        of_leaf = self.source == "leaf"
        read = celeba_files.of_leaf if of_leaf else celeba_files.of_own_files
        found = read(folders)
        photos, rule, clients = found.photos, _AS_SPLIT, found.clients
        if not clients:
            rule = self.client_rule
            clients = celeba_clients.by_name(rule, photos.by_identity(), self.seed)
        folder = os.path.join(found.folder, IMAGES)
        files = image_folder.find(folder)
        if not of_leaf:  # LEAF's JSON may hold a part of the photos.
            celeba_files.check_known(folder, files, photos.names)
        # The row of each photo among the images, -1 if its image is missing; and back.
        row_of, photo_of = _places(photos.names, files), _places(files, photos.names)
        with_images, incomplete = _drop_missing(clients, row_of)
        if incomplete and (self.missing_images == "refuse" or not with_images):
            wanted = np.concatenate([k for both in clients.values() for k in both])
            first = min(photos.names[k] for k in wanted if row_of[k] < 0)
            raise DataError(
                f"{folder}: {incomplete}; {first} is the first that is missing "
                "(--missing_images=skip leaves such images out)"
            )
        if not with_images:
            raise DataError(f"{folder}: no client has train and test photos")
        alone = len(clients) - len(with_images)
        if incomplete or alone:
            said = f"left out are clients without train or test photos: {alone}"
            _LOG.warning("%s: %s", folder, incomplete or said)
        own = list(files.values())
        images = image_folder.decoded(
            "celeba", folder, own, SIDE, cache_dir, beside=found.folder
        )
        y, sharp = photos.smiling[photo_of], photos.sharp
        attributes = {} if sharp is None else {"sharp": sharp[photo_of]}
        train, test = (
            Examples.from_parts(
                images.x,
                y,
                [row_of[both[part]] for both in with_images.values()],
                with_images,
                attributes,
            )
            for part in (0, 1)
        )
        words = "drawn faces, no photographs" if photos.drawn else found.words
        origin = Origin(
            f"{words}, {incomplete}" if incomplete else words,
            (*found.files, (IMAGES, images.sha256)),
            found.folder,
        )
        return self._dataset(origin, rule, photos.drawn, train, test)

    def _dataset(
        self, origin: Origin, rule: str, drawn: bool, train: Examples, test: Examples
    ) -> FederatedDataset:
        return FederatedDataset(
            "drawn_faces" if drawn else "celeba",
            train,
            test,
            num_classes=2,
            pixel_convention=DRAWING if drawn else PHOTOGRAPH,
            origin=origin,
            options={**self.options(), "client_rule": rule},
        )


register("celeba", Celeba)


def _drop_missing(clients: Clients, rows: npt.NDArray[Any]) -> tuple[Clients, str]:
    """Leaves out photos without an image, and clients without a part of theirs."""
    left: Clients = {}
    wanted = found = 0
    for client, parts in clients.items():
        train, test = (photos[rows[photos] >= 0] for photos in parts)
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


def _places(names: Iterable[str], among: Iterable[str]) -> npt.NDArray[Any]:
    """Returns where each name is among others, -1 where it is not."""
    places_of = {name: place for place, name in enumerate(among)}
    return np.array([places_of.get(name, -1) for name in names])


def _download(folder: str) -> Any:
    import tensorflow_federated as tff

    tff.simulation.datasets.celeba.load_data(split_by_clients=False, cache_dir=folder)


def _convert(features: Arrays) -> dict[str, Any]:
    image = features["image"]
    if image.min() < 0 or image.max() > 255:
        raise DataError(f"an image from {image.min()} to {image.max()}, not 0 to 255")
    for name in ("smiling", "blurry"):
        if features[name] not in (0, 1):
            raise DataError(f"{name} is {features[name]}, not 0 or 1")
    return {
        "x": image_folder.resized(Image.fromarray(image.astype(np.uint8)), SIDE),
        "y": features["smiling"],
        "sharp": 1 - features["blurry"],
    }


# Made by TFF out of LEAF's: 9,343 clients, identities with 5 photos or more, 177,457 +
# 22,831 examples where it is split by examples, as here. An example has 84 x 84 x 3
# integers `image`, and 40 attributes by name, 0 or 1.
DATABASE = tff_sqlite.Database(
    dataset="celeba",
    file="celeba.sqlite",
    words="TFF's CelebA",
    # As `tff.simulation.datasets.celeba.load_data(split_by_clients=False)` names them.
    splits={"split_by_examples_train": "train", "split_by_examples_test": "test"},
    features={
        "image": ((84, 84, 3), "int64"),
        "smiling": ((), "int64"),
        "blurry": ((), "int64"),
    },
    fields={
        "x": ((SIDE, SIDE, 3), np.uint8),
        "y": ((), np.int32),
        "sharp": ((), np.uint8),
    },
    num_classes=2,
    convert=_convert,
    download=_download,
)
