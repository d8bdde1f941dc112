"""Makes a store of LEAF's JSON files, or of a folder of CSVs.

    python -m leaf_data.convert leaf/data/synthetic my_store
    python -m leaf_data.convert clinics my_store --label=outcome --test_fraction=0.2

Of LEAF's data sets those can be taken whose x are numbers of one shape: they become
float32, and y classes, or with `--label_type=number` the values of a regression. Texts
and names of images are refused. Of CSVs, one for each client and named
after it, or of a column of their names, `--client`, the column `--label` is y: whole
numbers from 0, or words, which become classes in sorted order, or with
`--label_type=number` the values of a regression. The others are x, float32. Files named
as a training and a test set (`train.csv`, `test.csv`) are these. The store records the
names of inputs, classes and the columns.
"""

from __future__ import annotations

import argparse
import array
import collections
import json
import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import tqdm

from leaf_data.errors import DataError, error_summary, shorten
from leaf_data.formats import (
    csv_fields,
    csv_folder,
    data_files,
    file_parts,
    leaf_json,
)
from leaf_data.formats.file_parts import NamedFile
from leaf_data.store import Client, open_store, write_store

_LOG = logging.getLogger(__name__)
_LONGEST_CLASSES = 1 << 13  # Characters of the names that a store's options repeat.
_NO_LABELS = ("", "nan", "inf", "infinity")  # With or without a sign.
_DOUBTFUL_LABELS = {
    *("?", "-", "--", "\N{EN DASH}", "\N{EM DASH}", ".", "na", "n/a", "n.a.", "#n/a"),
    *("#na", "<na>", "nat", "none", "null", "#null!", "nil", "missing", "unknown"),
}
_DOUBTFUL_INPUTS = {
    *("index", "idx", "id", "_id", "uid", "uuid", "key", "row", "row_id", "rowid"),
    *("row_number", "rownames", "row_names", "level_0", "x.1"),
}
_FEWEST_ROWS = 5  # That can be told to be numbered.
_MANY_EMPTY = 2  # Classes for each label that appears.


def clients_of_leaf(folder: str, label_type: str = "class") -> Iterator[Client]:
    """Reads the users of LEAF's files in a folder, and their test examples if any.

    A user's training and test examples belong together by the user's name, whatever
    the files are called. A user without any example is excluded, with a warning.

    Args:
        folder: the folder.
        label_type: "class" for whole numbers from 0, also where the files have them as
            1.0; or "number", for the values of a regression.

    Raises:
        DataError: the files are not LEAF's, do not belong together, or have labels of
            another type; the message names file and user.
    """
    files = leaf_json.find("LEAF", [data_files.check_folder(folder)])
    tests = (file for file in files if file.part == "test")
    read: list[leaf_json.LeafFile] = []
    digests: list[str] = []
    paths: dict[tuple[str, str], str] = {}  # The file of each user, by part.
    waiting: dict[str, Any] = {}  # Users' test examples, until they are trained on.

    def users_of(file: leaf_json.LeafFile) -> dict[str, Any]:
        users, digest = leaf_json.read(
            file.path, lambda x, y: _arrays(x, y, label_type)
        )
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


def classes_of_csvs(folder: str, label: str, client: str = "") -> dict[str, int]:
    """Returns the class of each label in the CSVs of a folder, by the label's text.

    Whole numbers are classes themselves, and words become classes in sorted order.
    Warnings ask whether labels such as `NA` are missing values, and whether numbers
    with large gaps are classes.

    Args:
        folder: the folder.
        label: the column of the labels.
        client: the column of the clients' names, if there is one.

    Raises:
        DataError: a label is anything else, or some are numbers and some are words; the
            message names file, line and column of one that differs from the most.
    """
    places: dict[str, str] = {}  # Where each label stands first.
    counts: collections.Counter[str] = collections.Counter()
    for _, where, row in _rows(csv_folder.find(folder), _needed(label, client)):
        text = row[label].strip()
        places.setdefault(text, where)
        counts[text] += 1
    numbers = {
        text: number
        for text in places
        if (number := csv_fields.parse_number(text)) is not None
    }
    words = [text for text in places if text not in numbers]
    _check_labels(label, places, counts, numbers, words)
    if numbers:
        classes = {text: int(number) for text, number in numbers.items()}
        num_labels, num_classes = len({*classes.values()}), max(classes.values()) + 1
        if num_classes > _MANY_EMPTY * num_labels:
            _LOG.warning(
                "%s: %s classes, 0 to the largest label, but only %s different labels: "
                "--label_type=number takes labels as the values of a regression; write "
                "codes as words, or number them from 0",
                shorten(label, 40),
                f"{num_classes:,}",
                f"{num_labels:,}",
            )
        return classes
    for text in sorted(words):
        if text.lower() in _DOUBTFUL_LABELS:
            _LOG.warning(
                "%s: %s is %r, which becomes a class (%s of %s rows): is it a missing "
                "value? Then remove these rows",
                places[text],
                shorten(label, 40),
                text,
                f"{counts[text]:,}",
                f"{sum(counts.values()):,}",
            )
    return {text: number for number, text in enumerate(sorted(words))}


def _check_labels(
    label: str,
    places: Mapping[str, str],
    counts: Mapping[str, int],
    numbers: Mapping[str, float],
    words: Sequence[str],
) -> None:
    """Refuses labels that are no classes; see `classes_of_csvs`."""
    why = ""
    wrong = [text for text in words if text.lower().lstrip("+-") in _NO_LABELS[1:]]
    wrong = [text for text in words if not text] or wrong
    if wrong:
        why = "a missing value? Remove the row, or fill it in: "
    elif numbers and words:
        order = list(places)

        def rows(kind: Sequence[str]) -> tuple[int, int]:
            """Returns the number of rows; on a tie the later kind is the smaller."""
            return sum(counts[text] for text in kind), -order.index(kind[0])

        wrong, usual = sorted(([*words], [*numbers]), key=rows)
        kind, usual_kind = "a word", "a number"
        if wrong[0] in numbers:
            kind, usual_kind = usual_kind, kind
        why = f"{kind}, but {places[usual[0]]} has {usual[0]!r:.40}, {usual_kind}: "
    else:
        wrong = [
            text
            for text, number in numbers.items()
            if not (number.is_integer() and 0 <= number < 2**31)
        ]
    if wrong:
        raise DataError(
            f"{places[wrong[0]]}: {shorten(label, 40)} is {wrong[0]!r:.40}: {why}"
            "labels must be whole numbers, 0 or more, or words; --label_type=number "
            "takes the values of a regression"
        )


def inputs_of_csvs(folder: str, label: str, client: str = "") -> tuple[str, ...]:
    """Returns the names of the inputs: the columns that are not named here, in order.

    The arguments and errors are those of `clients_of_csvs`.
    """
    _, _, row = next(_rows(csv_folder.find(folder), _needed(label, client)))
    return tuple(column for column in row if column not in (label, client))


def clients_of_csvs(
    folder: str,
    label: str,
    classes: Mapping[str, int],
    client: str = "",
    join: bool = False,
) -> Iterator[Client]:
    """Yields the clients of the CSVs in a folder: a file each, or a name of a column.

    A warning names each input that seems to number the rows.

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
    columns: tuple[str, ...] = ()
    row_numbers = _RowNumbers()
    for file, where, row in _rows(files, _needed(label, client)):
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
                    f"{where}: {shorten(client, 40)} is {name!r:.40}, who is also in "
                    f"{first}: --join puts the rows of both files together"
                )
        if key not in held:
            if not client:
                yield from _examples(held, names, parts, row_numbers)
                held.clear()
            names[key] = name
            held[key] = {
                p: (array.array("f"), array.array("q" if classes else "f"))
                for p in parts
            }
        x, y = held[key][part]
        columns = columns or tuple(row)
        x.extend(_inputs(row, where, client))
        y.append(
            classes[text] if classes else csv_fields.read_number(text, label, where)
        )
    if client:
        first_places = {key: where for (key, _), (_, where) in places.items()}
        csv_folder.check_spellings(first_places, shorten(client, 40))
        for key, where in first_places.items():
            if key.lower() in _DOUBTFUL_LABELS or key.lower() in _NO_LABELS:
                _LOG.warning(
                    "%s: %s is %r, which becomes a client: is it a missing value? Then "
                    "remove these rows",
                    where,
                    shorten(client, 40),
                    names[key],
                )
        if not csv_folder.has_decimals(held):
            names = {key: key for key in held}
    yield from _examples(held, names, parts, row_numbers)
    row_numbers.warn(columns)


def _needed(label: str, client: str) -> list[str]:
    """Returns the columns that are not inputs."""
    if label == client:
        raise DataError(
            f"the column {shorten(label, 40)} cannot have both the labels and the "
            "clients' names: --label and --client must name two columns"
        )
    return [label, client] if client else [label]


def _inputs(row: Mapping[str, str], where: str, client: str) -> list[float]:
    """Returns the numbers of a row."""
    try:
        return [csv_fields.read_number(row[name], name, where) for name in row]
    except DataError as error:
        words = [name for name in row if csv_fields.parse_number(row[name]) is None]
        if client or not words or not any(map(str.isalpha, row[words[0]])):
            raise
        column = shorten(words[0], 40)
        raise DataError(
            f"{error}; if the column names the clients: --client={column}"
        ) from error


class _RowNumbers:
    """Finds inputs that number the rows, of all clients together or of each client.

    Such a column is as many consecutive whole numbers as there are rows, in any order:
    their range, their sum and that of their squares tell it.
    """

    def __init__(self) -> None:
        self._total: Any = None  # As `_part` returns it, of all clients.
        self._of_each: Any = None  # bool [columns]

    def add(self, x: npt.NDArray[Any]) -> None:
        """Takes the inputs [rows, columns] of a client."""
        x = x.astype(np.float64)
        whole = (np.rint(x) == x).all(0)
        part = [len(x), whole, x.min(0), x.max(0), x.sum(0), (x**2).sum(0)]
        if self._total is None:
            self._total, self._of_each = part, np.ones(x.shape[1], bool)
        else:
            joins: Any = np.add, np.logical_and, np.minimum, np.maximum, np.add, np.add
            pairs = zip(joins, self._total, part)
            self._total = [join(before, new) for join, before, new in pairs]
        self._of_each &= self._number_rows(*part)

    @staticmethod
    def _number_rows(
        count: int, whole: Any, low: Any, high: Any, total: Any, squares: Any
    ) -> Any:
        """Returns which columns number the rows, bool [columns]."""
        if count < _FEWEST_ROWS:
            return np.zeros(len(low), bool)
        half = (count - 1) / 2
        expected = count * (low * (low + 2 * half) + half * (2 * count - 1) / 3)
        return (
            whole
            & (high - low == count - 1)
            & (total == count * (low + half))
            & np.isclose(squares, expected, rtol=1e-9)
        )

    def warn(self, columns: Sequence[str]) -> None:
        """Logs a line for each of these columns that numbers rows, or is named so."""
        if self._total is None:
            return
        mask = self._of_each | self._number_rows(*self._total)
        for name, numbers_rows in zip(columns, mask):
            if numbers_rows or name.strip().lower() in _DOUBTFUL_INPUTS:
                _LOG.warning(
                    "the input %s %s: where rows are sorted it alone tells the label; "
                    "remove the column from the CSVs, unless it is a measurement",
                    shorten(name, 40),
                    "numbers the rows" if numbers_rows else "seems to name the rows",
                )


def _examples(
    held: Mapping[str, Mapping[str, tuple[Any, Any]]],
    names: Mapping[str, str],
    parts: Sequence[str],
    row_numbers: _RowNumbers,
) -> Iterator[Client]:
    for key, by_part in held.items():
        arrays = [by_part[part] for part in parts]
        # A part without rows has as many columns as the other.
        width = max(len(x) // len(y) for x, y in arrays if len(y))
        tables = [(np.array(x).reshape(len(y), width), np.array(y)) for x, y in arrays]
        for inputs, labels in tables:
            if len(labels):
                row_numbers.add(inputs)
        yield (names[key], *(a for table in tables for a in table))


def _rows(
    files: Sequence[NamedFile], needed: Sequence[str]
) -> Iterator[tuple[NamedFile, str, dict[str, str]]]:
    """Yields the rows of CSVs: the file, file and line, the fields."""
    columns: list[str] = []
    for file in files:
        path = file.path
        is_ordered = None
        for where, row in csv_fields.read_rows(path, needed):
            if is_ordered is None:
                _check_columns(path, [*row], needed)
                columns = columns or [*row]
                if odd := ", ".join(sorted({*columns} ^ {*row})):
                    first = os.path.basename(files[0].path)
                    raise DataError(
                        f"{path}: its columns differ from those of {first}: "
                        f"{shorten(odd)}"
                    )
                is_ordered = [*row] == columns
            yield file, where, row if is_ordered else {c: row[c] for c in columns}
        if is_ordered is None:
            raise DataError(f"{path}: has no rows: take it out of the folder")


def _check_columns(path: str, columns: list[str], needed: Sequence[str]) -> None:
    """Refuses a file with inputs without a name, no input, or a row for its names."""
    inputs = [column for column in columns if column not in needed]
    if not inputs:
        raise DataError(
            f"{path}: line 1 has no column besides {shorten(', '.join(needed), 80)}: "
            "the inputs are missing"
        )
    csv_fields.check_column_names(inputs, path)
    if all(csv_fields.parse_number(column) is not None for column in columns):
        # pandas names columns 0, 1, 2; decimals are a row.
        if not all(map(str.isdigit, columns)):
            raise DataError(
                f"{path}: line 1 has numbers alone, {shorten(columns, 80)}: it must "
                "have the names of the columns: write them above the rows"
            )


def _arrays(
    x: list[Any], y: list[Any], label_type: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Returns the examples of a user: float32 inputs, int64 or float64 labels."""
    try:
        numbers, labels = np.array(x), np.array(y)
        if numbers.dtype.kind not in "iuf":
            raise ValueError(f"they are {numbers.dtype}")
        with np.errstate(over="ignore"):
            inputs = numbers.astype(np.float32)
        if not np.isfinite(inputs).all():
            raise ValueError("a number is no float32")
    except ValueError as error:
        raise DataError("its examples are not float32 numbers of one shape") from error
    lost = inputs != numbers
    if numbers.dtype.kind == "f":  # Beyond 2^53 they are whole, whatever they are.
        lost = (abs(numbers) < 2.0**53) & (abs(inputs - numbers) > 0.5)
    if lost.any():
        why = csv_fields.PRECISION_LOSS.format(inputs[lost][0])
        raise DataError(f"its examples have {numbers[lost][0]}: {why}")
    if label_type == "number" and labels.dtype.kind in "iu":
        labels = labels.astype(np.float64)
    elif label_type == "class" and labels.dtype.kind == "f":  # FedProx's are 3.0, say.
        whole = np.isfinite(labels) & (np.rint(labels) == labels)
        if not whole.all():
            raise DataError(
                f"y has {labels[~whole][0]}: labels must be whole numbers, 0 or more; "
                "--label_type=number takes the values of a regression"
            )
        labels = labels.astype(np.int64)
    return inputs, labels


def _notes(folder: str, files: Sequence[NamedFile]) -> Iterator[str]:
    """Yields what users need to know of a folder of CSVs before it is read."""
    if unread := csv_folder.list_unread(folder, files):
        names = shorten(", ".join(unread), 300)
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
        folder, label = data_files.check_folder(given.folder), given.label
        input_names: Sequence[str] = ()
        class_names: Sequence[str] = ()
        options: dict[str, Any] = {}
        classes: Mapping[str, int] = {}
        if label:
            files = csv_folder.find(folder)
            parts = [file.part for file in files]
            for note in _notes(folder, files):
                print(f"{parser.prog}: {note}", file=sys.stderr)
            input_names = inputs_of_csvs(folder, label, given.client)
            options["label_column"] = label
            if given.client:
                options["client_column"] = given.client
            if given.label_type == "class":
                classes = classes_of_csvs(folder, label, given.client)
                if csv_fields.parse_number(next(iter(classes))) is None:  # Words.
                    class_names = [*classes]
                    if len(json.dumps(class_names)) < _LONGEST_CLASSES:
                        options["classes"] = class_names
            clients = clients_of_csvs(folder, label, classes, given.client, given.join)
        elif given.client:
            raise DataError("--client needs --label: both name columns of CSVs")
        elif given.join:
            raise DataError("--join needs --label: it joins the rows of CSVs")
        else:
            try:
                parts = [file.part for file in leaf_json.find("LEAF", [folder])]
            except DataError as error:
                if csvs := file_parts.list_files(folder, ".csv"):
                    raise DataError(
                        f"{csvs[0]} is a CSV: --label=COLUMN must name the column of "
                        "the labels; without it LEAF's JSON files are read"
                    ) from error
                raise
            clients = clients_of_leaf(folder, given.label_type)
        fraction = given.test_fraction
        if fraction and "test" in parts:
            fraction = 0.0
            print(
                f"{parser.prog}: --test_fraction has no effect, because there are test "
                "files",
                file=sys.stderr,
            )
        # Closed first, its line ends before that of an error.
        with tqdm.tqdm(clients, "clients", unit="client", mininterval=1) as shown:
            write_store(
                shown,
                given.store,
                test_fraction=fraction,
                seed=given.seed,
                keep_equal_together=given.keep_equal_together,
                options=options,
                input_names=input_names,
                class_names=class_names,
            )
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
        print(f"{parser.prog}: {error_summary(error, 900)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"{parser.prog}: interrupted, and nothing was made", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    # As with Ctrl-C, nothing is left behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
