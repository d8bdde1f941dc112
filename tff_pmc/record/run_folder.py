"""A run's folder: settings in `run.json`, tidy CSVs a round at a time.

    run.json      settings, seeds, versions, engine, the data's origin, how it ended,
                  and the CSVs' lengths and SHA-256 then, but of timing.csv
    rounds.csv    a row a round: accuracy (of a regression, the test loss), percentiles,
                  training loss
    clients.csv   a row a client and round: correct (of a regression, the sum of the
                  losses), examples (the test set)
    cohort.csv    a row a cohort client and round: raw criteria, weight
    weights.csv   a row an ordering and round: how unequal its weights were
    candidates.csv  a row a candidate tested and round, where the ordering is adjusted
    class_f1.csv  a row a class and round, where the server has examples of its own:
                  the F1 on these of the model after the round
    groups.csv    a row a group and round, where clients have attributes
    timing.csv    a row a round: seconds (the one file two equal runs differ in)
    predictions/  a file a round: each test example's predicted label, if asked for
    checkpoints/  the process's state after the last rounds
    tensorboard/  event files of the same rounds, with --tensorboard

The first column of every CSV is the round. A checkpoint says how long each file was at
its round, and what its SHA-256 is so far: a run that was cut off goes on from its last
checkpoint after the files are cut to these lengths. `timing.csv` has a line a round.

These files are for programs: a client's name stands in them as it is. Whoever opens
them in a spreadsheet imports their columns as text.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import hashlib
import io
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from tff_pmc.record import files, run_json
from tff_pmc.record.checkpoints import Length, Lengths
from tff_pmc.record.columns import SCHEMAS, check_declared
from tff_pmc.record.plain_files import open_plain
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.same_run import check_same, versions, warn_of_other_versions

_TIMING = "timing.csv"
_LINE_ENDS = {"rounds.csv": "\r\n"}  # As TFF's own manager of CSV files writes.
_CHUNK = 1 << 20


class _Beginning:
    """The length and the digest of the beginning of a file."""

    def __init__(self) -> None:
        self.size = 0
        self._digest = hashlib.sha256()

    @classmethod
    def of(cls, path: str, size: int) -> _Beginning:
        """Those of so many bytes of a file, or of all where it has fewer."""
        found = cls()
        with open_plain(path) as file:
            while part := file.read(min(_CHUNK, size - found.size)):
                found.add(part)
        return found

    def add(self, part: bytes) -> None:
        """Counts what comes next."""
        self.size += len(part)
        self._digest.update(part)

    @property
    def length(self) -> Length:
        """As a checkpoint has it."""
        return Length(self.size, self._digest.hexdigest())

    def __str__(self) -> str:  # As the `run.json` of a run that ended has it.
        return "{} bytes, sha256 {}".format(*self.length)


class FolderLostError(OSError):
    """The folder of a run, or a file of it, is not the one that was opened any more."""


class RunFolder:
    """Writes one run; every round is on disk when the next one starts.

    A folder that holds a run already is changed by `go_on_after` and not before.

    Attributes:
        path: the folder.
        finished: whether the run that was there was finished, and is not to have more
            rounds now.
    """

    def __init__(
        self, path: str, description: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        """Takes the folder for this process alone, and makes it if it is new.

        It is empty or not there yet; or, to resume, it may be one of a run with the
        same settings, or with fewer rounds. Everything else is a `RecordError`.
        `description` is `run.json` but for versions and times.
        """
        self.path = path
        self._files: dict[str, BinaryIO] = {}
        self._columns: dict[str, list[str]] = {}
        self._beginnings: dict[str, _Beginning] = {}
        before, longer = files.read_json(path) if resume else None, False
        if before is None:
            files.make_empty_folder(path, ", or --resume")
        else:
            files.check_plain(path)
            longer = check_same(path, before, description)
            run_json.require(path, before, "status", "versions", "started", "resumed")
        self._lock = files.take_lock(path)
        self.finished = before is not None and before["status"] == "finished"
        if before is not None and self.finished and longer:
            # A search of rates ends a run before its last round: that one stays so.
            self.finished = (
                self._rounds() < run_json.by_flag(before["settings"])["rounds"]
            )
        if before is not None and self.finished:
            self._check_written(before.get("files", {}))
        self._begun = False
        self._versions = versions()
        session = {"at": _now(), "versions": self._versions}
        self._json = {
            **description,
            "versions": self._versions if before is None else before["versions"],
            "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
            "started": _now() if before is None else before["started"],
            "resumed": [] if before is None else [*before["resumed"], session],
        }
        if before is None:
            self._begin()

    @property
    def has_rows(self) -> bool:
        """Whether any file of the record has something in it."""
        return any(os.path.getsize(self._path(name)) for name in self._tables())

    def lengths(self) -> Lengths:
        """The lengths of the files as they are now, for a checkpoint.

        Not of `timing.csv`, in which equal runs differ.
        """
        return {name: one.length for name, one in self._beginnings.items()}

    def check(self, lengths: Lengths) -> None:
        """Refuses, by a `RecordError`, a record that a checkpoint does not fit."""
        for name, length in lengths.items():
            path = self._path(name)
            found = _Beginning.of(path, length.size) if os.path.exists(path) else None
            if found is None or found.size < length.size:
                raise RecordError(f"the record lacks rows of its round: {path}")
            if found.length != length:
                raise RecordError(f"{path} is not what was written")

    def _check_written(self, written: Mapping[str, str]) -> None:
        """Refuses, by a `RecordError`, a finished record that is not as it ended."""
        there = self._tables()
        for name, text in written.items():
            path = self._path(name)
            if name not in there or str(_Beginning.of(path, sys.maxsize)) != text:
                raise RecordError(
                    f"{path} is not what was written until the run ended: bring it "
                    "back, or run into another folder"
                )

    def go_on_after(self, round_num: int, lengths: Lengths) -> None:
        """Removes all of later rounds, by the lengths at the end of this one."""
        warn_of_other_versions(self.path, self._json["versions"], self._versions)
        self._begin()
        files.sweep(self.path)
        for name in self._tables():
            path = self._path(name)
            if name in lengths:
                files.cut(path, lengths[name].size)
                self._beginnings[name] = _Beginning.of(path, lengths[name].size)
            elif name == _TIMING and round_num:
                with open_plain(path) as file:
                    lines = [file.readline(_CHUNK) for _ in range(round_num + 1)]
                files.cut(path, sum(map(len, lines)))
            else:
                os.unlink(path)
        files.remove_after(os.path.join(self.path, "predictions"), round_num)

    def append(self, table: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Appends rows to `<table>.csv`; the first row ever fixes the columns."""
        rows, name = list(rows), f"{table}.csv"
        if not rows:
            return
        text = io.StringIO(newline="")
        line_end = _LINE_ENDS.get(name, "\n")
        new = name not in self._files and self._open(name, list(rows[0]))
        writer = csv.DictWriter(text, self._columns[name], lineterminator=line_end)
        if new:
            writer.writeheader()
        writer.writerows(rows)
        part = text.getvalue().encode()
        with files.naming(self._path(name)):
            self._files[name].write(part)
            self._files[name].flush()
        if name != _TIMING:
            self._beginnings.setdefault(name, _Beginning()).add(part)

    def release(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        """Appends a round's rows, by the table; the columns of `rounds` are sorted.

        A `FolderLostError` says that the folder or a file was removed or replaced: what
        is written into it would be lost.
        """
        lost = self._lost()
        if lost:
            raise FolderLostError(f"{lost} was removed or replaced during the run")
        for table, rows in tables.items():
            if table == "rounds":
                (row,) = rows
                names = ["round", *sorted(set(row) - {"round"})]
                rows = [{name: row[name] for name in names}]
            self.append(table, rows)

    def finish(self, status: str) -> None:
        """Closes the files and writes how the run ended into `run.json`."""
        try:
            with contextlib.ExitStack() as stack:
                for file in self._files.values():
                    stack.callback(file.close)
            if self._begun and not self._lost():
                self._json["ended"] = _now()
                self._json["files"] = {k: str(v) for k, v in self._beginnings.items()}
                self._write_json(status)
        finally:
            os.close(self._lock)

    def _lost(self) -> str:
        """The first of what is open that is not at its place any more, or nothing."""
        opened = {files.LOCK: self._lock}
        for name, file in self._files.items():
            if not file.closed:
                opened[name] = file.fileno()
        for name, descriptor in opened.items():
            path = self._path(name)
            with contextlib.suppress(OSError):
                if os.path.samestat(os.lstat(path), os.fstat(descriptor)):
                    continue
            return self.path if name == files.LOCK else path
        # A link would be followed by what writes into them.
        return next(filter(os.path.islink, map(self._path, files.WITHIN)), "")

    def _begin(self) -> None:
        self._begun = True
        self._write_json("running")

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _tables(self) -> list[str]:
        return sorted(SCHEMAS.keys() & os.listdir(self.path))

    def _rounds(self) -> int:
        """The rounds of a finished run: its rows have no line breaks in them."""
        path = self._path("rounds.csv")
        if not os.path.exists(path):
            return 0
        with open_plain(path) as file:
            return sum(1 for _ in file) - 1

    def _open(self, name: str, columns: list[str]) -> bool:
        """Opens a file to append to; returns whether it needs a header first."""
        check_declared(name, columns)
        path = self._path(name)
        self._files[name], self._columns[name] = files.open_to_append(path), columns
        if not os.path.getsize(path):
            return True
        with open_plain(path) as file:
            header = file.readline(_CHUNK).decode(errors="replace")
        # A round without a test has fewer columns than the first, which has one.
        self._columns[name] = next(csv.reader([header]))
        if not {*columns} <= {*self._columns[name]}:
            raise RecordError(f"{path} has other columns than {','.join(columns)}")
        return False

    def _write_json(self, status: str) -> None:
        self._json["status"] = status
        files.write_json(self.path, self._json)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
