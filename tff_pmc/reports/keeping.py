"""Keeps the tables, records and plots of runs in a folder of a repository.

    python -m tff_pmc.reports.keeping runs/pmc_table4 results/reproduced/pmc_table4

What is kept are `run.json`, CSVs, pages and plots, and no checkpoints, states and
predictions. A record of more than 16 KiB, which the `clients.csv` of a long run is, is
kept packed, as `clients.csv.gz`; all readers take it so. `kept` reads what is kept.
"""

from __future__ import annotations

import gzip
import os
import sys

from tff_pmc.record.plain_files import open_plain
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.schema import PACKED
from tff_pmc.reports.kept import is_record, kept_runs

LARGEST_PLAIN = 1 << 14
"""The size of the largest record that is kept as it is, bytes."""

_KEPT = (".csv", ".md", ".png", PACKED)
_NOT_KEPT = ("checkpoints", "predictions")


def keep(folder: str, destination: str) -> int:
    """Copies what is worth keeping of a folder of runs; returns the bytes written."""
    if not kept_runs(folder):
        raise RecordError(f"{folder} holds no run")
    if os.path.lexists(destination):
        raise RecordError(f"{destination} is there already: name a new folder")
    size = 0
    for path, _, names in list(os.walk(folder)):
        part = os.path.relpath(path, folder)
        if set(part.split(os.sep)) & set(_NOT_KEPT):
            continue
        own = os.path.normpath(os.path.join(destination, part))
        for name in sorted(names):
            if name == "run.json" or name.endswith(_KEPT):
                os.makedirs(own, exist_ok=True)
                size += _copy(os.path.join(path, name), os.path.join(own, name))
    return size


def _copy(source: str, target: str) -> int:
    """Copies a file, packed where it is a large record; returns the bytes written."""
    # Tables, results.csv among them, stay readable and are remade under their names.
    name = os.path.basename(source)
    packable = name.endswith(".csv") and is_record(name)
    with open_plain(source) as file:
        content = file.read()
    if packable and len(content) > LARGEST_PLAIN:
        target += PACKED
        # Without name and time, so that equal records are equal files.
        content = gzip.compress(content, mtime=0)
    with open(target, "xb") as copy:
        copy.write(content)
    return os.path.getsize(target)


def main() -> None:
    """Keeps the folder that is named first in the one that is named second."""
    if len(sys.argv) != 3:
        sys.exit("python -m tff_pmc.reports.keeping FOLDER NEW_FOLDER")
    try:
        size = keep(*sys.argv[1:])
    except (RecordError, OSError) as error:
        print(f"keeping: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"{sys.argv[2]}: {size:,} bytes")


if __name__ == "__main__":
    main()
