"""The folder of a run: `run.json`, and the tables, which get a round's rows at a time.

    run.json        settings, seeds, versions, machine, the data's origin, how it ended
    rounds.csv ...  the six tables: see `tables`
    predictions/    a file a round: see `predictions`, with --predictions
    checkpoints/    the process's state after the last rounds: see `checkpoints`
    tensorboard/    event files of the same rounds, with --tensorboard

A checkpoint has the length of each table at its round: a run that was cut off resumes
from its last checkpoint after the tables are cut to these lengths. `timing.csv`, the
one file in which two equal runs differ, is not among them: it has a line a round.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import os
import platform
import re
from collections.abc import Mapping
from typing import Any

from tff_pmc.record import checkpoints, files, predictions
from tff_pmc.record.checkpoints import Lengths
from tff_pmc.record.files import RUN_JSON, by_flag
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.round_record import RoundRecord
from tff_pmc.record.same_run import check_same, versions, warn_of_other_versions
from tff_pmc.record.tables import TABLES

_TIMING = "timing.csv"


class FolderLostError(OSError):
    """The folder of a run, or a table in it, that was removed or changed meanwhile."""


class RunFolder:
    """Writes one run; every round is on disk when the next one starts.

    A folder that holds a run already is changed by `resume_after` and not before.

    Attributes:
        path: the folder.
        finished: whether the run that was there was finished, and is not to have more
            rounds now.
    """

    def __init__(
        self, path: str, description: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        """Takes the folder for this process alone, and makes it if it is new.

        Args:
            path: the folder: empty, or not there yet; or, to resume, one of a run with
                the same settings, or with fewer rounds.
            description: `run.json` but for versions and times.
            resume: whether to resume the run that is there.

        Raises:
            RecordError: the folder is none of these, or another process writes into it.
        """
        self.path = path
        before: dict[str, Any] = {}
        if resume and os.path.exists(self._path(RUN_JSON)):
            keys = ("status", "versions", "started", "resumed")
            before = files.read_json(self._path(RUN_JSON), keys)
        longer = False
        if before:
            longer = check_same(path, before, description)
        else:
            files.make_empty_folder(path, ", or --resume")
        self._lock = files.take_lock(path)
        self.finished = before.get("status") == "finished"
        if self.finished and longer:
            # A search of rates ends a run before its last round: that one stays so.
            self.finished = self._num_rounds() < by_flag(before["settings"])["rounds"]
        self._begun = False
        self._lengths: dict[str, int] = {}  # What the tables must have, in bytes.
        self._headers: set[str] = set()  # The tables whose columns are known.
        self._versions = versions()
        session = {"at": _now(), "versions": self._versions}
        self._json = {
            **description,
            "versions": before.get("versions", self._versions),
            "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
            "started": before.get("started", session["at"]),
            "resumed": [*before["resumed"], session] if before else [],
        }
        if not before:
            self._begin()

    def lengths(self) -> Lengths:
        """Returns the lengths of the tables that are there, but of `timing.csv`."""
        paths = {name: self._path(name) for name in _names() if name != _TIMING}
        return {
            name: os.path.getsize(path)
            for name, path in paths.items()
            if os.path.exists(path)
        }

    def resume_after(self, round_num: int, lengths: Lengths) -> None:
        """Removes all of later rounds, by the lengths at the end of this one."""
        warn_of_other_versions(self.path, self._json["versions"], self._versions)
        self._begin()
        for folder in ("", checkpoints.FOLDER, predictions.FOLDER):
            files.sweep(self._path(folder))
        for name in _names():
            path = self._path(name)
            if not os.path.exists(path):
                continue
            length = lengths.get(name, 0)
            if name == _TIMING and round_num:
                with open(path, "rb") as file:
                    length = sum(len(file.readline()) for _ in range(round_num + 1))
            if length:
                os.truncate(path, length)
                self._lengths[name] = length
            else:
                os.unlink(path)
        folder = self._path(predictions.FOLDER)
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            number = re.fullmatch(r"round_([0-9]+)\.npz", name)
            if number and int(number[1]) > round_num:
                os.unlink(os.path.join(folder, name))

    def write(self, record: RoundRecord) -> None:
        """Appends the rows of a round to all tables.

        Raises:
            FolderLostError: the folder or a table was removed, replaced or changed:
                what is written into it would be lost.
            OSError: a file cannot be written; it is named.
        """
        if self._is_lost():
            raise FolderLostError(f"{self.path} was removed or replaced during the run")
        for table in TABLES.values():
            self._append(f"{table.name}.csv", table.rows(record))

    def finish(self, status: str) -> None:
        """Writes into `run.json` how the run ended, and gives the folder free."""
        try:
            if self._begun and not self._is_lost():
                self._json["ended"] = _now()
                self._write_json(status)
        finally:
            os.close(self._lock)

    def _append(self, name: str, rows: list[dict[str, Any]]) -> None:
        if not rows:
            return
        path, before = self._path(name), self._lengths.get(name, 0)
        if (os.path.getsize(path) if os.path.exists(path) else 0) != before:
            raise FolderLostError(f"{path} was removed or changed during the run")
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, [*rows[0]], lineterminator="\n")
        if not before:
            writer.writeheader()
        elif name not in self._headers:
            with open(path, encoding="utf-8", newline="") as file:
                if next(csv.reader(file)) != [*rows[0]]:
                    raise RecordError(f"{path} has other columns than {[*rows[0]]}")
        self._headers.add(name)
        writer.writerows(rows)
        with files.naming(path), open(path, "ab") as table:
            self._lengths[name] = before + table.write(text.getvalue().encode())

    def _is_lost(self) -> bool:
        """Returns whether the folder is not the one that this process has taken."""
        with contextlib.suppress(OSError):
            lock = os.stat(self._path(files.LOCK))
            return not os.path.samestat(lock, os.fstat(self._lock))
        return True

    def _begin(self) -> None:
        self._begun = True
        self._write_json("running")

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _num_rounds(self) -> int:
        """Returns the number of recorded rounds, each of which is a line."""
        if not os.path.exists(self._path("rounds.csv")):
            return 0
        with open(self._path("rounds.csv"), "rb") as file:
            return sum(1 for _ in file) - 1

    def _write_json(self, status: str) -> None:
        self._json["status"] = status
        files.write_json(self.path, self._json)


def _names() -> list[str]:
    return [f"{name}.csv" for name in TABLES]


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
