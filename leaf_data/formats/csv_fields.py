"""The rows, numbers and column names of CSV files, by one rule for all readers.

A number is what spreadsheets and databases write: ASCII digits, with a sign, a decimal
point and an exponent if need be, and spaces around it: `-1.5`, `.5`, `2e-3`. Python's
`float` reads more, and each of it is something else in a table: `20_29` is a group of
ages and not 2029, `nan` is a missing value, and digits of other scripts are text.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Optional

import numpy as np

from leaf_data.errors import DataError, check_name, raising_data_error, shorten
from leaf_data.formats import data_files

PRECISION_LOSS = (
    "float32 would turn it into {:.0f}: store ids as int32 with leaf_data.write_store, "
    "or rescale amounts"
)
"""Why a number is invalid, with the number that float32 would turn it into."""

_MAX_EXACT_FLOAT32 = 1 << 24  # Up to it float32 holds every whole number.
_LARGEST_LOSS = 0.5
_NUMBER = re.compile(
    r"[ \t]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t]*"
)
_WHOLE = re.compile(r"[+-]?0*([0-9]+)(?:\.0*)?")
_SEPARATORS = ";\t|"  # Of tables that are not separated by commas.
_NAMELESS = re.compile(r"\s*|unnamed: ?[0-9]+(?:[._].*)?", re.IGNORECASE)
_NO_NUMBER = (
    "it has to be a number, such as -1.5 or 2e-3; remove the rows without a value, or "
    "fill them in"
)


def read_rows(path: str, needed: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yields the rows of a CSV: file and line, as messages name them, and the fields.

    The names of columns are without spaces around them. Empty lines, and lines of
    commas alone, are not rows.

    Args:
        path: the file, in UTF-8, its columns separated by commas.
        needed: columns that it must have; it may have others.

    Raises:
        DataError: it cannot be read as such a CSV, a needed column is missing, a name
            appears twice, or a row has more or fewer fields than there are columns.
    """
    with raising_data_error(path, "cannot be read as CSV", csv.Error):
        content = data_files.read(path)
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}: cannot be read as CSV ({error}): save it as UTF-8"
            ) from error
        rows = csv.reader(io.StringIO(text, newline=""), strict=True)
        columns = [name.strip() for name in next(filter(any, rows), [])]
        for column in needed:
            if column not in columns:
                why = ""
                if len(columns) == 1 and any(s in columns[0] for s in _SEPARATORS):
                    why = ": commas must separate its columns, and points be decimal"
                raise DataError(
                    f"{path}: line 1 must have the column {column!r:.80}, got "
                    f"{shorten(columns)}{why}"
                )
        for column in dict.fromkeys(columns):
            if column and columns.count(column) > 1:
                raise DataError(
                    f"{path}: line 1: the column {shorten(column, 40)} appears twice: "
                    "remove or rename one"
                )
        for row in rows:
            if not "".join(row).strip():
                continue
            where = f"{path}: line {rows.line_num}"  # As editors count.
            if len(row) != len(columns):
                raise DataError(f"{where} has {len(row)} fields, not {len(columns)}")
            yield where, dict(zip(columns, row))


def parse_number(text: str) -> Optional[float]:
    """Returns the number in a text by the rule above, or None."""
    return float(text) if _NUMBER.fullmatch(text) else None


def read_number(text: Any, column: str, where: str) -> float:
    """Returns the number in a field of a CSV.

    Args:
        text: the field; None, as `csv.DictReader` has it, where a row is too short.
        column: the name of its column.
        where: the file and the line, for the message: "a.csv: line 3".

    Raises:
        DataError: it is not a number, or float32 cannot hold it: it is too large, a
            whole number between two that float32 has, or one with decimals that would
            lose more than a half. The message names file, line and column.

    Examples:
        >>> read_number("2e-3", "dose", "a.csv: line 3")
        0.002
    """
    number = parse_number(text) if isinstance(text, str) else None
    if number is not None and abs(number) <= _MAX_EXACT_FLOAT32:
        return number
    why = _NO_NUMBER
    if number is not None:
        with np.errstate(over="ignore"):
            held = float(np.float32(number))
        whole = _WHOLE.fullmatch(text.strip())
        # Digits are meant: 1700000000.5, a time, would be a minute off. 1e11 is not.
        lost = "e" not in text.lower() and abs(held - number) > _LARGEST_LOSS
        # Python may refuse to read the digits of an infinite number.
        lost = lost or not math.isfinite(held)
        lost = lost or bool(whole and int(whole[1]) != abs(held))
        if not lost:
            return number
        why = PRECISION_LOSS.format(held)
    raise DataError(f"{where}: {shorten(column, 40)} is {text!r:.40}: {why}")


def check_column_names(columns: Sequence[str], path: str) -> None:
    """Raises a `DataError` if a column has no name, as the index that pandas writes.

    pandas reads such a column as `Unnamed: 0`, and writes it so the next time.

    Args:
        columns: the names of the columns, but for those whose meaning the user gives.
        path: the file, for the message.

    Raises:
        DataError: a column has no name, or one that cannot stand in records.
    """
    for column in columns:
        if _NAMELESS.fullmatch(column):
            raise DataError(
                f"{path}: line 1: the column {column!r:.40} has no name: it may be the "
                "index that pandas writes: write the table with index=False, or name "
                "or remove the column"
            )
        check_name(column, f"{path}: line 1: the column")
