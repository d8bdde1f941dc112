"""Arrays that took long to make, kept on disk beside what they were made from.

A cache is one uncompressed `.npz` file, with the arrays the key it was made under and a
sha256 of them all. It is only ever replaced whole. What is in it is believed no more
than other data: who reads one says which arrays there have to be, and checks them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, one_line, reading
from leaf_data.examples import Examples
from leaf_data.formats import npz, places
from leaf_data.formats.places import Folder

Arrays = dict[str, npt.NDArray[Any]]
"""Arrays by name."""

Form = Mapping[str, tuple[str, tuple[Union[int, str], ...]]]
"""The arrays there have to be: by name the type and the shape.

"U" are texts of any length. Words in a shape are sizes that are not known, and equal
wherever the word is.
"""

Fields = Mapping[str, tuple[tuple[int, ...], Any]]
"""The shape and type of one example's value in each field, by the field's name."""

# Part of every key: what another version of the conversions made is not used.
_VERSION = 1
_KEY, _CHECKSUM = "key", "sha256"
_LOG = logging.getLogger(__name__)


def cached(
    name: str,
    folder: str,
    key: str,
    make: Callable[[], Arrays],
    cache_dir: Folder | None,
    form: Form,
    check: Callable[[Arrays], None],
) -> Arrays:
    """Returns the arrays that `make` returned when it was last called with this key.

    They are of this form, and `check` raises what else is wrong with them.

    The cache is in `folder`'s subfolder `NAME_cache`. Where that cannot be written it
    is in `$XDG_CACHE_HOME/tff_pmc/NAME_cache` (by default `~/.cache/...`), which is
    logged. A cache that was made under another key, or is damaged or half written, is
    made anew; one that cannot be written is a warning, and the arrays are returned all
    the same.
    """
    paths = _places(name, folder, cache_dir)
    for path in paths:
        arrays = _load(path, key, form, check)
        if arrays is not None:
            return arrays
    arrays = make()
    check(arrays)
    writable = [path for path in paths if _writable(os.path.dirname(path))]
    if writable != paths:
        where = f"the cache is {writable[0]}" if writable else "no cache is kept"
        _LOG.warning("%s: %s is not writable, %s", name, folder, where)
    if writable:
        _save(writable[0], key, arrays)
    return arrays


def key_of_files(paths: Iterable[str], **more: Any) -> str:
    """Returns a key: the files' names, sizes, times and contents, and more."""
    files = []
    for path in paths:
        # Size and time alone are those of other data, too, when that is unpacked with
        # its times. So all is read, a gigabyte a second.
        digest = places.sha256(path)
        with reading(path):
            status = os.stat(path)
        names = path.split(os.sep)[-2:]
        files.append([*names, status.st_size, status.st_mtime_ns, digest])
    return json.dumps({"files": files, "version": _VERSION, **more}, sort_keys=True)


def checksums(key: str) -> list[str]:
    """Returns the sha256s of the files that `key_of_files` made a key of."""
    return [file[-1] for file in json.loads(key)["files"]]


def clients_form(parts: Sequence[str], fields: Fields) -> dict[str, Any]:
    """Returns the form of arrays of clients' examples, as `cached` wants it.

    They are `client_ids` [K] and, for each part ("train", "test" or "all"),
    `sizes_PART` int64 [K] and fields `FIELD_PART` [N, ...], the clients' examples one
    after the other.
    """
    made: dict[str, Any] = {"client_ids": ("U", ("K",))}
    for part in parts:
        made[f"sizes_{part}"] = ("int64", ("K",))
        for field, (shape, dtype) in fields.items():
            made[f"{field}_{part}"] = (np.dtype(dtype).name, (f"N_{part}", *shape))
    return made


def check_clients(arrays: Arrays, parts: Sequence[str], num_classes: int) -> None:
    """Refuses arrays of that form that no reader makes; `y_PART` are labels."""
    for part in parts:
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
    shared = hashlib.sha256(real).hexdigest()[:16] + ".npz"
    if cache_dir is not None:
        given = os.fspath(cache_dir)
        own = os.path.join(os.path.expanduser(given), sub)
        if not _writable(own):
            shown = given if given.isprintable() else ascii(given)
            raise DataError(f"{name}: cache_dir {shown} is not writable")
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
    except (OSError, ValueError):  # A NUL in the name.
        return False
    return os.access(folder, os.W_OK | os.X_OK)


def _load(
    path: str, key: str, form: Form, check: Callable[[Arrays], None]
) -> Arrays | None:
    try:
        with npz.opened(path, stored=True) as members:
            if str(members[_KEY].read()) != key:
                _LOG.info("%s: made from other data, is made anew", path)
                return None
            _check_form(members, {_KEY: ("U", ()), _CHECKSUM: ("U", ()), **form})
            arrays = {name: member.read() for name, member in members.items()}
        del arrays[_KEY]
        # The CRCs of the format, checked by now, do not tell of an array that a
        # damaged table of contents leaves out.
        if arrays.pop(_CHECKSUM) != _checksum(arrays):
            raise ValueError("wrong checksum")
        check(arrays)
        return arrays
    except FileNotFoundError:
        return None
    except Exception as error:  # Damaged files make numpy raise nearly anything.
        _LOG.warning("%s: damaged (%s), is made anew", path, one_line(error))
        return None


def _check_form(headers: Mapping[str, npz.Member], form: Form) -> None:
    if set(headers) != set(form):
        raise ValueError("it has other arrays")
    sizes: dict[str, int] = {}
    for name, (dtype, shape) in form.items():
        found = headers[name]
        known = [
            sizes.setdefault(size, here) if isinstance(size, str) else size
            for size, here in zip(shape, found.shape)
        ]
        right = found.dtype.kind == "U" if dtype == "U" else found.dtype == dtype
        if not right or len(shape) != len(found.shape) or known != list(found.shape):
            raise ValueError(f"{name} is of another type or shape")


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
