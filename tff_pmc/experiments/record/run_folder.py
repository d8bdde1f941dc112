"""A run's folder: settings in `run.json`, tidy CSVs a round at a time.

    run.json      settings, seeds, versions, engine, the data's origin, how it ended
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

The first column of every CSV is the round, and rounds only grow: so a run that
was cut off goes on from its last checkpoint after the rows beyond it are cut.

These files are for programs: a client's name stands in them as it is. Whoever opens
them in a spreadsheet imports their columns as text.
"""

from __future__ import annotations

import contextlib
import csv
import datetime
import io
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, BinaryIO

from absl import logging

from tff_pmc.experiments.record import files, rows_on_disk
from tff_pmc.experiments.record.same_run import by_flag, check_same, versions
from tff_pmc.reports import run_json
from tff_pmc.reports.record_error import RecordError

RECORDS = ("rounds", "clients", "cohort", "weights")
_WHERE_THERE = ("groups", "class_f1")


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

        Args:
            path: a folder that is empty or not there yet, or, to resume, one of
                a run with the same settings, or with fewer rounds.
            description: the contents of `run.json` beside versions and times.
            resume: go on with the run that is there, if there is one.

        Raises:
            RecordError: the folder holds something else, another run's settings, what
                is no run of ours, or a run that another process writes at this moment.
        """
        self.path = path
        self._files: dict[str, BinaryIO] = {}
        self._columns: dict[str, list[str]] = {}
        before, longer = files.read_json(path) if resume else None, False
        if before is None:
            files.make_empty_folder(path)
        else:
            files.check_plain(path)
            longer = check_same(path, before, description)
            run_json.require(path, before, "status", "versions", "started", "resumed")
        self._lock = files.take_lock(path)
        self.finished = before is not None and before["status"] == "finished"
        if before is not None and self.finished and longer:
            # A search of rates ends a run before its last round: that one stays so.
            asked = by_flag(before["settings"])["rounds"]
            self.finished = self.complete_rounds() < asked
        self._begun = False
        self._versions = versions()
        self._json = {
            **description,
            "versions": self._versions if before is None else before["versions"],
            "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
            "started": _now() if before is None else before["started"],
            "resumed": [] if before is None else [*before["resumed"], self._session()],
        }
        if before is None:
            self._begin()

    def go_on_after(self, round_num: int) -> None:
        """Removes what is there of later rounds, and leftovers of a killed run.

        Those are the rows of later rounds, a last row that was cut off, and files that
        were not in their place yet.

        Raises:
            OSError: something cannot be removed or written.
        """
        if self._json["versions"] != self._versions:
            logging.warning(
                "%s was begun with other versions (%s) than it is resumed with (%s): "
                "it may differ from the run without the interruption.",
                *(self.path, self._json["versions"], self._versions),
            )
        self._begin()
        files.sweep(self.path)
        for name in self._tables():
            rows_on_disk.cut_after(os.path.join(self.path, name), round_num)
        files.remove_after(os.path.join(self.path, "predictions"), round_num)

    def complete_rounds(self) -> int:
        """The last round of which every record has all its rows."""
        found = [self._csv(name) for name in _WHERE_THERE]
        found = [path for path in found if os.path.exists(path)]
        done = min(
            rows_on_disk.complete_rounds(path)
            for path in (*map(self._csv, RECORDS), *found)
        )
        tested = rows_on_disk.column(self._csv("rounds"), "testing_rounds")
        recorded = rows_on_disk.rows_by_round(self._csv("candidates"))
        for number, expected in enumerate(tested[:done], start=1):
            if str(recorded.get(number, 0)) != expected:
                return number - 1
        return done

    def recorded_rounds(self) -> int:
        """The last round that any record has anything of; 0 without any."""
        paths = [os.path.join(self.path, name) for name in self._tables()]
        return max(map(rows_on_disk.last_round, paths), default=0)

    def append(
        self,
        name: str,
        rows: Iterable[Mapping[str, Any]],
        line_end: str = "\n",
    ) -> None:
        """Appends rows to `<name>.csv`; the first row ever fixes the columns.

        Raises:
            RecordError: the file that is there has other columns.
            OSError: it cannot be written.
        """
        rows = list(rows)
        if not rows:
            return
        text = io.StringIO(newline="")
        if name not in self._files:
            self._open(name, list(rows[0]), text, line_end)
        columns = self._columns[name]
        csv.DictWriter(text, columns, lineterminator=line_end).writerows(rows)
        with files.naming(self._csv(name)):
            self._files[name].write(text.getvalue().encode())
            self._files[name].flush()

    def release(
        self, tables: Mapping[str, Sequence[Mapping[str, Any]]]
    ) -> Mapping[str, Any]:
        """Appends a round's rows, by the name of the file; returns that of `rounds`.

        Raises:
            RecordError: see `append`.
            OSError: see `append`.
        """
        (row,) = tables["rounds"]
        self.release_round(row)
        for name, rows in tables.items():
            if name != "rounds":
                self.append(name, rows)
        return row

    def release_round(self, row: Mapping[str, Any]) -> None:
        """Appends a round's row to `rounds.csv`, its columns in alphabetical order."""
        names = ["round", *sorted(set(row) - {"round"})]
        self.append("rounds", [{name: row[name] for name in names}], "\r\n")

    def finish(self, status: str) -> None:
        """Closes the files and writes how the run ended into `run.json`.

        Raises:
            OSError: it cannot be written.
        """
        try:
            with contextlib.ExitStack() as stack:
                for file in self._files.values():
                    stack.callback(file.close)
            if self._begun:
                self._json["ended"] = _now()
                self._write_json(status)
        finally:
            os.close(self._lock)

    def _session(self) -> dict[str, Any]:
        """The time at which a run was resumed, and the versions in use."""
        return {"at": _now(), "versions": self._versions}

    def _begin(self) -> None:
        self._begun = True
        self._write_json("running")

    def _csv(self, name: str) -> str:
        return os.path.join(self.path, f"{name}.csv")

    def _tables(self) -> Sequence[str]:
        return sorted(n for n in os.listdir(self.path) if n.endswith(".csv"))

    def _open(
        self, name: str, columns: list[str], text: io.StringIO, line_end: str
    ) -> None:
        path = self._csv(name)
        file = files.open_to_append(path)
        self._files[name], self._columns[name] = file, columns
        if not os.path.getsize(path):
            csv.writer(text, lineterminator=line_end).writerow(columns)
        elif rows_on_disk.header(path) != columns:
            raise RecordError(f"{path} has other columns than {','.join(columns)}")

    def _write_json(self, status: str) -> None:
        self._json["status"] = status
        files.write_json(self.path, self._json)


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
