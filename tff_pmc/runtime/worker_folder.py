"""The folder of a worker's socket and log, in the temporary directory.

A worker's parent removes it, or else its host, when the parent is gone. Only when both
are killed at once does it stay; the next worker of the same user removes it. A lock
tells which folders are in use: parent and host hold it as long as they live.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import tempfile

_PREFIX = "tff_worker-"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


def make() -> tuple[str, int]:
    """Makes a folder that only the user can open, and removes those left behind.

    Returns the folder, and the file descriptor that holds its lock; whoever closes it
    last (a process it was passed to has it, too) gives the folder free.
    """
    place = _short_tempdir()
    _sweep(place)
    while True:
        folder = tempfile.mkdtemp(prefix=_PREFIX, dir=place)
        # Another start may take a folder without a lock for one left behind.
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, _DIRECTORY)
            # Without locks in this file system nobody sweeps here, either.
            with contextlib.suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            if os.path.isdir(folder):
                return folder, descriptor
            os.close(descriptor)


def _sweep(place: str) -> None:
    """Removes the user's own folders that nobody holds."""
    try:
        names = os.listdir(place)
    except OSError:
        return
    for name in names:
        if not name.startswith(_PREFIX):
            continue
        folder = os.path.join(place, name)
        try:
            descriptor = os.open(folder, _DIRECTORY)
        except OSError:  # Somebody else's, a link, or just gone.
            continue
        try:
            if os.fstat(descriptor).st_uid == os.geteuid():
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            pass  # It is in use.
        finally:
            os.close(descriptor)


def _short_tempdir() -> str:
    """A unix socket's path has at most 107 characters, and gRPC reads it as a URI."""
    folder = tempfile.gettempdir()
    return folder if re.fullmatch(r"[\w./-]{1,70}", folder, re.ASCII) else "/tmp"
