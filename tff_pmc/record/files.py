"""Files of a run's folder: atomic writes, the lock, and `run.json`."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from leaf_data.errors import error_summary
from tff_pmc.record.record_error import (
    FolderInUseError,
    RecordError,
    RecordMissingError,
)

RUN_JSON = "run.json"
"""The file that describes a run, or the runs of a folder."""

FORMAT = 4
"""The version of the format of a run's folder; only equal versions can be resumed."""

RUNNING, FINISHED, INTERRUPTED = "running", "finished", "interrupted"
"""The status of a run: finished after its last round, or when a callback ended it;
interrupted by an error or a signal. A run that was killed stays running."""

LOCK = ".lock"
"""The file whose lock gives a folder to one process."""

_NEW = ".new"  # The suffix of a file before it replaces the old one.


def read_run_json(folder: str) -> dict[str, Any]:
    """Returns the content of a folder's `run.json`; empty if there is none."""
    return read_json(os.path.join(folder, RUN_JSON), missing={})


def read_json(
    path: str, keys: Sequence[str] = (), missing: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Reads a JSON object from a file.

    Args:
        path: the file.
        keys: the keys that the object must have.
        missing: what to return if the file does not exist; by default an error is
            raised.

    Raises:
        RecordError: the file is missing (then a `RecordMissingError`), is not a JSON
            object, or does not have a key; one line names it.
    """
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except FileNotFoundError as error:
        if missing is not None:
            return dict(missing)
        raise RecordMissingError(f"{path} is missing") from error
    except (OSError, ValueError, RecursionError) as error:
        raise RecordError(f"{path} cannot be read: {error_summary(error)}") from error
    if not isinstance(content, dict):
        raise RecordError(f"{path} must be a JSON object")
    for key in keys:
        if key not in content:
            raise RecordError(f"{path} has no {key!r}")
    return content


def write_json(folder: str, content: Mapping[str, Any]) -> None:
    """Writes the `run.json` of a folder atomically."""
    text = json.dumps({"format": FORMAT, **content}, indent=2)
    with atomic_write(os.path.join(folder, RUN_JSON)) as file:
        file.write(f"{text}\n".encode())


def flatten_groups(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of all groups in one dict, by flag."""
    if not isinstance(settings, Mapping):
        raise RecordError("the settings in run.json must be a JSON object")
    values_by_flag: dict[str, Any] = {}
    for name, value in settings.items():
        values_by_flag.update(value if isinstance(value, Mapping) else {name: value})
    return values_by_flag


def lists_to_tuples(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings with tuples instead of lists, so that they can be compared."""

    def plain(value: Any) -> Any:
        return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value

    return {name: plain(value) for name, value in settings.items()}


@contextlib.contextmanager
def atomic_write(path: str) -> Iterator[BinaryIO]:
    """Writes a file atomically: it replaces the old one only if the block succeeds.

    The content is on disk before that. A block that fails leaves no new file.
    """
    new = path + _NEW
    try:
        with naming_file(path):
            # Not `with`: an archive that NumPy writes, and that a signal has ended,
            # writes its end when its last reference goes. A file that is closed by
            # then would print an ignored "ValueError: seek of closed file".
            file = open(new, "wb")
            yield file
            file.flush()
            os.fsync(file.fileno())
            file.close()
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


@contextlib.contextmanager
def naming_file(path: str) -> Iterator[None]:
    """Makes errors of a file name it, also those of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = path
        raise


def make_empty_folder(path: str, or_else: str = "") -> None:
    """Makes a folder for results; raises a `RecordError` if it is not empty.

    The lock, and unfinished files of a killed run, may be in it.
    """
    for name in sorted(list_folder(path)):
        if name != LOCK and not name.endswith(_NEW):
            raise RecordError(
                f"{path}: the folder is not empty (it contains {name}); results are "
                f"never overwritten: choose another folder{or_else}"
            )


def make_new_folder(path: str) -> str:
    """Makes a folder that did not exist; returns its path.

    It is `path`, or if that exists `path-2`, `path-3` and so on.
    """
    number = 1
    while True:
        new = path if number == 1 else f"{path}-{number}"
        list_folder(os.path.dirname(path) or ".")
        try:
            os.mkdir(new)  # Atomic: it fails if the folder exists.
            return new
        except FileExistsError:
            number += 1
        except FileNotFoundError:  # Another process has removed the parent again.
            continue
        except OSError as error:
            raise RecordError(f"{new}: {error.strerror}") from error


def remove_if_empty(path: str) -> None:
    """Removes an empty folder, and its parents that are empty then."""
    with contextlib.suppress(OSError):
        os.removedirs(path)


def list_folder(path: str, attempts: int = 10) -> list[str]:
    """Returns the names in a folder, which it creates if it does not exist."""
    try:
        os.makedirs(path, exist_ok=True)
        return os.listdir(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and attempts > 1:
            # Another process has removed an empty parent in between.
            return list_folder(path, attempts - 1)
        raise RecordError(f"{path}: {error.strerror}") from error


@contextlib.contextmanager
def lock_folder(path: str) -> Iterator[int]:
    """Locks a folder for this process; yields the descriptor of its lock."""
    try:
        descriptor = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise RecordError(f"{path}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FolderInUseError(
                f"{path} is in use: another run writes into it: choose another folder"
            ) from error
        yield descriptor
    finally:
        os.close(descriptor)
