"""CelebA's images: decoded, made 64 x 64, kept in a cache (Pillow and numpy)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import tqdm
from PIL import Image

from leaf_data.formats import image_folder
from leaf_data.formats.cache import Arrays, cached, checksums, key_of_files
from leaf_data.formats.places import Folder

SIDE = 64
"""The width and height of the images, in pixels."""

# Part of the key: a cache that another version of the conversion made is not used.
_VERSION = 1


def to_pixels(image: Image.Image) -> npt.NDArray[np.uint8]:
    """Makes an image RGB and resizes all of it to 64 x 64 by Pillow's BICUBIC filter.

    The filter is the default of `Image.resize` since Pillow 7, so the one of the
    authors' code; it averages when it shrinks. The face becomes wider: the photos are
    178 x 218.

    Returns:
        uint8 [64, 64, 3].
    """
    small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BICUBIC)
    return np.asarray(small, np.uint8)


def read(
    folder: str,
    files: Mapping[str, str],
    cache_dir: Folder | None = None,
) -> tuple[npt.NDArray[np.uint8], str]:
    """Reads all the images, decoded the first time, out of the cache after that.

    Args:
        folder: the folder that holds them.
        files: the file names, under any names, see `celeba_files.find_images`.
        cache_dir: the folder in which to keep the cache; by default beside the images'
            folder. CelebA's 202,599 images take 2.5 GB there, and in memory while they
            are loaded.

    Returns:
        The images, uint8 [N, 64, 64, 3] in the order of `files`, and one sha256 over
        the names and contents of all the files.

    Raises:
        DataError: a file is no image or cut off; see `image_folder.decode`.
    """
    paths = [os.path.join(folder, file) for file in files.values()]
    # Its digest: spelled out, the key of all of CelebA would be 14 MB.
    key = key_of_files(paths, side=SIDE, version=_VERSION)
    together = image_folder.digest_of(files.values(), checksums(key))
    arrays = cached(
        "celeba",
        os.path.dirname(folder),
        hashlib.sha256(key.encode()).hexdigest(),
        lambda: _decode(paths),
        cache_dir,
        form=image_folder.form(len(paths), SIDE),
        check=lambda found: image_folder.check(folder, found, together),
    )
    return arrays["x"], together


def _decode(paths: list[str]) -> Arrays:
    x = np.zeros((len(paths), SIDE, SIDE, 3), np.uint8)
    digests = []
    progress = tqdm.tqdm(paths, "CelebA, once", unit="image", delay=2, mininterval=1)
    for row, path in enumerate(progress):
        content, image = image_folder.decode(path)
        x[row] = to_pixels(image)
        digests.append(hashlib.sha256(content).hexdigest())
    names = map(os.path.basename, paths)
    return {"x": x, "source_sha256": np.array(image_folder.digest_of(names, digests))}
