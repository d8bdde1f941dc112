"""The folders of flag files and published tables, in a checkout and in a wheel.

They stand at the top of the checkout, where people look for them. `setup.py` copies
them into the package when it builds a wheel.
"""

from __future__ import annotations

import pathlib

_PACKAGE = pathlib.Path(__file__).resolve().parent
_IN_WHEEL = _PACKAGE / "_project"

FLAG_FILES = "experiments"
"""The folder of the flag files."""


def folder(name: str) -> pathlib.Path:
    """Returns a folder of the project that is not a Python package.

    Args:
        name: its path in the checkout, `experiments` or `results/paper`.

    Returns:
        The copy that an installed wheel has; in a checkout, which has no copy, the
        folder itself. It need not exist.
    """
    top = _IN_WHEEL if _IN_WHEEL.is_dir() else _PACKAGE.parent
    return top / name
