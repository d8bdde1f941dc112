"""Arrays that took long to make, kept on disk beside what they were made from.

A cache is one uncompressed `.npz` file, with the arrays the key it was made under and a
sha256 of them all. It is only ever replaced whole.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError
from leaf_data.formats.places import Folder

Arrays = dict[str, npt.NDArray[Any]]
"""Arrays by name."""

_KEY, _CHECKSUM = "key", "sha256"
_LOG = logging.getLogger(__name__)


def cached(
    name: str,
    folder: str,
    key: str,
    make: Callable[[], Arrays],
    cache_dir: Folder | None = None,
) -> Arrays:
    """Returns the arrays that `make` returned when it was last called with this key.

    The cache is in `folder`'s subfolder `NAME_cache`. Where that cannot be written it
    is in `$XDG_CACHE_HOME/tff_pmc/NAME_cache` (by default `~/.cache/...`), which is
    logged. A cache that was made under another key, or is damaged or half written, is
    made anew; one that cannot be written is a warning, and the arrays are returned all
    the same.

    Args:
        name: a word for the arrays, in the names of files and in messages.
        folder: the folder of what they are made from; several folders can share one
            `cache_dir`.
        key: a text that changes whenever the arrays would, see `key_of_files`.
        make: makes the arrays; none may be of objects, or be called "key" or
            "sha256".
        cache_dir: the folder in which to keep the cache, in `NAME_cache`, instead.

    Returns:
        The arrays by name.

    Raises:
        DataError: `cache_dir` cannot be written; or what `make` raises.
    """
    paths = _places(name, folder, cache_dir)
    for path in paths:
        arrays = _load(path, key)
        if arrays is not None:
            return arrays
    arrays = make()
    writable = [path for path in paths if _writable(os.path.dirname(path))]
    if writable != paths:
        where = f"the cache is {writable[0]}" if writable else "no cache is kept"
        _LOG.warning("%s: %s is not writable, %s", name, folder, where)
    if writable:
        _save(writable[0], key, arrays)
    return arrays


def key_of_files(paths: Iterable[str], **more: Any) -> str:
    """Returns a key: the files' names, sizes and times of change, and more.

    Args:
        paths: the files that the arrays are made from.
        **more: all else that the arrays depend on; values that JSON can hold.

    Raises:
        DataError: a file cannot be read.
    """
    files = []
    for path in paths:
        try:
            status = os.stat(path)
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error})") from error
        parent, base = os.path.split(path)
        files.append(
            [os.path.basename(parent), base, status.st_size, status.st_mtime_ns]
        )
    return json.dumps({"files": files, **more}, sort_keys=True)


def _places(name: str, folder: str, cache_dir: Folder | None) -> list[str]:
    """Returns the paths where the cache may be, the best first."""
    sub = f"{name}_cache"
    # A folder that is shared needs a file for each folder of data.
    shared = hashlib.sha256(os.path.realpath(folder).encode()).hexdigest()[:16] + ".npz"
    if cache_dir is not None:
        own = os.path.join(os.path.expanduser(os.fspath(cache_dir)), sub)
        if not _writable(own):
            raise DataError(f"{name}: cache_dir {os.fspath(cache_dir)} is not writable")
        return [os.path.join(own, shared)]
    beside = os.path.join(folder, sub)
    path = os.path.join(beside, f"{name}.npz")
    if _writable(beside):
        return [path]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [path, os.path.join(home, "tff_pmc", sub, shared)]


def _writable(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _load(path: str, key: str) -> Arrays | None:
    try:
        with np.load(path, allow_pickle=False) as file:
            if str(file[_KEY]) != key:
                _LOG.info("%s: made from other data, is made anew", path)
                return None
            names = [name for name in file.files if name not in (_KEY, _CHECKSUM)]
            arrays = {name: file[name] for name in names}
            # The CRCs of the format, checked by now, do not tell of an array that a
            # damaged table of contents leaves out.
            if str(file[_CHECKSUM]) != _checksum(arrays):
                raise ValueError("wrong checksum")
            return arrays
    except FileNotFoundError:
        return None
    except Exception as error:  # Damaged files make numpy raise nearly anything.
        reason = " ".join(str(error).split())
        _LOG.warning("%s: damaged (%s), is made anew", path, reason)
        return None


def _save(path: str, key: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    # A name of its own: two processes may be at it at once.
    partial = f"{path}.{uuid.uuid4().hex}.partial"
    try:
        with open(partial, "wb") as file:
            own = {_KEY: np.array(key), _CHECKSUM: np.array(_checksum(arrays))}
            np.savez(file, **own, **arrays)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        _LOG.warning("%s: cannot be written (%s), no cache is kept", path, error)
    finally:
        if os.path.exists(partial):
            os.remove(partial)


def _checksum(arrays: Mapping[str, npt.NDArray[Any]]) -> str:
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()
