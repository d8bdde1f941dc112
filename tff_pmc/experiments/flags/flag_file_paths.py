"""Finding the flag files that come with the project, from any folder."""

from __future__ import annotations

import errno
import os

from leaf_data.declare import SettingError
from tff_pmc import project_files

FOLDER = "experiments"
"""The folder of the flag files that come with the project."""


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
        return name  # Whoever reads it says what is wrong with it.
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
