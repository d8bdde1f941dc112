"""The folder of a run, which is written round by round.

    run.json         settings, seeds, versions, machine, origin of the data, status
    rounds.csv ...   the six tables: see `tables`
    checkpoint.npz   the state of the process after the last round: see `checkpoints`
    model/           the trained model, when the run is finished: see `model_folder`
    model_best/      the model of the best round, with --keep=best
    predictions/     one file per round: see `predictions`, with --predictions
    tensorboard/     event files of all rounds, with --tensorboard

A checkpoint has the length of each table at its round. A resumed run first cuts the
tables to these lengths, and `timing.csv`, the only file in which two equal runs differ,
to one line per round.
"""

from __future__ import annotations

import contextlib
import csv
import dataclasses
import datetime
import io
import json
import os
import platform
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Optional

from absl import logging

from leaf_data.formats.data_files import expand_path
from tff_pmc.record import checkpoints, files
from tff_pmc.record.files import (
    FINISHED,
    INTERRUPTED,
    RUN_JSON,
    RUNNING,
    flatten_groups,
)
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.resume_check import (
    check_resumable,
    software_versions,
    warn_if_versions_differ,
)
from tff_pmc.record.round_record import RoundRecord
from tff_pmc.record.tables import ROUNDS, TABLES, TIMING

_ROUNDS, _TIMING = f"{ROUNDS.name}.csv", f"{TIMING.name}.csv"


class FolderLostError(OSError):
    """The folder of a run was removed or replaced during the run."""


class RunFolder:
    """Writes one run; every round is on disk when the next one starts.

    A context manager: its end writes the status of the run into `run.json`. A folder
    that already contains a run is not changed before `load`.

    Attributes:
        path: the folder.
        is_complete: whether the recorded run is finished, and has no further round
            now.
        was_ended_early: whether a callback ended the recorded run, which was then
            interrupted before it was finished.
        new_callbacks: the classes of callbacks that the recorded run did not have;
            empty for a new run.
    """

    def __init__(
        self, path: str, description: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        """Locks the folder for this process, and creates it if it does not exist.

        Args:
            path: the folder: empty or new; to resume, that of a run with the same
                settings or fewer rounds.
            description: the content of `run.json` except versions and times.
            resume: whether to resume the recorded run.

        Raises:
            RecordError: the folder is none of these, or another process writes to it.
        """
        self.path = path = expand_path(path)
        self._lengths: dict[str, int] = {}  # Of the tables' files, in bytes.
        self._columns: dict[str, list[str]] = {}  # Of the tables.
        self._dropped_metrics = False  # Whether a warning was logged.
        self._before: dict[str, Any] = {}
        longer = False
        if resume and os.path.exists(self._path(RUN_JSON)):
            keys = ("status", "versions", "started", "resumed")
            self._before = files.read_json(self._path(RUN_JSON), keys)
            longer = check_resumable(path, self._before, description)
        else:
            files.make_empty_folder(path, ", or --resume")
        self._stack = contextlib.ExitStack()
        self._lock = self._stack.enter_context(files.lock_folder(path))
        self.was_ended_early = False
        self.is_complete = self._before.get("status") == FINISHED
        if self.is_complete and longer:
            # A run that a callback ended before its last round stays complete.
            planned = flatten_groups(self._before["settings"])["rounds"]
            self.is_complete = len(ROUNDS.read(path)) < planned
        # With other flags of the callback that ended it, the run continues.
        by = self._before.get("ended_by", "")
        self._reopened = bool(by) and _callback_flags(
            self._before, by
        ) != _callback_flags(description, by)
        self.is_complete = self.is_complete and not self._reopened
        called = {*description.get("callbacks", {})} if self._before else set()
        self.new_callbacks = called - {*self._before.get("callbacks", {})}
        self._description = description
        self._json: dict[str, Any] = {}  # Empty until the folder is changed.
        if not self._before:
            self._write_start()

    def __enter__(self) -> RunFolder:
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        with self._stack:
            if self._json and not self._was_replaced():
                self._json["ended"] = _now()
                self._write_json(INTERRUPTED if kind else FINISHED)

    def load(self, initial: Any) -> tuple[Any, int]:
        """Returns the state to train from, and the number of recorded rounds.

        It removes the rows after the checkpoint's round.

        Args:
            initial: the initial state of the process.

        Raises:
            RecordError: rounds are recorded without a checkpoint, or the tables are
                shorter than at the checkpoint; nothing is changed.
        """
        sizes = {
            name: os.path.getsize(self._path(name))
            for name in _table_files()
            if os.path.exists(self._path(name))
        }
        checkpoint = checkpoints.load(self.path, initial)
        if checkpoint is None and sizes:
            raise RecordError(
                f"{self.path} cannot be resumed: it has recorded rounds but no "
                f"{checkpoints.FILE_NAME}; nothing was changed: choose another folder"
            )
        state, round_num, lengths = checkpoint or (initial, 0, {})
        for name, length in lengths.items():
            if sizes.get(name, 0) < length:
                raise RecordError(
                    f"{self._path(name)} is shorter than at the checkpoint of round "
                    f"{round_num}: the run cannot be resumed: choose another folder"
                )
        self._write_start()
        ended = self._before.get("ended_after") == round_num and not self._reopened
        if round_num and ended:
            self.was_ended_early = True
            by = self._before.get("ended_by", "")
            self.end_early(self._before["ended_early"], round_num, by)
        for name in sizes:
            with open(self._path(name), newline="", encoding="utf-8") as file:
                self._columns[name] = next(csv.reader(file), [])
            if name == _TIMING and round_num:
                with open(self._path(name), "rb") as lines:
                    rows = [lines.readline() for _ in range(round_num + 1)]
                lengths = {**lengths, name: sum(map(len, rows))}
            if lengths.get(name, 0):
                os.truncate(self._path(name), lengths[name])
                self._lengths[name] = lengths[name]
            else:
                os.unlink(self._path(name))
        return (state if round_num else initial), round_num

    def write(self, record: RoundRecord) -> None:
        """Appends the rows of a round to all tables.

        Raises:
            FolderLostError: the folder was removed or replaced.
            OSError: a file cannot be written; the message names it.
        """
        if self._was_replaced():
            raise FolderLostError(f"{self.path} was removed or replaced during the run")
        for table in TABLES.values():
            if rows := table.rows(self._drop_new_metrics(record)):
                self._append(f"{table.name}.csv", rows)

    def save(self, state: Any, round_num: int) -> None:
        """Writes the checkpoint after a round; 0 is before the first."""
        lengths = {name: n for name, n in self._lengths.items() if name != _TIMING}
        checkpoints.save(self.path, checkpoints.Checkpoint(state, round_num, lengths))

    def end_early(self, why: str, round_num: int, by: str) -> None:
        """Records in `run.json` why the run ends before its last round.

        `by` is the class of the callback that ends it.
        """
        self._json.update(ended_early=why, ended_after=round_num, ended_by=by)
        self._write_json(RUNNING)

    def _drop_new_metrics(self, record: RoundRecord) -> RoundRecord:
        """Removes metrics of the model for which `rounds.csv` has no column.

        The run was started without them, or by an earlier version.
        """
        columns = self._columns.get(_ROUNDS)
        if columns is None:
            return record
        new = sorted({*record.model_metrics} - {*columns})
        if new and not self._dropped_metrics:
            logging.warning(
                "%s has no columns for the model's metrics %s, because the run started "
                "without them: they are not recorded.",
                *(self._path(_ROUNDS), ", ".join(new)),
            )
        self._dropped_metrics = self._dropped_metrics or bool(new)
        with_column = {n: v for n, v in record.model_metrics.items() if n in columns}
        return dataclasses.replace(record, model_metrics=with_column) if new else record

    def _append(self, name: str, rows: list[dict[str, Any]]) -> None:
        text = io.StringIO(newline="")
        columns = [*rows[0]]
        writer = csv.DictWriter(text, columns, lineterminator="\n")
        if name not in self._lengths:
            writer.writeheader()
        elif self._columns[name] != columns:
            raise RecordError(f"{self._path(name)}: its columns are not {columns}")
        self._columns[name] = columns
        writer.writerows(rows)
        with (
            files.naming_file(self._path(name)),
            open(self._path(name), "ab") as table,
        ):
            table.write(text.getvalue().encode())
            table.flush()
            os.fsync(table.fileno())  # Before the checkpoint with its length.
            self._lengths[name] = table.tell()

    def _was_replaced(self) -> bool:
        """Returns whether the folder is not the one that this process locked."""
        with contextlib.suppress(OSError):
            lock = os.stat(self._path(files.LOCK))
            return not os.path.samestat(lock, os.fstat(self._lock))
        return True

    def _write_start(self) -> None:
        """Writes `run.json` of a run that starts or is resumed."""
        if self._json:
            return
        before, versions = self._before, software_versions()
        session = {"at": _now(), "versions": versions}
        self._json = {
            **self._description,
            "versions": before.get("versions", versions),
            "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
            "started": before.get("started", session["at"]),
            "resumed": [*before["resumed"], session] if before else [],
        }
        warn_if_versions_differ(self.path, self._json["versions"], versions)
        self._write_json(RUNNING)

    def _path(self, name: str) -> str:
        return os.path.join(self.path, name)

    def _write_json(self, status: str) -> None:
        self._json["status"] = status
        files.write_json(self.path, self._json)


def _callback_flags(description: Mapping[str, Any], callback: str) -> Any:
    """Returns the flags of a callback as `run.json` has them, or None."""
    flags = description.get("callbacks", {}).get(callback)
    return json.loads(json.dumps(flags))


def _table_files() -> list[str]:
    return [f"{name}.csv" for name in TABLES]


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
