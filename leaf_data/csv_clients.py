"""The clients, classes and inputs of a folder of CSVs."""

from __future__ import annotations

import array
import collections
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from leaf_data.errors import DataError, shorten
from leaf_data.formats import csv_fields, csv_folder
from leaf_data.formats.file_parts import NamedFile
from leaf_data.store import Client

_LOG = logging.getLogger(__name__)
_NO_LABELS = ("", "nan", "inf", "infinity")  # With or without a sign.
_DOUBTFUL_LABELS = {
    *("?", "-", "--", "\N{EN DASH}", "\N{EM DASH}", ".", "na", "n/a", "n.a.", "#n/a"),
    *("#na", "<na>", "nat", "none", "null", "#null!", "nil", "missing", "unknown"),
}
_DOUBTFUL_INPUTS = {
    *("index", "idx", "id", "_id", "uid", "uuid", "key", "row", "row_id", "rowid"),
    *("row_number", "rownames", "row_names", "level_0", "x.1"),
}
_MIN_ROWS = 5  # With fewer rows a column is never a numbering.
_MAX_CLASSES_PER_LABEL = 2  # More classes for each label that appears look wrong.


def read_classes(folder: str, label: str, client: str = "") -> dict[str, int]:
    """Returns the class of each label in the CSVs of a folder, by the label's text.

    Whole numbers are classes themselves, and words become classes in sorted order.
    Warnings ask whether labels such as `NA` are missing values, and whether numbers
    with large gaps are classes.

    Args:
        folder: the folder.
        label: the column of the labels.
        client: the column of the clients' names, if there is one.

    Raises:
        DataError: a label is neither a whole number from 0 nor a word, or some are
            numbers and some words; the message names file, line and column of a label
            of the rarer kind.
    """
    places: dict[str, str] = {}  # The first place of each label.
    counts: collections.Counter[str] = collections.Counter()
    for _, where, row in _read_rows(
        csv_folder.find(folder), _key_columns(label, client)
    ):
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
        if num_classes > _MAX_CLASSES_PER_LABEL * num_labels:
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
    """Raises a `DataError` if labels are not classes; see `read_classes`."""
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


def read_input_names(folder: str, label: str, client: str = "") -> tuple[str, ...]:
    """Returns the names of the inputs in order: all but these columns.

    The arguments and errors are those of `read_clients`.
    """
    _, _, row = next(_read_rows(csv_folder.find(folder), _key_columns(label, client)))
    return tuple(column for column in row if column not in (label, client))


def read_clients(
    folder: str,
    label: str,
    classes: Mapping[str, int],
    client: str = "",
    join: bool = False,
) -> Iterator[Client]:
    """Yields the clients of the CSVs in a folder: the files, or the names in a column.

    A warning names each input that seems to number the rows.

    Args:
        folder: the folder. A training and a test set (`train.csv` and `test.csv`)
            become the clients' training and test examples.
        label: the column of the labels.
        classes: as `read_classes` returns them; empty for values of a regression.
        client: the column of the clients' names, which are all held in memory; by
            default a file is a client.
        join: whether the rows of a client that is in several files of one part are
            joined; by default it raises an error.

    Raises:
        DataError: a file is not such a CSV; the message names file, line and column.
    """
    files = csv_folder.find(folder)
    if not client:
        files = csv_folder.group_by_client(files, join)
    parts = ["train"] + ["test"] * any(file.part == "test" for file in files)
    # Lists of rows would take a hundred times the size of the file.
    rows_by_client: dict[
        str, dict[str, tuple[array.array[float], array.array[Any]]]
    ] = {}
    names: dict[str, str] = {}  # The first spelling of each client.
    places: dict[tuple[str, str], tuple[str, str]] = {}  # By client and part.
    columns: tuple[str, ...] = ()
    row_numbers = _RowNumbers()
    for file, where, row in _read_rows(files, _key_columns(label, client)):
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
        if key not in rows_by_client:
            if not client:
                yield from _build_clients(rows_by_client, names, parts, row_numbers)
                rows_by_client.clear()
            names[key] = name
            rows_by_client[key] = {
                p: (array.array("f"), array.array("q" if classes else "f"))
                for p in parts
            }
        x, y = rows_by_client[key][part]
        columns = columns or tuple(row)
        x.extend(_read_inputs(row, where, client))
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
        if not csv_folder.has_decimals(rows_by_client):
            names = {key: key for key in rows_by_client}
    yield from _build_clients(rows_by_client, names, parts, row_numbers)
    row_numbers.warn(columns)


def _key_columns(label: str, client: str) -> list[str]:
    """Returns the columns that are not inputs."""
    if label == client:
        raise DataError(
            f"the column {shorten(label, 40)} cannot have both the labels and the "
            "clients' names: --label and --client must name two columns"
        )
    return [label, client] if client else [label]


def _read_inputs(row: Mapping[str, str], where: str, client: str) -> list[float]:
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

    Such a column has consecutive whole numbers, one per row, in any order: their range,
    sum and sum of squares show it.
    """

    def __init__(self) -> None:
        self._total: Any = None  # Statistics of all clients' rows.
        self._numbers_each: Any = None  # bool [columns]: rows of each client.

    def add(self, x: npt.NDArray[Any]) -> None:
        """Adds the inputs [rows, columns] of a client."""
        x = x.astype(np.float64)
        whole = (np.rint(x) == x).all(0)
        part = [len(x), whole, x.min(0), x.max(0), x.sum(0), (x**2).sum(0)]
        if self._total is None:
            self._total, self._numbers_each = part, np.ones(x.shape[1], bool)
        else:
            joins: Any = np.add, np.logical_and, np.minimum, np.maximum, np.add, np.add
            pairs = zip(joins, self._total, part)
            self._total = [join(before, new) for join, before, new in pairs]
        self._numbers_each &= self._number_rows(*part)

    @staticmethod
    def _number_rows(
        count: int, whole: Any, low: Any, high: Any, total: Any, squares: Any
    ) -> Any:
        """Returns which columns number the rows, bool [columns]."""
        if count < _MIN_ROWS:
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
        """Logs a warning for each column that numbers the rows, or has such a name."""
        if self._total is None:
            return
        mask = self._numbers_each | self._number_rows(*self._total)
        for name, numbers_rows in zip(columns, mask):
            if numbers_rows or name.strip().lower() in _DOUBTFUL_INPUTS:
                _LOG.warning(
                    "the input %s %s: where rows are sorted it alone tells the label; "
                    "remove the column from the CSVs, unless it is a measurement",
                    shorten(name, 40),
                    "numbers the rows" if numbers_rows else "seems to name the rows",
                )


def _build_clients(
    rows_by_client: Mapping[str, Mapping[str, tuple[Any, Any]]],
    names: Mapping[str, str],
    parts: Sequence[str],
    row_numbers: _RowNumbers,
) -> Iterator[Client]:
    for key, by_part in rows_by_client.items():
        arrays = [by_part[part] for part in parts]
        # A part without rows has the columns of the other.
        width = max(len(x) // len(y) for x, y in arrays if len(y))
        tables = [(np.array(x).reshape(len(y), width), np.array(y)) for x, y in arrays]
        for inputs, labels in tables:
            if len(labels):
                row_numbers.add(inputs)
        yield (names[key], *(a for table in tables for a in table))


def _read_rows(
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
            raise DataError(f"{path}: has no rows: remove it from the folder")


def _check_columns(path: str, columns: list[str], needed: Sequence[str]) -> None:
    """Raises a `DataError` for a file without inputs, or without names of columns."""
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
