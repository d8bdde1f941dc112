"""Images that are in a folder for each class: listed, decoded, kept in a cache."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tqdm
from PIL import Image, UnidentifiedImageError

from leaf_data.errors import DataError
from leaf_data.formats.cache import Arrays, cached, key_of_files
from leaf_data.formats.places import Folder

_SUFFIXES = (".jpg", ".jpeg", ".png")
# Part of the key: a cache that another version of the conversion made is not used.
_VERSION = 1


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """The images of some folders, one folder after the other.

    Attributes:
        x: uint8 [N, side, side, 3], RGB.
        folder: int64 [N], the index of each image's folder among those read.
        files: the N file names, sorted within each folder.
        sha256: one checksum over the names and contents of all the files.
    """

    x: npt.NDArray[np.uint8]
    folder: npt.NDArray[Any]
    files: tuple[str, ...]
    sha256: str


def read(
    name: str,
    root: str,
    folders: Sequence[str],
    side: int,
    *,
    resize: bool,
    cache_dir: Folder | None = None,
) -> Images:
    """Reads all .jpg and .png images, decoded the first time, from a cache later.

    Args:
        name: the name of the data set, and so of the cache (see `cache.cached`).
        root: the folder that holds the folders; the cache is kept beside them.
        folders: the folders' paths below `root`.
        side: the width and height of the images, in pixels.
        resize: whether images of another size are resized, the whole of each, by
            Pillow's BICUBIC filter, which averages when it shrinks; or refused.
        cache_dir: the folder in which to keep the cache instead.

    Returns:
        The images.

    Raises:
        DataError: a folder is missing or has no image, or a file is no image, is
            corrupt or of another size; the message names it.
    """
    files = [find(os.path.join(root, folder)) for folder in folders]
    paths = [
        os.path.join(root, folder, file)
        for folder, some in zip(folders, files)
        for file in some
    ]
    sizes = [len(some) for some in files]
    key = key_of_files(
        paths,
        folders=list(zip(folders, sizes)),
        side=side,
        resize=resize,
        version=_VERSION,
    )
    arrays = cached(
        name,
        root,
        # Its digest: spelled out, the key of many files is megabytes.
        hashlib.sha256(key.encode()).hexdigest(),
        lambda: _decode(name, root, paths, side, resize),
        cache_dir,
    )
    return Images(
        x=arrays["x"],
        folder=np.repeat(np.arange(len(folders)), sizes),
        files=tuple(file for some in files for file in some),
        sha256=str(arrays["source_sha256"]),
    )


def find(folder: str) -> list[str]:
    """Returns the names of a folder's images, sorted.

    Raises:
        DataError: the folder cannot be read, or holds none.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise DataError(f"{folder}: cannot be read ({error.strerror})") from error
    images = [
        name
        for name in names
        if name.lower().endswith(_SUFFIXES) and not name.startswith(".")
    ]
    if not images:
        raise DataError(f"{folder}: holds no .jpg or .png image")
    return images


def decode(path: str) -> tuple[bytes, Image.Image]:
    """Returns a file's bytes, and the image in them, RGB.

    What Pillow decodes without an error counts as whole: it refuses a file that is cut
    off, not every byte that was changed.

    Raises:
        DataError: the file cannot be read, is no image or is cut off; the message
            names it.
    """
    try:
        with open(path, "rb") as file:
            content = file.read()
        with Image.open(io.BytesIO(content)) as image:
            return content, image.convert("RGB")
    except UnidentifiedImageError as error:
        raise DataError(f"{path}: cannot be decoded (it is no image)") from error
    except Exception as error:  # Damaged images make Pillow raise many kinds.
        reason = getattr(error, "strerror", None) or " ".join(str(error).split())
        reason = reason or type(error).__name__
        raise DataError(f"{path}: cannot be decoded ({reason})") from error


def _decode(
    name: str, root: str, paths: Sequence[str], side: int, resize: bool
) -> Arrays:
    x = np.zeros((len(paths), side, side, 3), np.uint8)
    digest = hashlib.sha256()
    progress = tqdm.tqdm(paths, f"{name}, once", unit="image", delay=2, mininterval=1)
    for row, path in enumerate(progress):
        content, pixels = decode(path)
        if pixels.size != (side, side):
            if not resize:
                raise DataError(
                    f"{path}: is {pixels.width} x {pixels.height}, not {side} x {side}"
                )
            pixels = pixels.resize((side, side), Image.Resampling.BICUBIC)
        x[row] = np.asarray(pixels, np.uint8)
        below = os.path.relpath(path, root).replace(os.sep, "/")
        digest.update(f"{below} {hashlib.sha256(content).hexdigest()}\n".encode())
    return {"x": x, "source_sha256": np.array(digest.hexdigest())}
