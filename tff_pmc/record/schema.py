"""What a CSV of a record must be: declared by a `Schema`, and held to it when read."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from typing import Any, BinaryIO, Callable, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from tff_pmc.record.plain_files import open_packed, open_plain
from tff_pmc.record.record_error import RecordError, RecordMissingError

TEXT, COUNT, FLAG, SHARE, NUMBER = "text", "count", "flag", "share", "number"
"""The kinds of columns: a count is a whole number from 0, a flag 0 or 1, a share from
0 to 1; a number may be none."""

PACKED = ".gz"
"""What stands behind the name of a CSV that is kept packed."""

_LONGEST_HEADER = 1 << 16
_MOST_COLUMNS = 256  # A column takes memory of its own, whatever its rows have.
_MOST = 1 << 53  # More bytes or examples than anything has; sums of them still fit.
_DTYPES = {TEXT: str, COUNT: "int64", FLAG: "int64"}
# What a float that is none is written as. All other words are text, or refused.
_NOT_A_NUMBER = ["", "nan"]


class Schema(NamedTuple):
    """What a CSV must be."""

    kinds: Mapping[str, str]  # Of each known column.
    needed: tuple[str, ...] = ("round",)  # The columns that must be there.
    # The kind of the columns that have no name here; where there is none, they are not
    # written, and those of an older record are text.
    others: str = ""
    # Raises a `ValueError` for rows that do not go together.
    check: Callable[[pd.DataFrame], None] = lambda table: None
    # The columns of the test, which are empty in rounds without one: what is read has
    # the values of the last.
    held: tuple[str, ...] = ()

    def kind(self, column: str) -> str:
        """Returns the kind by which a column is read."""
        return self.kinds.get(column, self.others or TEXT)


def has_table(folder: str, name: str) -> bool:
    """Returns whether a folder has a CSV of this name, packed or not."""
    path = os.path.join(folder, name)
    return os.path.exists(path) or os.path.exists(path + PACKED)


def read_csv(folder: str, name: str, schema: Schema) -> pd.DataFrame:
    """Reads a CSV, or where there is only `NAME.gz`, that; see `read.read_table`."""
    path = os.path.join(folder, name)
    try:
        if not os.path.exists(path) and has_table(folder, name):
            path += PACKED
            file = open_packed(path)
        else:
            file = open_plain(path)
    except RecordMissingError as error:
        raise RecordMissingError(f"{folder} has run.json but no {name}") from error
    with file:
        try:
            table = _held(_parse(file, schema), schema)
            for column in table.columns:
                _check_column(table[column], schema.kind(column))
            schema.check(table)
        except (ValueError, OverflowError, csv.Error) as error:
            reason = " ".join(str(error).split())
            raise RecordError(f"{path} cannot be read: {reason}") from error
    return table


def _parse(file: BinaryIO, schema: Schema) -> pd.DataFrame:
    line = file.readline(_LONGEST_HEADER).decode("utf-8")
    names = next(csv.reader([line], strict=True), [])
    if not names or not line.endswith("\n"):
        raise ValueError("it has no header")
    if len(names) > _MOST_COLUMNS:
        raise ValueError(f"it has more than {_MOST_COLUMNS} columns")
    if len(set(names)) < len(names):
        raise ValueError("a column is there twice")
    lacking = [column for column in schema.needed if column not in names]
    if lacking:
        raise ValueError(f"it lacks the column {lacking[0]!r}")
    # Of a first row that is too long pandas makes an index of as many levels.
    first = file.readline(_LONGEST_HEADER).decode("utf-8", "replace")
    width = len(next(csv.reader([first], strict=True), names))
    if first and width != len(names):
        raise ValueError(f"row 1 has {width} fields or more, not {len(names)}")
    file.seek(-1, os.SEEK_END)
    if file.read() != b"\n":
        raise ValueError("it ends within a row")
    kinds = {
        column: NUMBER if column in schema.held else schema.kind(column)
        for column in names
    }
    if kinds[names[-1]] in (TEXT, NUMBER):
        _check_widths(file, len(names))
    file.seek(0)
    floats = [column for column, kind in kinds.items() if kind in (SHARE, NUMBER)]
    missing: Any = dict.fromkeys(floats, _NOT_A_NUMBER)
    table: pd.DataFrame = pd.read_csv(
        file,
        dtype={column: _DTYPES.get(kind, "float64") for column, kind in kinds.items()},
        keep_default_na=False,
        na_values=missing,
        skip_blank_lines=False,
        encoding="utf-8",
    )
    # More fields than names in every row, and the first are taken for an index.
    if list(table.columns) != names or not isinstance(table.index, pd.RangeIndex):
        raise ValueError("its rows do not have the columns of its header")
    return table


def _held(table: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """Fills the columns of the test where there was none."""
    names = [column for column in table.columns if column in schema.held]
    counts = [column for column in names if schema.kind(column) == COUNT]
    tested = table[[*counts, *names][0]].notna() if names else pd.Series(dtype=bool)
    last = np.maximum.accumulate(np.where(tested, np.arange(len(tested)), 0))
    for column in names:
        there = table[column].notna()
        if schema.kind(column) == NUMBER:  # A loss may be nan where it was measured.
            there |= tested
        if not tested[:1].all() or not there.equals(tested):
            raise ValueError(f"a round has only some of {', '.join(names)}")
        filled = table[column].take(last).set_axis(table.index)
        if schema.kind(column) == COUNT:
            if not (filled < _MOST).all() or (filled % 1).any():
                raise ValueError(f"a row has no {COUNT} as {column}")
            filled = filled.astype("int64")
        table[column] = filled
    return table


def _check_widths(file: BinaryIO, width: int) -> None:
    """Refuses a row that is too short, where its last cell may be empty, too."""
    file.seek(0)
    lines = io.TextIOWrapper(file, "utf-8", newline="")
    try:
        for number, row in enumerate(csv.reader(lines, strict=True)):
            if len(row) != width:
                raise ValueError(f"row {number} has {len(row)} fields, not {width}")
    finally:
        lines.detach()


def _check_column(values: pd.Series[Any], kind: str) -> None:
    array = values.to_numpy()
    good = np.ones(len(array), bool)
    if kind == TEXT and infer_dtype(array, skipna=False) not in ("string", "empty"):
        good = np.array([isinstance(value, str) for value in array])
    elif kind == COUNT:
        good = (array >= 0) & (array < _MOST)
    elif kind == FLAG:
        good = (array == 0) | (array == 1)
    elif kind == SHARE:
        good = (array >= 0) & (array <= 1)
    if not good.all():
        raise ValueError(f"row {int(good.argmin()) + 1} has no {kind} as {values.name}")
