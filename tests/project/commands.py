"""Helpers of this folder: running Python, and reading the tables it writes."""

import csv
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def python(*arguments, cwd=ROOT, **environment):
    """Runs Python without writing bytecode; returns the completed process."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )


def rows(path):
    """Returns the rows of a CSV as dictionaries."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
