"""CelebA as TFF ships it: `celeba.sqlite`, made by TFF out of LEAF's.

9,343 clients, identities with 5 photos or more, 177,457 + 22,831 examples where it is
split by examples, as here. An example has 84 x 84 x 3 integers `image`, and 40
attributes by name, 0 or 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image

from leaf_data.datasets.celeba import celeba_images
from leaf_data.errors import DataError
from leaf_data.examples import Examples
from leaf_data.federated import Origin
from leaf_data.formats import tff_database, tff_sqlite
from leaf_data.formats.cache import Arrays
from leaf_data.formats.places import Folder
from leaf_data.formats.tf_example import Features

_FIELDS: dict[str, tuple[tuple[int, ...], Any]] = {
    "x": ((celeba_images.SIDE, celeba_images.SIDE, 3), np.uint8),
    "y": ((), np.int32),
    "sharp": ((), np.uint8),
}
_DATABASE = tff_database.Database(
    "celeba", "celeba.sqlite", "TFF's CelebA", _FIELDS, num_classes=2
)
# As `tff.simulation.datasets.celeba.load_data(split_by_clients=False)` names them.
_SPLITS = {"split_by_examples_train": "train", "split_by_examples_test": "test"}
_SHAPE = (84, 84, 3)
# Part of the key: a cache that another version of the conversion made is not used.
_VERSION = 1


def load(
    folders: tuple[str, ...],
    cache_dir: Folder | None,
    download: bool,
) -> tuple[Examples, Examples, Origin]:
    """Finds, downloads if allowed, and reads the database, or reads its cache.

    Images are made 64 x 64 as `celeba_images.to_pixels` says.

    Args:
        folders: the folders to look into first, for `celeba.sqlite` or
            `celeba.sqlite.lzma`.
        cache_dir: the folder of the cache and the download, see `tff_database.load`.
        download: whether TFF's cache and download follow.

    Returns:
        The training and the test examples, with the attribute `sharp`, clients in
        the order of their sorted ids; and the file they came from.

    Raises:
        DataError: there is no database, it cannot be downloaded or is unusable.
    """
    arrays, origin = tff_database.load(
        _DATABASE,
        folders,
        cache_dir,
        read,
        _download if download else None,
        _VERSION,
    )
    train, test = (
        Examples(
            x=arrays[f"x_{part}"],
            y=arrays[f"y_{part}"],
            row_splits=np.cumsum([0, *arrays[f"sizes_{part}"]], dtype=np.int64),
            client_ids=tuple(arrays["client_ids"].tolist()),
            attributes={"sharp": arrays[f"sharp_{part}"]},
        )
        for part in ("train", "test")
    )
    return train, test, origin


def read(path: str) -> Arrays:
    """Reads an unpacked database; see `tff_sqlite.read` for result and errors."""
    return tff_sqlite.read(
        path,
        words=_DATABASE.words,
        splits=_SPLITS,
        fields=_FIELDS,
        needed=("image", "smiling", "blurry"),
        convert=_values,
        smallest=_SHAPE[0] * _SHAPE[1] * _SHAPE[2],
    )


def _values(features: Features) -> Mapping[str, Any]:
    image = features["image"]
    if image.dtype != np.int64 or image.size != np.prod(_SHAPE):
        raise DataError(f"an image of {image.size} values, not 84 x 84 x 3 integers")
    if image.min() < 0 or image.max() > 255:
        raise DataError(f"an image from {image.min()} to {image.max()}, not 0 to 255")
    for name in ("smiling", "blurry"):
        value = features[name]
        if value.dtype != np.int64 or value.size != 1 or value[0] not in (0, 1):
            raise DataError(f"{name} is {value[:4].tolist()}, not 0 or 1")
    pixels = Image.fromarray(image.astype(np.uint8).reshape(_SHAPE))
    return {
        "x": celeba_images.to_pixels(pixels),
        "y": int(features["smiling"][0]),
        "sharp": 1 - int(features["blurry"][0]),
    }


def _download(folder: str) -> None:
    """Lets TFF download and unpack the database into a folder."""
    import tensorflow_federated as tff

    tff.simulation.datasets.celeba.load_data(split_by_clients=False, cache_dir=folder)
