"""Makes a store of LEAF's JSON files, or of a folder of CSVs.

    python -m leaf_data.convert leaf/data/synthetic my_store
    python -m leaf_data.convert clinics my_store --label=outcome --test_fraction=0.2

Of LEAF's data sets those can be taken whose x are numbers of one shape: they become
float32. Texts and names of images are refused. Of CSVs, one for each client and named
after it, or of a column of their names, `--client`, the column `--label` is y: whole
numbers from 0, or words, which become classes in sorted order, or with
`--label_type=number` the values of a regression. The others are x, float32.
"""

from __future__ import annotations

import argparse
import array
import csv
import io
import math
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import tqdm

from leaf_data.errors import DataError, one_line, reading
from leaf_data.formats import data_files, leaf_json
from leaf_data.store import Client, open_store, write_store

_EXACT = 1 << 24  # Up to it float32 holds every whole number.
_WHOLE = re.compile(r"[+-]?(\d+)(\.0*)?")
_NOT_HELD = (
    "a float32 would be {:.0f}; leaf_data.write_store takes ids as int32, and amounts "
    "can be scaled"
)


def clients_of_leaf(folder: str) -> Iterator[Client]:
    """Reads the users of LEAF's files in a folder, and their test examples if any."""
    by_number: dict[int, list[leaf_json.LeafFile]] = {}
    for file in leaf_json.find("LEAF", [folder]):
        by_number.setdefault(file.number, []).append(file)
    for files in by_number.values():
        if len(files) == 1 and files[0].part != "all":
            other = "test" if files[0].part == "train" else "train"
            raise DataError(f"{files[0].path} has no {other} file with the same number")
        found, digests = zip(*(leaf_json.read(file.path, _arrays) for file in files))
        leaf_json.check_apart(files, digests)
        if len({frozenset(users) for users in found}) > 1:
            raise DataError(
                f"{files[0].path} and {files[1].path} have different users: both need "
                "the same"
            )
        for user in found[0]:
            yield (user, *(array for users in found for array in users[user]))


def classes_of_csvs(folder: str, label: str) -> dict[str, int]:
    """Returns the class of each label in the CSVs of a folder, by the label's text.

    Whole numbers are classes themselves, and words become classes in sorted order. Of
    anything else, and of numbers among words, a `DataError` names file and line.
    """
    found: dict[str, str] = {}  # Where each label stands first.
    for _, where, row in _rows(folder, [label]):
        found.setdefault(row[label].strip(), where)
    numbers = {text: number for text in found if (number := _float(text)) is not None}
    for text, where in found.items():
        number = numbers.get(text, 0.5 if numbers or not text else 0.0)
        if not (number.is_integer() and 0 <= number < 2**31):
            raise DataError(
                f"{where}: {label} is {text!r:.40}: labels must be whole numbers, 0 "
                "or more, or words; --label_type=number takes the values of a "
                "regression"
            )
    if numbers:
        return {text: int(number) for text, number in numbers.items()}
    return {text: number for number, text in enumerate(sorted(found))}


def clients_of_csvs(
    folder: str, label: str, classes: Mapping[str, int], client: str = ""
) -> Iterator[Client]:
    """Yields the clients of the CSVs in a folder: a file each, or a name of a column.

    Args:
        folder: the folder.
        label: the column of the labels.
        classes: as `classes_of_csvs` returns them; empty for values of a regression.
        client: the column of the clients' names, which are all held in memory; by
            default a file is a client.

    Raises:
        DataError: a file is no such CSV; the message names file, line and column.
    """
    # A list of rows takes a hundred times the file.
    held: dict[str, tuple[array.array[float], array.array[Any]]] = {}
    for path, where, row in _rows(folder, [label, client] if client else [label]):
        text, key = row.pop(label).strip(), row.pop(client).strip() if client else path
        if not key:
            raise DataError(f"{where}: the column {client} is empty")
        if key not in held:
            if not client:
                yield from _examples(held)
                held.clear()
            held[key] = array.array("f"), array.array("q" if classes else "f")
        x, y = held[key]
        x.extend([_number(*field, where) for field in row.items()])
        y.append(classes[text] if classes else _number(label, text, where))
    yield from _examples(held, client)


def _examples(
    held: Mapping[str, tuple[Any, Any]], client: str = ""
) -> Iterator[Client]:
    for key, (x, y) in held.items():
        name = key if client else os.path.basename(key)[: -len(".csv")]
        yield name, np.array(x).reshape(len(y), -1), np.array(y)


def _rows(
    folder: str, needed: Sequence[str]
) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Yields the rows of the CSVs in a folder: the file, file and line, the fields."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    packed = [name for name in names if ".csv." in name.lower()]
    if packed:
        raise DataError(f"{os.path.join(folder, packed[0])} has to be unpacked first")
    names = [name for name in names if name.lower().endswith(".csv")]
    if not names:
        raise DataError(f"{folder}: has no CSV")
    columns: list[str] = []
    for name in names:
        path = os.path.join(folder, name)
        with reading(path, "cannot be read as CSV", UnicodeDecodeError, csv.Error):
            content = io.BytesIO(data_files.read(path))
            text = io.TextIOWrapper(content, "utf-8-sig", newline="")
            rows = csv.reader(text, strict=True)
            header = next(rows, [])
            columns = columns or header
            if header != columns:
                raise DataError(f"{path}: its columns differ from those of {names[0]}")
            for column in [*needed, *columns]:
                if columns.count(column) != 1 or len(columns) <= len(needed):
                    words = f"{one_line(column, 40)} once, and others"
                    raise DataError(f"{path}: must have {words}: {one_line(columns)}")
            where = ""
            for row in rows:
                where = f"{path}: line {rows.line_num}"  # As editors count.
                if len(row) != len(columns):
                    words = f"has {len(row)} fields, not {len(columns)}"
                    raise DataError(f"{where} {words}")
                yield path, where, dict(zip(columns, row))
            if not where:
                raise DataError(f"{path}: has no rows: take it out of the folder")


def _float(text: str) -> Optional[float]:
    """Returns the number that a text is; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def _number(column: str, text: str, where: str) -> float:
    """Returns the number in a field; a `DataError` if float32 cannot hold it."""
    number = _float(text)
    if number is not None and abs(number) <= _EXACT:
        return number
    why = "it has to be a number"
    if number is not None and not math.isnan(number):
        with np.errstate(over="ignore"):
            held = float(np.float32(number))
        whole = _WHOLE.fullmatch(text.strip())
        if math.isfinite(held) and not (whole and int(whole[1]) != abs(held)):
            return number
        why = _NOT_HELD.format(held)
    raise DataError(f"{where}: {one_line(column, 40)} is {text!r:.40}: {why}")


def _arrays(x: list[Any], y: list[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    try:
        read, labels = np.array(x), np.array(y)
        if read.dtype.kind not in "iuf":
            raise ValueError(f"they are {read.dtype}")
        with np.errstate(over="ignore"):
            found = read.astype(np.float32)
        if not np.isfinite(found).all():
            raise ValueError("a number is no float32")
    except ValueError as error:
        raise DataError("its examples are not float32 numbers of one shape") from error
    # Floats beyond are whole, whatever they are.
    ids = (read.dtype.kind != "f") | ((np.rint(read) == read) & (abs(read) < 2.0**53))
    if (lost := ids & (found != read)).any():
        why = _NOT_HELD.format(found[lost][0])
        raise DataError(f"its examples have {read[lost][0]}: {why}")
    return found, labels


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Carries out the command; returns the exit code."""
    words = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser("python -m leaf_data.convert", description=words)
    parser.add_argument("folder", help="LEAF's JSON files, or CSVs")
    parser.add_argument("store", help="the folder that is made")
    parser.add_argument("--label", default="", help="of CSVs: the column of the labels")
    words = "whether these are classes or numbers, the values of a regression"
    kinds = ("class", "number")
    parser.add_argument("--label_type", choices=kinds, default="class", help=words)
    words = "of CSVs: the column of the clients' names; by default a file is a client"
    parser.add_argument("--client", default="", help=words)
    parser.add_argument(
        "--test_fraction",
        type=float,
        default=0.0,
        help="of each client's examples, to test on; where LEAF's files have no others",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the test fraction")
    given = parser.parse_args(arguments)
    try:
        folder, label, classes = given.folder, given.label, {}
        if label:
            if given.label_type == "class":
                classes = classes_of_csvs(folder, label)
            clients = clients_of_csvs(folder, label, classes, given.client)
        elif given.client or given.label_type != "class":
            raise DataError("--client and --label_type go with --label, of CSVs")
        else:
            clients = clients_of_leaf(folder)
        shown = tqdm.tqdm(clients, "clients", unit="client", mininterval=1)
        how = {"test_fraction": given.test_fraction, "seed": given.seed}
        names = [text for text in classes if _float(text) is None]
        options = {"classes": names} if names else {}
        write_store(shown, given.store, options=options, **how)
        data = open_store(given.store)
        print(data.describe())
        if label and not given.client and len(data.client_ids) == 1:
            print(
                f"{parser.prog}: all examples are of one client, "
                f"{data.client_ids[0]}, because there is one CSV: --client=COLUMN "
                "makes one client of each name in a column",
                file=sys.stderr,
            )
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
