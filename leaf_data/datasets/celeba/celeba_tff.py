"""CelebA as TFF ships it: `celeba.sqlite`, made by TFF out of LEAF's.

9,343 clients, identities with 5 photos or more, 177,457 + 22,831 examples where it is
split by examples, as here. An example has 84 x 84 x 3 integers `image`, and 40
attributes by name, 0 or 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from PIL import Image

from leaf_data.datasets.celeba.celeba_files import SIDE
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import Origin
from leaf_data.formats import cache, image_folder, tff_database, tff_sqlite
from leaf_data.formats.cache import Arrays
from leaf_data.formats.places import Folder

# Part of the key: a cache that another version of the conversion made is not used.
_VERSION = 1


def load(
    folders: tuple[str, ...],
    cache_dir: Folder | None,
    download: bool,
) -> tuple[Examples, Examples, Origin]:
    """Finds, downloads if allowed, and reads the database, or reads its cache.

    Images are made 64 x 64 as `image_folder.resized` says. Returns the training and
    the test examples, with the attribute `sharp`, clients in the order of their sorted
    ids, and the file they came from; see `tff_database.load`.
    """
    arrays, origin = tff_database.load(DATABASE, folders, cache_dir, download, _VERSION)
    train, test = (
        cache.clients_examples(arrays, part, ("sharp",)) for part in tff_sqlite.PARTS
    )
    return train, test, origin


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
    smallest=84 * 84 * 3,
    fields={
        "x": ((SIDE, SIDE, 3), np.uint8),
        "y": ((), np.int32),
        "sharp": ((), np.uint8),
    },
    num_classes=2,
    convert=_convert,
    download=_download,
)
