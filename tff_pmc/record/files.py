"""The files of a run folder: locked, written in one step, swept of what is left over.

A folder to go on with may come from anybody: no link in it is followed.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Optional

from tff_pmc.record import run_json
from tff_pmc.record.record_error import InUseError, RecordError

WITHIN = ("checkpoints", "predictions")
"""The folders within a run's."""

LOCK = ".lock"
"""The file by which a folder belongs to one process."""

_NEW = ".new"
# What a killed run may leave of a file; what else is there is its owner's.
_LEFT = re.compile(
    r"(run\.json|labels\.npz|round_[0-9]+\.(npz|state)|[0-9a-f]{32})\.new"
)


_TEMPORARY_BYTES = 1 << 20


def check_temporary_room() -> None:
    """Raises an `OSError` without room for temporary files.

    The import of TensorFlow needs a folder for them, and its tracing writes code there.
    """
    place = tempfile.gettempdir()
    if shutil.disk_usage(place).free < _TEMPORARY_BYTES:
        raise OSError(f"{place}: less than 1 MB is left for temporary files")


def read_json(path: str) -> Optional[dict[str, Any]]:
    """Reads a run folder's `run.json`; returns None when there is none."""
    try:
        return run_json.read(path)
    except FileNotFoundError:
        return None


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Writes a folder's `run.json` in one step; what none could read is refused."""
    text = json.dumps({"format": run_json.FORMAT, **content}, indent=2)
    name, written = os.path.join(path, "run.json"), f"{text}\n".encode()
    run_json.parse(name, written)
    with replacing(name) as file:
        file.write(written)


@contextlib.contextmanager
def replacing(path: str) -> Iterator[BinaryIO]:
    """A new file that takes the place of another when the block has ended well.

    It is on the disk before it does. A link in its place is replaced, not followed.
    """
    new = path + _NEW
    with contextlib.suppress(FileNotFoundError):
        os.unlink(new)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = open(os.open(new, flags, 0o666), "wb")
    try:
        with naming(path), file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(new)
        raise


@contextlib.contextmanager
def naming(path: str) -> Iterator[None]:
    """Makes errors of a file, such as those of a full disk, say which it is."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = path
        raise


def open_to_append(path: str) -> BinaryIO:
    """Opens a file to be appended to, or makes it; a link is refused."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return open(os.open(path, flags, 0o666), "ab")


def make_empty_folder(path: str, or_else: str = "") -> None:
    """Makes a folder to write results into; one with something in it is refused."""
    # A lock, or a file that a killed run had not yet put in its place.
    entries = [
        name for name in list_folder(path) if name != LOCK and not _LEFT.fullmatch(name)
    ]
    if entries:
        raise RecordError(
            f"--output_dir={path} is not empty (it holds {sorted(entries)[0]}); "
            f"results are never overwritten: name another folder{or_else}"
        )


def list_folder(path: str) -> list[str]:
    """Lists a folder's entries; the folder is made when it is not there."""
    try:
        os.makedirs(path, exist_ok=True)
        return os.listdir(path)
    except OSError as error:
        raise RecordError(f"--output_dir={path}: {error.strerror}") from error


def put_all(made: str, path: str) -> None:
    """Puts the files under a folder in their places under a new one, each in one step.

    One that is not empty is a `RecordError`.
    """
    make_empty_folder(path)
    for folder, _, names in os.walk(made):
        goal = os.path.normpath(os.path.join(path, os.path.relpath(folder, made)))
        os.makedirs(goal, exist_ok=True)
        for name in names:
            with open(os.path.join(folder, name), "rb") as source:
                with replacing(os.path.join(goal, name)) as file:
                    file.write(source.read())


def take_lock(path: str) -> int:
    """Takes a folder for this process, until the descriptor is closed or it ends."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(os.path.join(path, LOCK), flags, 0o666)
    except OSError as error:
        raise RecordError(f"--output_dir={path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise InUseError(
            f"--output_dir={path} is in use: another run writes into it"
        ) from error
    return descriptor


def check_plain(path: str) -> None:
    """Refuses a folder to write into in which anything is no file and no folder.

    What is written would be somewhere else.
    """
    for folder, folders, names in os.walk(path):
        for name in sorted([*folders, *names]):
            place = os.path.join(folder, name)
            plain = os.path.isfile(place) or os.path.isdir(place)
            if (os.path.islink(place) or not plain) and not _LEFT.fullmatch(name):
                raise RecordError(
                    f"{place} is a link or a device, and no link is followed: put "
                    "the file in its place"
                )


def sweep(path: str) -> None:
    """Removes what a killed run had not put in its place yet."""
    for own in ("", *WITHIN):
        folder = os.path.join(path, own)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if _LEFT.fullmatch(name):
                os.unlink(os.path.join(folder, name))


def cut(path: str, size: int) -> None:
    """Cuts a file to so many bytes; a link is refused."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.ftruncate(descriptor, size)
    finally:
        os.close(descriptor)


def remove_after(folder: str, round_num: int) -> None:
    """Removes a folder's files `round_NNNN.npz` of later rounds, if it is there."""
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        number = re.fullmatch(r"round_([0-9]+)\.npz", name)
        if number and (len(number[1]) > 9 or int(number[1]) > round_num):
            os.remove(os.path.join(folder, name))
