"""Makes a store of LEAF's JSON files, or of a folder of CSVs.

    python -m leaf_data.convert leaf/data/synthetic my_store
    python -m leaf_data.convert clinics my_store --label=outcome --test_fraction=0.2

Of LEAF's data sets those can be taken whose x are numbers of one shape: they become
float32. Texts and names of images are refused. Of CSVs, one for each client and named
after it, the column `--label` is y, whole numbers from 0; the others are x, float32.
"""

from __future__ import annotations

import argparse
import array
import csv
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import tqdm

from leaf_data.errors import DataError, one_line, reading
from leaf_data.formats import leaf_json, places
from leaf_data.store import Client, open_store, write_store

_LARGEST_CSV = 1 << 28  # Bytes, of one client.
_LONGEST_LINE = 1 << 20  # Characters: each column takes memory of its own.


def clients_of_leaf(folder: str) -> Iterator[Client]:
    """The users of LEAF's files in a folder, and their test examples if it has some."""
    by_number: dict[int, list[leaf_json.LeafFile]] = {}
    for file in leaf_json.find("LEAF", [folder]):
        by_number.setdefault(file.number, []).append(file)
    for files in by_number.values():
        if len(files) == 1 and files[0].part != "all":
            other = "test" if files[0].part == "train" else "train"
            raise DataError(f"{files[0].path} has no {other} file of its number")
        found, digests = zip(*(leaf_json.read(file.path, _arrays) for file in files))
        leaf_json.check_apart(files, digests)
        if len({frozenset(users) for users in found}) > 1:
            raise DataError(f"{files[0].path} and {files[1].path} have other users")
        for user in found[0]:
            yield (user, *(array for users in found for array in users[user]))


def clients_of_csvs(folder: str, label: str) -> Iterator[Client]:
    """The clients of the CSVs in a folder."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    packed = [name for name in names if ".csv." in name.lower()]
    if packed:
        raise DataError(f"{os.path.join(folder, packed[0])} has to be unpacked first")
    names = [name for name in names if name.lower().endswith(".csv")]
    columns: list[str] = []
    for name in names:
        path = os.path.join(folder, name)
        with reading(path, "cannot be read as CSV", ValueError, csv.Error):
            content = io.BytesIO(places.read(path, _LARGEST_CSV))
            text = io.TextIOWrapper(content, "utf-8-sig", newline="")
            rows = csv.reader(_lines(text), strict=True)
            header = next(rows, [])
            columns = columns or header
            if header != columns:
                raise ValueError(f"it has other columns than {names[0]}")
            if columns.count(label) != 1 or len(columns) == 1:
                raise ValueError(f"it has to have {label} once, and others: {columns}")
            numbers = array.array("d")  # A list of rows takes a hundred times the file.
            for place, row in enumerate(rows, start=1):
                if len(row) != len(columns):
                    raise ValueError(
                        f"row {place} has {len(row)} fields, not {len(columns)}"
                    )
                try:
                    numbers.extend(map(float, row))
                except ValueError as error:
                    raise ValueError(
                        f"{error} in row {place}: {label} has to be whole numbers from "
                        "0, and the others numbers"
                    ) from error
            table = np.array(numbers).reshape(-1, len(columns))
            place = columns.index(label)
            x = _float32(np.delete(table, place, axis=1))
            with np.errstate(invalid="ignore"):
                labels = table[:, place].astype(np.int32)
            if (labels != table[:, place]).any():
                raise ValueError(f"{label} has to be whole numbers")
        yield name[: -len(".csv")], x, labels


def _lines(text: io.TextIOBase) -> Iterator[str]:
    while line := text.readline(_LONGEST_LINE):
        if len(line) == _LONGEST_LINE:
            raise ValueError(f"a line has {_LONGEST_LINE:,} characters or more")
        yield line


def _arrays(x: list[Any], y: list[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    try:
        read, labels = np.array(x), np.array(y)
        if read.dtype.kind not in "iuf":
            raise ValueError(f"they are {read.dtype}")
        return _float32(read), labels
    except ValueError as error:
        raise DataError("its examples are not float32 numbers of one shape") from error


def _float32(numbers: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        found = numbers.astype(np.float32)
    if not np.isfinite(found).all():
        raise ValueError("a number is no float32")
    return found


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Carries out the command; returns the exit code."""
    words = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("python -m leaf_data.convert", description=words)
    parser.add_argument("folder", help="LEAF's JSON files, or CSVs")
    parser.add_argument("store", help="the folder that is made")
    parser.add_argument("--label", default="", help="of CSVs: the column of the labels")
    parser.add_argument(
        "--test_fraction",
        type=float,
        default=0.0,
        help="of each client's examples, to test on; where LEAF's files have no others",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the test fraction")
    given = parser.parse_args(arguments)
    try:
        if given.label:
            clients = clients_of_csvs(given.folder, given.label)
        else:
            clients = clients_of_leaf(given.folder)
        shown = tqdm.tqdm(clients, "clients", unit="client", mininterval=1)
        options = {"test_fraction": given.test_fraction, "seed": given.seed}
        write_store(shown, given.store, **options)
        print(open_store(given.store).describe())
    except (DataError, OSError) as error:
        print(f"{parser.prog}: {one_line(error, 900)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted, and nothing was made", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    # As with Ctrl-C, nothing is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
