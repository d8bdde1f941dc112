"""Images that are in a folder for each class: listed, decoded, kept in a cache."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tqdm
from PIL import Image, UnidentifiedImageError

from leaf_data import client_names
from leaf_data.errors import DataError, one_line
from leaf_data.formats import regular
from leaf_data.formats.cache import Arrays, Form, cached, checksums, key_of_files
from leaf_data.formats.places import Folder

_SUFFIXES = (".jpg", ".jpeg", ".png")
# Whatever a file's name ends in, Pillow would otherwise decode what it finds in it by
# any of its decoders, one of which runs Ghostscript.
_FORMATS = ("JPEG", "PNG")
# A picture in memory has four bytes a pixel, and is there twice while it is converted.
_MAX_BYTES, _MAX_PIXELS = 1 << 28, 1 << 25
# JPEG decodes all pixels again in every scan; a large picture has ten, a small one can
# have more.
_SCAN, _MAX_SCANNED = b"\xff\xda", 20 * _MAX_PIXELS
# Part of the key: a cache that another version of the conversion made is not used.
_VERSION = 1


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """The images of some folders, one folder after the other.

    Attributes:
        x: uint8 [N, side, side, 3], RGB.
        folder: int64 [N], the index of each image's folder among those read.
        files: the N file names, sorted within each folder.
        sha256s: the N files' checksums.
        sha256: one checksum over the names and contents of all the files.
    """

    x: npt.NDArray[np.uint8]
    folder: npt.NDArray[Any]
    files: tuple[str, ...]
    sha256s: tuple[str, ...]
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
    digests = checksums(key)
    below = [os.path.relpath(path, root).replace(os.sep, "/") for path in paths]
    together = digest_of(below, digests)
    arrays = cached(
        name,
        root,
        # Its digest: spelled out, the key of many files is megabytes.
        hashlib.sha256(key.encode()).hexdigest(),
        lambda: _decode(name, root, paths, side, resize),
        cache_dir,
        form=form(len(paths), side),
        check=lambda found: check(root, found, together),
    )
    return Images(
        x=arrays["x"],
        folder=np.repeat(np.arange(len(folders)), sizes),
        files=tuple(file for some in files for file in some),
        sha256s=tuple(digests),
        sha256=together,
    )


def digest_of(names: Iterable[str], digests: Iterable[str]) -> str:
    """Returns one sha256 over files' names and checksums."""
    lines = (f"{name} {digest}\n" for name, digest in zip(names, digests))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def form(count: int, side: int) -> Form:
    """Returns the form of the arrays of decoded images, as `cache.cached` wants it."""
    return {"x": ("uint8", (count, side, side, 3)), "source_sha256": ("U", ())}


def check(folder: str, arrays: Arrays, sha256: str) -> None:
    """Refuses decoded images that are not of the files with this checksum.

    Raises:
        DataError: their checksum is another.
    """
    if str(arrays["source_sha256"]) != sha256:
        raise DataError(f"{folder}: its images changed while they were read")


def find(folder: str) -> list[str]:
    """Returns the names of a folder's images, sorted.

    Raises:
        DataError: the folder cannot be read or holds none, has two images whose names
            differ only in what they end in, or one whose name no record can hold.
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
    stems: dict[str, str] = {}
    for name in images:
        client_names.check(name, f"{folder}: the image")
        other = stems.setdefault(os.path.splitext(name)[0], name)
        if other != name:  # One picture in two forms would count twice.
            raise DataError(f"{folder}: holds both {other} and {name}")
    return images


def decode(path: str) -> tuple[bytes, Image.Image]:
    """Returns a file's bytes, and the image in them, RGB.

    What Pillow decodes without an error counts as whole: it refuses a file that is cut
    off, not every byte that was changed.

    Raises:
        DataError: the file cannot be read, is no JPEG or PNG, is cut off, or has more
            than 32 megapixels; the message names it.
    """
    try:
        content = regular.read(path, _MAX_BYTES)
        with Image.open(io.BytesIO(content), formats=_FORMATS) as image:
            pixels = image.width * image.height
            if pixels > _MAX_PIXELS:
                raise ValueError(f"it has {pixels:,} pixels, more than {_MAX_PIXELS:,}")
            if image.format != "PNG" and content.count(_SCAN) * pixels > _MAX_SCANNED:
                raise ValueError(f"it has {content.count(_SCAN)} scans")
            return content, image.convert("RGB")
    except UnidentifiedImageError as error:
        reason = "it is no JPEG or PNG image"
        raise DataError(f"{path}: cannot be decoded ({reason})") from error
    except Exception as error:  # Damaged images make Pillow raise many kinds.
        reason = getattr(error, "strerror", None) or one_line(error)
        raise DataError(f"{path}: cannot be decoded ({reason})") from error


def _decode(
    name: str, root: str, paths: Sequence[str], side: int, resize: bool
) -> Arrays:
    x = np.zeros((len(paths), side, side, 3), np.uint8)
    below, digests = [], []
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
        below.append(os.path.relpath(path, root).replace(os.sep, "/"))
        digests.append(hashlib.sha256(content).hexdigest())
    return {"x": x, "source_sha256": np.array(digest_of(below, digests))}
