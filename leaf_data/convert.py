"""Makes a store of LEAF's JSON files, or of a folder of CSVs.

    python -m leaf_data.convert leaf/data/synthetic my_store
    python -m leaf_data.convert clinics my_store --label=outcome --test_fraction=0.2

Of LEAF's data sets those can be taken whose x are numbers of one shape: they become
float32. Texts and names of images are refused. Of CSVs, one for each client and named
after it, or of a column of their names, `--client`, the column `--label` is y: whole
numbers from 0, or words, which become classes in sorted order, or with
`--label_type=number` the values of a regression. The others are x, float32. Files named
as a training and a test set (`train.csv`, `test.csv`) are these.
"""

from __future__ import annotations

import argparse
import array
import csv
import io
import logging
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
from leaf_data.formats import csv_folder, data_files, leaf_json
from leaf_data.formats.file_parts import NamedFile
from leaf_data.store import Client, open_store, write_store

_LOG = logging.getLogger(__name__)
_EXACT = 1 << 24  # Up to it float32 holds every whole number.
_WHOLE = re.compile(r"[+-]?(\d+)(\.0*)?")
_NOT_HELD = (
    "a float32 would be {:.0f}; leaf_data.write_store takes ids as int32, and amounts "
    "can be scaled"
)


def clients_of_leaf(folder: str) -> Iterator[Client]:
    """Reads the users of LEAF's files in a folder, and their test examples if any.

    A user's training and test examples belong together by the user's name, whatever
    the files are called. A user without any example is excluded, with a warning.
    """
    files = leaf_json.find("LEAF", [folder])
    tests = (file for file in files if file.part == "test")
    read: list[leaf_json.LeafFile] = []
    digests: list[str] = []
    paths: dict[tuple[str, str], str] = {}  # The file of each user, by part.
    waiting: dict[str, Any] = {}  # Users' test examples, until they are trained on.

    def users_of(file: leaf_json.LeafFile) -> dict[str, Any]:
        users, digest = leaf_json.read(file.path, _arrays)
        read.append(file)
        digests.append(digest)
        leaf_json.check_apart(read, digests)
        for user in users:
            earlier = paths.setdefault((user, file.part), file.path)
            if earlier != file.path:
                raise DataError(
                    f"user {user}: is in {earlier} and in {file.path}: keep the files "
                    "of one run of preprocess.sh"
                )
        return users

    for file in files:
        if file.part == "test":
            continue
        for user, train in users_of(file).items():
            parts = [train]
            if file.part == "train":
                while user not in waiting and (test_file := next(tests, None)):
                    waiting.update(users_of(test_file))
                if user not in waiting:
                    raise DataError(
                        f"{file.path} has no test file with its user {user}"
                    )
                parts.append(waiting.pop(user))
            yield from _with_examples(user, parts, file.path)
    for file in tests:
        waiting.update(users_of(file))
    for user in waiting:
        path = paths[user, "test"]
        raise DataError(f"{path} has no train file with its user {user}")


def _with_examples(user: str, parts: list[Any], path: str) -> Iterator[Client]:
    """Yields a user whose parts have arrays of one shape, or warns that all are empty.

    Lists without examples tell no shape: they take that of the other part.
    """
    full = [part for part in parts if len(part[1])]
    if not full:
        _LOG.warning("%s: user %s has no examples, and is excluded", path, user)
        return
    empty = [values[:0] for values in full[0]]
    filled = [part if len(part[1]) else empty for part in parts]
    yield (user, *(values for part in filled for values in part))


def classes_of_csvs(folder: str, label: str) -> dict[str, int]:
    """Returns the class of each label in the CSVs of a folder, by the label's text.

    Whole numbers are classes themselves, and words become classes in sorted order. Of
    anything else, and of numbers among words, a `DataError` names file and line.
    """
    found: dict[str, str] = {}  # Where each label stands first.
    for _, where, row in _rows(csv_folder.find(folder), [label]):
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
    folder: str,
    label: str,
    classes: Mapping[str, int],
    client: str = "",
    join: bool = False,
) -> Iterator[Client]:
    """Yields the clients of the CSVs in a folder: a file each, or a name of a column.

    Args:
        folder: the folder. A training and a test set (`train.csv` and `test.csv`)
            become the clients' training and test examples.
        label: the column of the labels.
        classes: as `classes_of_csvs` returns them; empty for values of a regression.
        client: the column of the clients' names, which are all held in memory; by
            default a file is a client.
        join: whether the rows of a client that is in several files of one part are
            put together; by default that is refused.

    Raises:
        DataError: a file is no such CSV; the message names file, line and column.
    """
    files = csv_folder.find(folder)
    if not client:
        files = csv_folder.group_by_client(files, join)
    parts = ["train"] + ["test"] * any(file.part == "test" for file in files)
    # A list of rows takes a hundred times the file.
    held: dict[str, dict[str, tuple[array.array[float], array.array[Any]]]] = {}
    names: dict[str, str] = {}  # As each client is written first.
    places: dict[tuple[str, str], tuple[str, str]] = {}  # By client and part.
    for file, where, row in _rows(files, [label, client] if client else [label]):
        text = row.pop(label).strip()
        name = row.pop(client).strip() if client else file.rest or "all"
        if not name:
            raise DataError(f"{where}: the column {client} is empty")
        part = "test" if file.part == "test" else "train"
        key = csv_folder.client_key(name)
        if client:
            path, first = places.setdefault((key, part), (file.path, where))
            if path != file.path and not join:
                raise DataError(
                    f"{where}: {one_line(client, 40)} is {name!r:.40}, who is also in "
                    f"{first}: --join puts the rows of both files together"
                )
        if key not in held:
            if not client:
                yield from _examples(held, names, parts)
                held.clear()
            names[key] = name
            held[key] = {
                p: (array.array("f"), array.array("q" if classes else "f"))
                for p in parts
            }
        x, y = held[key][part]
        x.extend([_number(*field, where) for field in row.items()])
        y.append(classes[text] if classes else _number(label, text, where))
    if client:
        first_places = {key: where for (key, _), (_, where) in places.items()}
        csv_folder.check_spellings(first_places, one_line(client, 40))
        if not csv_folder.has_decimals(held):
            names = {key: key for key in held}
    yield from _examples(held, names, parts)


def _examples(
    held: Mapping[str, Mapping[str, tuple[Any, Any]]],
    names: Mapping[str, str],
    parts: Sequence[str],
) -> Iterator[Client]:
    for key, by_part in held.items():
        arrays = [by_part[part] for part in parts]
        # A part without rows has as many columns as the other.
        width = max(len(x) // len(y) for x, y in arrays if len(y))
        tables = [(np.array(x).reshape(len(y), width), np.array(y)) for x, y in arrays]
        yield (names[key], *(a for table in tables for a in table))


def _rows(
    files: Sequence[NamedFile], needed: Sequence[str]
) -> Iterator[tuple[NamedFile, str, dict[str, str]]]:
    """Yields the rows of CSVs: the file, file and line, the fields."""
    columns: list[str] = []
    for file in files:
        path = file.path
        with reading(path, "cannot be read as CSV", UnicodeDecodeError, csv.Error):
            content = io.BytesIO(data_files.read(path))
            text = io.TextIOWrapper(content, "utf-8-sig", newline="")
            rows = csv.reader(text, strict=True)
            header: list[str] = next(filter(any, rows), [])
            columns = columns or header
            if header != columns:
                first = os.path.basename(files[0].path)
                odd = ", ".join(sorted({*columns} ^ {*header})) or "the order"
                raise DataError(
                    f"{path}: its columns differ from those of {first}: {one_line(odd)}"
                )
            for column in [*needed, *columns]:
                if columns.count(column) != 1 or len(columns) <= len(needed):
                    words = f"{one_line(column, 40)} once, and others"
                    raise DataError(f"{path}: must have {words}: {one_line(columns)}")
            where = ""
            for row in rows:
                if not "".join(row).strip():
                    continue  # An empty line is not a row, nor one of commas alone.
                where = f"{path}: line {rows.line_num}"  # As editors count.
                if len(row) != len(columns):
                    words = f"has {len(row)} fields, not {len(columns)}"
                    raise DataError(f"{where} {words}")
                yield file, where, dict(zip(columns, row))
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


def _notes(folder: str, files: Sequence[NamedFile]) -> Iterator[str]:
    """Yields what users need to know of a folder of CSVs before it is read."""
    if unread := csv_folder.list_unread(folder, files):
        names = one_line(", ".join(unread), 300)
        yield f"{folder}: only its CSVs are read; these are not: {names}"
    tests = [file.path for file in files if file.part == "test"]
    if tests:
        train, test = (
            f"{first}{f' and {count - 1} more' if count > 1 else ''}"
            for first, count in (
                (files[0].path, len(files) - len(tests)),
                (tests[0], len(tests)),
            )
        )
        yield (
            f"by their names the training set is {train}, the test set {test}: rename "
            "files that are not"
        )


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
    words = "put the rows of a client together that is in several CSVs; else refused"
    parser.add_argument("--join", action="store_true", help=words)
    parser.add_argument(
        "--test_fraction",
        type=float,
        default=0.0,
        help="of each client's examples, to test on; where no files have others",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the test fraction")
    words = "draw all or none of the examples that are equal, to test on"
    parser.add_argument("--keep_equal_together", action="store_true", help=words)
    given = parser.parse_args(arguments)
    try:
        folder, label, classes = given.folder, given.label, {}
        if label:
            files = csv_folder.find(folder)
            parts = [file.part for file in files]
            for note in _notes(folder, files):
                print(f"{parser.prog}: {note}", file=sys.stderr)
            if given.label_type == "class":
                classes = classes_of_csvs(folder, label)
            clients = clients_of_csvs(folder, label, classes, given.client, given.join)
        elif given.client or given.label_type != "class":
            raise DataError("--client and --label_type go with --label, of CSVs")
        elif given.join:
            raise DataError("--join needs --label: it joins the rows of CSVs")
        else:
            parts = [file.part for file in leaf_json.find("LEAF", [folder])]
            clients = clients_of_leaf(folder)
        fraction = given.test_fraction
        if fraction and "test" in parts:
            fraction = 0.0
            print(
                f"{parser.prog}: --test_fraction has no effect, because there are test "
                "files",
                file=sys.stderr,
            )
        shown = tqdm.tqdm(clients, "clients", unit="client", mininterval=1)
        how = {
            "test_fraction": fraction,
            "seed": given.seed,
            "keep_equal_together": given.keep_equal_together,
        }
        names = [text for text in classes if _float(text) is None]
        options = {"classes": names} if names else {}
        write_store(shown, given.store, options=options, **how)
        data = open_store(given.store)
        print(data.describe())
        if label and not given.client and len(data.client_ids) == 1:
            number = "one CSV" if len(parts) == 1 else "one CSV of each part"
            print(
                f"{parser.prog}: all examples are of one client, "
                f"{data.client_ids[0]}, because there is {number}: --client=COLUMN "
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
