"""The rows of a record's CSVs, counted and cut.

A row is one of CSV's: a client's name may have line breaks in it. The first column is
the round, and rounds only grow.
"""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple, Optional

from tff_pmc.experiments.record import files
from tff_pmc.reports.plain_files import open_plain

_LONGEST_LINE = 1 << 20


class Row(NamedTuple):
    """A whole row of a CSV.

    Attributes:
        fields: its fields, as many as the header has.
        end: the place in the file where the next row begins, bytes.
    """

    fields: list[str]
    end: int

    @property
    def round_num(self) -> Optional[int]:
        """The round in the first column; None if that is no number."""
        text = self.fields[0]
        return (
            int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
        )


def whole_rows(path: str) -> Iterator[Row]:
    """Gives the header and the rows, up to one that was cut off or is none.

    Raises:
        FileNotFoundError: there is no file.
        RecordError: it cannot be read.
    """
    with open_plain(path) as file:
        lines = _Lines(file)
        width = None
        # A row that is cut off in a quoted field is an error to a strict reader.
        with contextlib.suppress(csv.Error, UnicodeDecodeError):
            for fields in csv.reader(lines, strict=True):
                width = len(fields) if width is None else width
                if not lines.whole or not fields or len(fields) != width:
                    return
                yield Row(fields, lines.end)


class _Lines:
    """The lines of a file, and where the last one ends."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.end = 0
        self.whole = True

    def __iter__(self) -> Iterator[str]:
        while line := self._file.readline(_LONGEST_LINE):
            self.end += len(line)
            self.whole = line.endswith(b"\n")
            yield line.decode("utf-8")


def header(path: str) -> list[str]:
    """Returns the names of the columns; none where there is no file, or no header."""
    try:
        return next((row.fields for row in whole_rows(path)), [])
    except FileNotFoundError:
        return []


def rows_by_round(path: str) -> dict[int, int]:
    """Returns how many rows each round has, up to the first row out of order.

    Raises:
        RecordError: the file cannot be read.
    """
    counts: dict[int, int] = {}
    last = 0
    try:
        rows = whole_rows(path)
        next(rows, None)
        for row in rows:
            number = row.round_num
            if number is None or not 1 <= number or number < last:
                break
            counts[number] = counts.get(number, 0) + 1
            last = number
    except FileNotFoundError:
        pass
    return counts


def last_round(path: str) -> int:
    """Returns the last round that a file has anything of; 0 where there is no file.

    A file that holds something and no round at all, such as a row that was cut off,
    counts as one of round 1.

    Raises:
        RecordError: the file cannot be read.
    """
    try:
        last = max(rows_by_round(path), default=0)
        return max(last, 1 if os.path.getsize(path) else 0)
    except FileNotFoundError:
        return 0


def complete_rounds(path: str) -> int:
    """Returns the last round with as many rows as round 1, before any gap."""
    counts = rows_by_round(path)
    done = 0
    while counts.get(done + 1) and counts[done + 1] == counts[1]:
        done += 1
    return done


def column(path: str, name: str) -> list[str]:
    """Returns a column of the whole rows; empty where there is no such file or column.

    Raises:
        RecordError: the file cannot be read.
    """
    try:
        rows = whole_rows(path)
        names = next((row.fields for row in rows), [])
        place = names.index(name) if name in names else None
        return [] if place is None else [row.fields[place] for row in rows]
    except FileNotFoundError:
        return []


def cut_after(path: str, round_num: int) -> None:
    """Removes a CSV's rows of later rounds, and a last row that was cut off.

    Where no row is left the file goes, too: the first row to come makes it anew.

    Raises:
        RecordError: the file cannot be read.
        OSError: it cannot be written.
    """
    rows = whole_rows(path)
    next(rows, None)
    end = 0
    for row in rows:
        if row.round_num is None or row.round_num > round_num:
            break
        end = row.end
    if not end:
        os.unlink(path)
    elif end < os.path.getsize(path):
        with open_plain(path) as old, files.replacing(path) as new:
            for start in range(0, end, _LONGEST_LINE):
                new.write(old.read(min(_LONGEST_LINE, end - start)))
