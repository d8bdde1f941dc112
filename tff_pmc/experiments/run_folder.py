"""A run's folder: settings in `run.json`, tidy CSVs a row at a time.

run.json      settings, seeds, versions, the data's origin, how it ended
rounds.csv    a row a round: accuracy, percentiles, loss, seconds
clients.csv   a row a client and round: correct, examples (the test set)
cohort.csv    a row a cohort client and round: raw criteria, weight
weights.csv   a row an ordering and round: how unequal its weights were
"""

from __future__ import annotations

import csv
import datetime
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from typing import Any

import tff_pmc
from tff_pmc.experiments.config import ConfigError

_PACKAGES = ("tensorflow-federated", "tensorflow-cpu", "tensorflow", "numpy")


class RunFolder:
    """Writes one run; every round is on disk when the next one starts."""

    def __init__(self, path: str, description: Mapping[str, Any]) -> None:
        """Makes the folder and writes `run.json`.

        Args:
            path: a folder that does not exist yet or is empty.
            description: what goes into `run.json` beside versions and times.

        Raises:
            ConfigError: the folder holds something already, or cannot be made.
        """
        self.path = path
        make_empty_folder(path)
        self._files: dict[str, Any] = {}
        self._writers: dict[str, Any] = {}
        self._json = {
            **description,
            "versions": versions(),
            "machine": {"platform": platform.platform(), "cores": os.cpu_count()},
            "started": _now(),
        }
        self._write_json("running")

    def append(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """Appends rows to `<name>.csv`; the first row fixes the columns."""
        for row in rows:
            if name not in self._writers:
                path = os.path.join(self.path, f"{name}.csv")
                file = open(path, "w", newline="")  # noqa: SIM115 - kept open
                writer = csv.DictWriter(file, list(row), lineterminator="\n")
                writer.writeheader()
                self._files[name], self._writers[name] = file, writer
            self._writers[name].writerow(row)
        if name in self._files:
            self._files[name].flush()

    def finish(self, status: str) -> None:
        """Closes the files and writes how the run ended into `run.json`."""
        for file in self._files.values():
            file.close()
        self._json["ended"] = _now()
        self._write_json(status)

    def _write_json(self, status: str) -> None:
        self._json["status"] = status
        path = os.path.join(self.path, "run.json")
        with open(path + ".new", "w") as file:
            json.dump(self._json, file, indent=2)
            file.write("\n")
        os.replace(path + ".new", path)


def make_empty_folder(path: str) -> None:
    """Makes a folder to write results into.

    Raises:
        ConfigError: it holds something already, or cannot be made.
    """
    try:
        os.makedirs(path, exist_ok=True)
        entries = os.listdir(path)
    except OSError as error:
        raise ConfigError(f"--output_dir={path}: {error.strerror}") from error
    if entries:
        raise ConfigError(
            f"--output_dir={path} is not empty (it holds {sorted(entries)[0]}); "
            "results are never overwritten: name another folder"
        )


def versions() -> dict[str, str | None]:
    """Versions of what a run's numbers depend on."""
    found: dict[str, str | None] = {
        "tff_pmc": tff_pmc.__version__,
        "commit": _git_commit(),
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def command_line(arguments: Sequence[str] = ()) -> list[str]:
    """The command that started this process, without the machine's folders."""
    program, *rest = list(arguments) or sys.argv
    return [os.path.basename(program), *rest]


def _git_commit() -> str | None:
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
