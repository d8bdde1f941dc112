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
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image

from declared_settings import SettingError, setting
from leaf_data.dataset import Dataset, register
from leaf_data.datasets import celeba_clients
from leaf_data.datasets.celeba_clients import Clients
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import FederatedDataset, Origin
from leaf_data.formats import data_files, image_folder, leaf_json, tff_sqlite
from leaf_data.formats.cache import Arrays
from leaf_data.formats.data_files import Folder
from leaf_data.pixels import PHOTOGRAPH

IMAGES = "img_align_celeba"  # The folder of the images.
SIDE = 64  # The width and height that the images are given, in pixels.
_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Celeba(Dataset):
    """CelebA, in which each identity is a client.

    The client rule sees every photo that the identity file lists. Only then are photos
    excluded whose image is missing, and clients without a training or a test image. The
    number that remains is logged, and recorded in the origin. Data that LEAF or TFF has
    split stays as it is (`options["client_rule"]` is "as_split").
    """

    cached = True

    client_rule: str = setting(
        "paper",
        "Which of CelebA's identities are clients: PMC's rule, or that of its authors' "
        "published code.",
        choices=tuple(celeba_clients.RULES),
    )
    source: str = setting(
        "raw",
        "Where CelebA is read from: CelebA's files in LEAF's raw folder, the JSON of "
        "LEAF's preprocess.sh with the images, or TFF's celeba.sqlite.",
        flag="celeba_source",
        choices=("raw", "leaf", "tff"),
    )
    missing_images: str = setting(
        "skip",
        "What to do about missing images of CelebA: skip them, or refuse the data.",
        choices=("skip", "refuse"),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.client_rule == "reference_code" and self.source != "raw":
            raise SettingError(
                "--client_rule=reference_code needs --celeba_source=raw, not "
                f"{self.source}"
            )

    def load(
        self, data_dir: Folder | None = None, cache_dir: Folder | None = None
    ) -> FederatedDataset:
        """Returns the data set: x uint8 [64, 64, 3] RGB, y 1 = smiling.

        `attributes["sharp"]` is uint8, 1 = sharp, which "leaf" has only with
        `list_attr_celeba.txt`. Client ids are the identities' numbers.
        """
        folders = data_files.folders("celeba", data_dir)
        if self.source == "tff":
            arrays, origin = tff_sqlite.load(
                DATABASE, folders, cache_dir, data_dir is None
            )
            parts = [Examples.from_arrays(arrays, part) for part in tff_sqlite.PARTS]
            return self._dataset(origin, "as_split", *parts)
        # Imported here: pandas is slow to import, and only CelebA needs it.
        from leaf_data.formats import celeba_lists

        leaf = leaf_json.find("celeba", folders) if self.source == "leaf" else ()
        if any("sampled_data" in file.path for file in leaf):  # By LEAF's rule.
            raise DataError(
                f"{leaf[0].path}: is sampled but not split: run LEAF's preprocess.sh "
                "with -t sample"
            )
        subs = (os.path.join("data", "raw"), "raw", "")  # LEAF's folder, or itself.
        raw, rule = data_files.find("celeba", folders, IMAGES, subs=subs), "as_split"
        digests: list[str] = []
        list_names = (celeba_lists.ATTRIBUTES,) if leaf else celeba_lists.FILES
        lists = [name for name in list_names if os.path.exists(os.path.join(raw, name))]
        if leaf:
            photos, clients, digests = celeba_lists.read_leaf(leaf, raw)
        else:
            photos, clients = celeba_lists.read_raw(raw), {}
        if not clients:
            rule = self.client_rule
            identities = celeba_lists.rows_by_identity(photos)
            clients = celeba_clients.RULES[rule](identities, self.seed)
        folder = os.path.join(raw, IMAGES)
        files = image_folder.find(folder)
        # The photo of each image, -1 if no list has it; and the image of each photo.
        photo_of = photos.index.get_indexer(list(files))
        row_of = np.full(len(photos), -1)
        row_of[photo_of[photo_of >= 0]] = np.flatnonzero(photo_of >= 0)
        complete, incomplete = _drop_missing(clients, row_of)
        if incomplete and (self.missing_images == "refuse" or not complete):
            raise DataError(
                f"{folder}: {incomplete} (--missing_images=skip skips such images)"
            )
        if not complete:
            raise DataError(
                f"{folder}: no client has train and test photos by client_rule={rule}"
            )
        num_dropped = len(clients) - len(complete)
        if incomplete or num_dropped:
            words = f"excluded clients without train or test photos: {num_dropped}"
            _LOG.warning("%s: %s", folder, incomplete or words)
        x, sha256 = image_folder.load_images(
            "celeba", folder, list(files.values()), SIDE, cache_dir, cache_root=raw
        )
        y = photos["smiling"].to_numpy(np.int32)[photo_of]
        attributes = {k: photos[k].to_numpy()[photo_of] for k in photos if k == "sharp"}
        train, test = (
            Examples.from_parts(
                x,
                y,
                [row_of[parts[part]] for parts in complete.values()],
                complete,
                attributes,
            )
            for part in (0, 1)
        )
        words = "LEAF JSON and images" if leaf else "CelebA's files"
        names = [os.path.basename(file.path) for file in leaf]
        digests += [data_files.sha256(os.path.join(raw, name)) for name in lists]
        files_sha256 = tuple(zip([*names, *lists, IMAGES], [*digests, sha256]))
        words = f"{words}, {incomplete}" if incomplete else words
        return self._dataset(Origin(words, files_sha256, raw), rule, train, test)

    def _dataset(
        self, origin: Origin, rule: str, train: Examples, test: Examples
    ) -> FederatedDataset:
        return FederatedDataset(
            "celeba",
            train,
            test,
            num_classes=2,
            pixel_convention=PHOTOGRAPH,
            origin=origin,
            options={**self.options(), "client_rule": rule},
            class_names=("not smiling", "smiling"),
        )


register("celeba", Celeba)


def _drop_missing(clients: Clients, rows: npt.NDArray[Any]) -> tuple[Clients, str]:
    """Excludes photos without an image, then clients without train or test photos."""
    complete: Clients = {}
    num_listed = num_present = 0
    for client, parts in clients.items():
        train, test = (photos[rows[photos] >= 0] for photos in parts)
        num_listed += sum(map(len, parts))
        num_present += len(train) + len(test)
        if len(train) and len(test):
            complete[client] = train, test
    if num_present == num_listed:
        return complete, ""
    return complete, (
        f"INCOMPLETE: {num_present:,} of the {num_listed:,} images of its clients are "
        f"there, {len(complete):,} of {len(clients):,} clients left"
    )


def _download(folder: str) -> Any:
    import tensorflow_federated as tff

    tff.simulation.datasets.celeba.load_data(split_by_clients=False, cache_dir=folder)


def _convert(features: Arrays) -> Arrays:
    image = features["image"]
    if image.size and not 0 <= image.min() <= image.max() <= 255:
        raise DataError(f"an image from {image.min()} to {image.max()}, not 0 to 255")
    for name in ("smiling", "blurry"):
        if not np.isin(features[name], (0, 1)).all():
            raise DataError(f"{name} must be 0 or 1")
    small = [image_folder.resize_image(Image.fromarray(pixels), SIDE)
             for pixels in image.astype(np.uint8)]  # fmt: skip
    return {
        "x": np.array(small, np.uint8).reshape(-1, SIDE, SIDE, 3),
        "y": features["smiling"].astype(np.int32),
        "sharp": (1 - features["blurry"]).astype(np.uint8),
    }


# Made by TFF out of LEAF's: 9,343 clients, identities with 5 photos or more, 177,457 +
# 22,831 examples where it is split by examples, as here. An example has 84 x 84 x 3
# integers `image`, and 40 attributes by name, 0 or 1.
DATABASE = tff_sqlite.Database(
    dataset="celeba",
    file="celeba.sqlite",
    title="TFF's CelebA",
    # As `tff.simulation.datasets.celeba.load_data(split_by_clients=False)` names them.
    splits=("split_by_examples_train", "split_by_examples_test"),
    features={
        "image": ((84, 84, 3), "int64"),
        "smiling": ((), "int64"),
        "blurry": ((), "int64"),
    },
    convert=_convert,
    download=_download,
)
