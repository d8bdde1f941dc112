"""A cache on disk of converted arrays, with a key, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, error_summary, raising_data_error
from leaf_data.formats import data_files, npy_folder
from leaf_data.formats.data_files import Folder, expand_path

Arrays = dict[str, npt.NDArray[Any]]
_VERSION = 2  # Part of every key: the version of the conversions.
_SHA256 = "source_sha256"
_LOG = logging.getLogger(__name__)


def load_or_make(
    name: str,
    folder: str,
    paths: Sequence[str],
    make: Callable[[], Arrays],
    cache_dir: Folder | None,
    **parameters: Any,
) -> tuple[Arrays, list[str]]:
    """Returns the arrays that `make` builds from these files, and the files' sha256s.

    Files of the same names, sizes and times are the same; `more` is what else the
    arrays depend on. The cache is in `cache_dir`, by default in `folder`'s subfolder
    `NAME_cache`, or where that cannot be written below `$XDG_CACHE_HOME` (`~/.cache`).
    """
    key, path = _key(paths, parameters), _place(name, folder, cache_dir)
    if os.path.exists(path):
        try:
            arrays, header = npy_folder.open_folder(path)
            if header.get("key") == key:
                return arrays, arrays.pop(_SHA256).astype(str).tolist()
        except (DataError, KeyError) as error:
            _LOG.warning(
                "%s: the cache is damaged (%s) and is rebuilt",
                path,
                error_summary(error),
            )
    arrays = make()
    digests = [data_files.sha256(source) for source in paths]
    if _key(paths, parameters) != key:
        raise DataError(f"{folder}: its files changed while they were read: load again")
    try:
        with npy_folder.Writer(path, replace=True) as writer:
            for array, rows in {**arrays, _SHA256: np.array(digests, "S")}.items():
                writer.append(array, rows)
            writer.finish({"key": key})
    except (OSError, DataError) as error:
        _LOG.warning(
            "%s: the cache cannot be written (%s): the next load converts the data "
            "again",
            path,
            error_summary(error),
        )
    return arrays, digests


def _key(paths: Sequence[str], parameters: Any) -> str:
    files = []
    for path in paths:
        with raising_data_error(path):
            status = os.stat(path)
        # Of data unpacked with its times, only the last cannot be set.
        times = status.st_mtime_ns, status.st_ctime_ns
        files.append([*path.split(os.sep)[-2:], status.st_size, *times])
    key = json.dumps(
        {"files": files, "version": _VERSION, **parameters}, sort_keys=True
    )
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def _place(name: str, folder: str, cache_dir: Folder | None) -> str:
    real = os.path.realpath(folder).encode(errors="surrogateescape")
    shared = os.path.join(f"{name}_cache", hashlib.sha256(real).hexdigest()[:16])
    if cache_dir is not None:
        path = os.path.join(expand_path(cache_dir), shared)
        with raising_data_error(f"{name}: cache_dir {cache_dir}", "is not writable"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        return path
    with_data = os.path.join(folder, f"{name}_cache", name)
    if os.path.exists(with_data) or os.access(folder, os.W_OK | os.X_OK):
        return with_data
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    _LOG.warning("%s: %s is not writable: the cache is in %s", name, folder, home)
    return os.path.join(home, "tff_pmc", shared)
