"""Arrays that took long to make, kept on disk beside what they were made from.

A cache is a folder of arrays (`npy_folder`), which are mapped and not read, with a key:
the names, sizes and times of the files that they were made from, and with their
sha256s of then. It is only ever replaced whole. What is in it is believed no more than
other data: who reads one says which arrays there have to be, and checks them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, one_line, reading
from leaf_data.examples import Examples
from leaf_data.formats import data_files, npy_folder
from leaf_data.formats.data_files import Folder

Arrays = dict[str, npt.NDArray[Any]]
"""Arrays by name."""

Fields = Mapping[str, tuple[tuple[int, ...], Any]]
"""The shape and type of one example's value in each field, by the field's name."""

# Part of every key: what another version of the conversions made is not used.
_VERSION = 2
_SHA256 = "source_sha256"
_LOG = logging.getLogger(__name__)


def cached(
    name: str,
    folder: str,
    paths: Sequence[str],
    make: Callable[[], Arrays],
    cache_dir: Folder | None,
    check: Callable[[Arrays], None],
    **more: Any,
) -> tuple[Arrays, list[str]]:
    """Returns the arrays that `make` once made of these files, and the files' sha256s.

    `check` raises whatever is wrong with arrays, and `more` is what else they depend
    on. Files of the same names, sizes and times are taken for the same and not read
    again.

    The cache is in `folder`'s subfolder `NAME_cache`. Where that cannot be written it
    is in `$XDG_CACHE_HOME/tff_pmc/NAME_cache` (by default `~/.cache/...`), which is
    logged. A cache that was made under another key, or is damaged or half written, is
    made anew; one that cannot be written is a warning, and the arrays are returned all
    the same.
    """
    key, possible = _key(paths, more), _places(name, folder, cache_dir)
    for path in possible:
        found = _load(path, key, len(paths), check)
        if found is not None:
            return found
    arrays = make()
    check(arrays)
    digests = [data_files.sha256(path) for path in paths]
    if _key(paths, more) != key:
        raise DataError(f"{folder}: its files changed while they were read")
    writable = [path for path in possible if _writable(os.path.dirname(path))]
    if writable != possible:
        where = f"the cache is {writable[0]}" if writable else "no cache is kept"
        _LOG.warning("%s: %s is not writable, %s", name, folder, where)
    if writable:
        _save(writable[0], key, {**arrays, _SHA256: np.array(digests, "S")})
    return arrays, digests


def _key(paths: Sequence[str], more: Mapping[str, Any]) -> str:
    """The files' names, sizes and times, and more, as a digest."""
    files = []
    for path in paths:
        with reading(path):
            status = os.stat(path)
        # Unpacked with its times, other data could be of the same size and time; when
        # the file was last changed here cannot be set.
        times = status.st_mtime_ns, status.st_ctime_ns
        files.append([*path.split(os.sep)[-2:], status.st_size, *times])
    key = json.dumps({"files": files, "version": _VERSION, **more}, sort_keys=True)
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()


def check_clients(
    arrays: Arrays,
    parts: Sequence[str],
    fields: Fields,
    num_classes: int,
    more: Sequence[str] = (),
) -> None:
    """Refuses arrays of clients' examples that no reader makes.

    They are `client_ids` [K] and, for each part, `sizes_PART` int64 [K] and fields
    `FIELD_PART` [N, ...], the clients' examples one after the other; `y` are labels.
    What is there `more` is int64 [K].
    """
    names = {f"{name}_{part}" for part in parts for name in ("sizes", *fields)}
    if set(arrays) != {"client_ids", *names, *more}:
        raise DataError("it has other arrays")
    for name in more:
        found, ids = arrays[name], arrays["client_ids"]
        if found.dtype != np.int64 or found.shape != ids.shape:
            raise DataError(f"{name} is of another type or shape")
    for part in parts:
        for field, (shape, dtype) in {**fields, "sizes": ((), np.int64)}.items():
            found = arrays[f"{field}_{part}"]
            if found.dtype != dtype or found.shape[1:] != shape:
                raise DataError(f"{field}_{part} is of another type or shape")
        labels = clients_examples(arrays, part).y  # Which refuses what does not fit.
        if labels.max(initial=0) >= num_classes:
            raise DataError(f"a {part} label that is not below {num_classes}")


def clients_examples(arrays: Arrays, part: str) -> Examples:
    """Returns a part of such arrays as examples, without a copy."""
    end = f"_{part}"
    own = {k[: -len(end)]: array for k, array in arrays.items() if k.endswith(end)}
    return Examples(
        x=own.pop("x"),
        y=own.pop("y"),
        row_splits=np.cumsum([0, *own.pop("sizes")], dtype=np.int64),
        client_ids=tuple(arrays["client_ids"].tolist()),
        attributes=own,
    )


def _places(name: str, folder: str, cache_dir: Folder | None) -> list[str]:
    """Returns the paths where the cache may be, the best first."""
    sub = f"{name}_cache"
    # A folder that is shared needs a file for each folder of data.
    try:
        real = os.path.realpath(folder).encode(errors="surrogateescape")
    except ValueError as error:  # A NUL, or half a character.
        raise DataError(f"{name}: {ascii(folder)} cannot be a folder") from error
    shared = hashlib.sha256(real).hexdigest()[:16]
    if cache_dir is not None:
        given = os.fspath(cache_dir)
        own = os.path.join(os.path.expanduser(given), sub)
        if not _writable(own):
            shown = given if given.isprintable() else ascii(given)
            raise DataError(f"{name}: cache_dir {shown} is not writable")
        return [os.path.join(own, shared)]
    beside = os.path.join(folder, sub)
    path = os.path.join(beside, name)
    if _writable(beside):
        return [path]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return [path, os.path.join(home, "tff_pmc", sub, shared)]


def _writable(folder: str) -> bool:
    try:
        os.makedirs(folder, exist_ok=True)
    except (OSError, ValueError):  # A NUL in the name.
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _load(
    path: str, key: str, num_files: int, check: Callable[[Arrays], None]
) -> tuple[Arrays, list[str]] | None:
    if not os.path.lexists(path):
        return None
    try:
        arrays, header = npy_folder.open_folder(path)
        if header.get("key") != key:
            _LOG.info("%s: made from other data, is made anew", path)
            return None
        digests = arrays.pop(_SHA256)
        if digests.dtype.kind != "S" or digests.shape != (num_files,):
            raise DataError("it has other checksums")
        check(arrays)
        return arrays, digests.astype(str).tolist()
    except Exception as error:  # What is not text makes numpy raise its own.
        _LOG.warning("%s: damaged (%s), is made anew", path, one_line(error))
        return None


def _save(path: str, key: str, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    try:
        with npy_folder.Writer(path, replace=True) as writer:
            for name, array in arrays.items():
                writer.append(name, array)
            writer.finish({"key": key})
    except (OSError, DataError) as error:
        _LOG.warning("%s: cannot be written (%s), no cache is kept", path, error)
