"""A run's folder: settings in `run.json`, tidy CSVs a round at a time.

    run.json      settings, seeds, versions, engine, the data's origin, how it ended
    rounds.csv    a row a round: accuracy, percentiles, loss
    clients.csv   a row a client and round: correct, examples (the test set)
    cohort.csv    a row a cohort client and round: raw criteria, weight
    weights.csv   a row an ordering and round: how unequal its weights were
    candidates.csv  a row a candidate tested and round, where the ordering is adjusted
    class_f1.csv  a row a class and round, where the server has examples of its own:
                  the F1 on these of the model after the round
    groups.csv    a row a group and round, where clients have attributes
    timing.csv    a row a round: seconds (the one file two equal runs differ in)
    predictions/  a file a round: each test example's predicted label, if asked for
    checkpoints/  the process's state after the last rounds

The first column of every CSV is the round, and rounds only grow: so a run that
was cut off goes on from its last checkpoint after the rows beyond it are cut.
"""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import csv
import datetime
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib import metadata
from typing import Any, Optional

from absl import logging

import tff_pmc
from tff_pmc._lazy import tff
from tff_pmc.experiments.record import files
from tff_pmc.reports.record_error import RecordError

_PACKAGES = ("tensorflow-federated", "tensorflow-cpu", "tensorflow", "numpy")
RECORDS = ("rounds", "clients", "cohort", "weights")
_ALL_RECORDS = (*RECORDS, "groups", "candidates")


class RunFolder:
    """Writes one run; every round is on disk when the next one starts."""

    def __init__(
        self, path: str, description: Mapping[str, Any], *, resume: bool = False
    ) -> None:
        """Takes the folder for this process alone, and writes `run.json`.

        Args:
            path: a folder that is empty or not there yet, or, to resume, one of
                a run with the same settings.
            description: the contents of `run.json` beside versions and times.
            resume: go on with the run that is there, if there is one.

        Raises:
            RecordError: the folder holds something else, another run's settings,
                or a run that another process writes at this moment.
        """
        self.path = path
        self._files: dict[str, Any] = {}
        self._writers: dict[str, Any] = {}
        self._rounds: Any = None
        before = files.read_json(path) if resume else None
        if before is None:
            files.make_empty_folder(path)
        else:
            check_same(path, before, description)
        self._lock = files.take_lock(path)
        self.status = None if before is None else before["status"]
        if before is not None and before["versions"] != versions():
            logging.warning(
                "%s was begun with other versions (%s) than it is resumed with (%s): "
                "it may differ from the run without the interruption.",
                *(path, before["versions"], versions()),
            )
        self._json = {
            **description,
            "versions": versions() if before is None else before["versions"],
            "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
            "started": _now() if before is None else before["started"],
            "resumed": [] if before is None else [*before["resumed"], _session()],
        }
        if self.status != "finished":
            self._write_json("running")

    def cut_after(self, round_num: int) -> None:
        """Removes the rows of later rounds, and a last row that was cut off."""
        for name in sorted(os.listdir(self.path)):
            if name.endswith(".csv"):
                files.cut_after(os.path.join(self.path, name), round_num)
        files.remove_after(os.path.join(self.path, "predictions"), round_num)

    def complete_rounds(self) -> int:
        """The last round of which every record has all its rows."""
        paths = {name: os.path.join(self.path, f"{name}.csv") for name in _ALL_RECORDS}
        done = min(files.complete_rounds(paths[name]) for name in RECORDS)
        if os.path.exists(paths["groups"]):
            done = min(done, files.complete_rounds(paths["groups"]))
        tested = files.column(paths["rounds"], "testing_rounds")
        recorded = collections.Counter(files.column(paths["candidates"], "round"))
        for number in range(1, done + 1):
            if recorded[str(number)] != int(tested[number - 1]):
                return number - 1
        return done

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Appends rows to `<name>.csv`; the first row ever fixes the columns."""
        for row in rows:
            if name not in self._writers:
                path = os.path.join(self.path, f"{name}.csv")
                file = open(path, "a", newline="")
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                if not file.tell():
                    writer.writeheader()
                self._files[name], self._writers[name] = file, writer
            self._writers[name].writerow(row)
        if name in self._files:
            self._files[name].flush()

    def release_round(self, row: Mapping[str, Any]) -> None:
        """Writes a round's row of `rounds.csv`, in the place of any later one."""
        if self._rounds is None:
            self._rounds = tff.program.CSVFileReleaseManager(
                os.path.join(self.path, "rounds.csv"), key_fieldname="round"
            )
        values = collections.OrderedDict(row)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:  # Notebooks have a loop.
            release = self._rounds.release(values, values.pop("round"))
            pool.submit(asyncio.run, release).result()

    def finish(self, status: str) -> None:
        """Closes the files and writes how the run ended into `run.json`."""
        for file in self._files.values():
            file.close()
        if self.status != "finished":
            self._json["ended"] = _now()
            self._write_json(status)
        os.close(self._lock)

    def _write_json(self, status: str) -> None:
        self._json["status"] = status
        files.write_json(self.path, self._json)


def _session() -> dict[str, Any]:
    """The time at which a run was resumed, and the versions in use."""
    return {"at": _now(), "versions": versions()}


def versions() -> dict[str, Optional[str]]:
    """The versions of the software that a run's numbers depend on, and the engine."""
    from tff_pmc import runtime  # It imports TensorFlow.

    found: dict[str, Optional[str]] = {
        "tff_pmc": tff_pmc.__version__,
        "commit": _git_commit(),
        "python": platform.python_version(),
        **runtime.engine_versions(),
    }
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def check_same(
    path: str, before: Optional[Mapping[str, Any]], description: Mapping[str, Any]
) -> None:
    """Refuses to go on with another run, and names what differs.

    Raises:
        RecordError: there is no run, or one of other settings or data.
    """
    if before is None:
        raise RecordError(f"--resume: there is no run in {path}")
    if before.get("format") != files.FORMAT:
        raise RecordError(
            f"--resume: {path} was begun by an earlier version, whose settings and "
            "checkpoints have other names: run into another folder"
        )
    now = json.loads(json.dumps(description))  # Tuples as the file has them.
    pairs = [
        (_by_flag(before.get("settings", {})), _by_flag(now["settings"])),
        (before.get("data", {}), now["data"]),
    ]
    differing = [
        f"{key}: {old.get(key)!r} there, {new.get(key)!r} here"
        for old, new in pairs
        for key in sorted({*old, *new})
        if old.get(key) != new.get(key)
    ]
    if differing:
        raise RecordError(
            f"--resume: {path} is another run ({'; '.join(differing)}); give its "
            "flags, or name another folder"
        )


def _by_flag(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of all groups in one table."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found.update(value if isinstance(value, dict) else {name: value})
    return found


def _git_commit() -> Optional[str]:
    here = os.path.dirname(os.path.abspath(__file__))
    try:
        done = subprocess.run(
            ["git", "-C", here, "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
