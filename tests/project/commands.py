"""What the tests of this folder share: commands that are run, and what they write."""

import csv
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def python(*arguments, cwd=ROOT, **environment):
    """Runs Python to its end, which writes no bytecode; gives what it printed."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **environment},
    )


def rows(path):
    """The rows of a CSV as dictionaries."""
    with open(path, newline="") as file:
        return list(csv.DictReader(file))
