"""Images in folders: lists, decodes and caches them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tqdm
from PIL import Image, UnidentifiedImageError

from leaf_data.errors import DataError, check_name, raising_data_error
from leaf_data.formats.cache import load_or_make
from leaf_data.formats.data_files import Folder

_SUFFIXES = (".jpg", ".jpeg", ".png")
# Otherwise Pillow chooses a decoder by a file's content, not by its name, and one of
# its decoders runs Ghostscript.
_FORMATS = ("JPEG", "PNG")


def read(
    name: str,
    root: str,
    folders: Sequence[str],
    side: int,
    cache_dir: Folder | None,
    *,
    resize: bool,
) -> tuple[npt.NDArray[Any], str, npt.NDArray[Any]]:
    """Reads all images of folders below `root`, sorted by name within each folder.

    Returns the result of `load_images`, and the index of each image's folder.
    """
    files_by_folder = [
        list(find(os.path.join(root, folder)).values()) for folder in folders
    ]
    files = [
        f"{folder}/{file}"
        for folder, names in zip(folders, files_by_folder)
        for file in names
    ]
    x, sha256 = load_images(name, root, files, side, cache_dir, resize=resize)
    return (
        x,
        sha256,
        np.repeat(np.arange(len(folders)), [len(names) for names in files_by_folder]),
    )


def load_images(
    name: str,
    root: str,
    files: Sequence[str],
    side: int,
    cache_dir: Folder | None,
    *,
    resize: bool = True,
    cache_root: str = "",
) -> tuple[npt.NDArray[Any], str]:
    """Decodes images the first time, and reads them from a cache later.

    An image of another size is resized, or raises a `DataError` if `resize` is False.
    The cache is in `root`, or in the folder `cache_root`. Returns the images, uint8 [N,
    side, side, 3] RGB, and a sha256 over all names and contents.
    """
    paths = [os.path.join(root, file) for file in files]
    arrays, digests = load_or_make(
        name,
        cache_root or root,
        paths,
        lambda: {"x": _decode(name, root, files, side, resize)},
        cache_dir,
        side=side,
        resize=resize,
    )
    lines = (f"{name} {digest}\n" for name, digest in zip(files, digests))
    return arrays["x"], hashlib.sha256("".join(lines).encode()).hexdigest()


def find(folder: str) -> dict[str, str]:
    """Returns a folder's .jpg and .png images by their names without suffix, sorted."""
    with raising_data_error(folder):
        files = sorted(os.listdir(folder))
    files_by_stem: dict[str, str] = {}
    for file in files:
        stem, suffix = os.path.splitext(file)
        if suffix.lower() not in _SUFFIXES or stem.startswith("."):
            continue
        check_name(file, f"{folder}: the image")
        if stem in files_by_stem:  # Two forms of one picture would count twice.
            raise DataError(
                f"{folder}: holds both {files_by_stem[stem]} and {file}: keep one"
            )
        files_by_stem[stem] = file
    if not files_by_stem:
        raise DataError(f"{folder}: contains no .jpg or .png image")
    return files_by_stem


def decode(path: str) -> Image.Image:
    """Returns the image in a file, RGB."""
    # Damaged images make Pillow raise many kinds.
    with raising_data_error(path, "cannot be decoded", Exception):
        try:
            with Image.open(path, formats=_FORMATS) as image:
                rgb: Image.Image = image.convert("RGB")
                return rgb
        except UnidentifiedImageError as error:
            raise ValueError("it is not a JPEG or PNG image") from error


def resize_image(image: Image.Image, side: int) -> npt.NDArray[np.uint8]:
    """Resizes a whole RGB image to a square, by Pillow's BICUBIC filter.

    The filter is the default of `Image.resize` since Pillow 7, so the one of PMC's
    authors' code; it averages when it shrinks. A face becomes wider: CelebA's photos
    are 178 x 218.
    """
    small = image.resize((side, side), Image.Resampling.BICUBIC)
    return np.asarray(small, np.uint8)


def _decode(
    name: str, root: str, files: Sequence[str], side: int, resize: bool
) -> npt.NDArray[np.uint8]:
    x = np.zeros((len(files), side, side, 3), np.uint8)
    progress = tqdm.tqdm(files, f"{name}, once", unit="image", delay=2, mininterval=1)
    for row, file in enumerate(progress):
        path = os.path.join(root, file)
        image = decode(path)
        if not resize and image.size != (side, side):
            raise DataError(
                f"{path}: is {image.width} x {image.height}, not {side} x {side}"
            )
        x[row] = resize_image(image, side)
    return x
