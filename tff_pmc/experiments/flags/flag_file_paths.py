"""Finding the flag files that come with the project, from any folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence

from leaf_data.settings import SettingError
from tff_pmc import project_files

FOLDER = "experiments"
"""The folder of the flag files that come with the project."""


def with_paths(arguments: Sequence[str]) -> list[str]:
    """Returns the arguments, each `--flagfile` with the path of its file.

    Args:
        arguments: those of a command line.

    Raises:
        SettingError: see `path_of`.
    """
    found = list(arguments)
    for place, argument in enumerate(found):
        if argument == "--":
            break
        flag, separator, name = argument.partition("=")
        if flag not in ("--flagfile", "-flagfile"):
            continue
        if separator:
            found[place] = f"{flag}={path_of(name)}"
        elif place + 1 < len(found):
            found[place + 1] = path_of(found[place + 1])
    return found


def path_of(name: str) -> str:
    """Returns the path of a flag file.

    Args:
        name: a path from the folder one is in, or the name of a file that comes with
            the project, as `pmc_table4.flags` or `experiments/pmc_table4.flags`. A
            file in the folder one is in comes first.

    Raises:
        SettingError: there is no such file; the message has the names there are.
    """
    if not name or os.path.exists(os.path.expanduser(name)):
        return name  # absl has its own words for what is no file.
    ours = project_files.folder(FOLDER)
    if os.path.dirname(name) in ("", FOLDER):
        path = ours / os.path.basename(name)
        if path.is_file():
            return str(path)
    names = ", ".join(sorted(path.name for path in ours.glob("*.flags")))
    raise SettingError(
        f"--flagfile={name}: {os.strerror(errno.ENOENT)}; the files that come with the "
        f"project are {names or 'not there'}"
    )
