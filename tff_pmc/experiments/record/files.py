"""The files of a run folder: locked, written in one step, cut to whole rounds."""

from __future__ import annotations

import csv
import fcntl
import json
import os
from collections.abc import Mapping
from typing import Any, Optional

from tff_pmc.reports.record_error import RecordError

_LOCK = ".lock"

FORMAT = 2
"""The form of `run.json` and of the checkpoints; 1 had the settings in one table."""


def read_json(path: str) -> Optional[dict[str, Any]]:
    """Reads a run folder's `run.json`; returns None when there is none.

    Raises:
        RecordError: the file is broken.
    """
    name = os.path.join(path, "run.json")
    try:
        with open(name) as file:
            found: dict[str, Any] = json.load(file)
            return found
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise RecordError(f"{name} cannot be read: {error}") from error


def write_json(path: str, content: Mapping[str, Any]) -> None:
    """Writes a folder's `run.json` in one step."""
    name = os.path.join(path, "run.json")
    with open(name + ".new", "w") as file:
        json.dump({"format": FORMAT, **content}, file, indent=2)
        file.write("\n")
    os.replace(name + ".new", name)


def make_empty_folder(path: str) -> None:
    """Makes a folder to write results into.

    Raises:
        RecordError: it holds something already, or cannot be made.
    """
    # A lock, or a file that a killed run had not yet put in its place.
    entries = [
        name
        for name in list_folder(path)
        if name != _LOCK and not name.endswith(".new")
    ]
    if entries:
        raise RecordError(
            f"--output_dir={path} is not empty (it holds {sorted(entries)[0]}); "
            "results are never overwritten: name another folder, or --resume"
        )


def list_folder(path: str) -> list[str]:
    """Lists a folder's entries; the folder is made when it is not there.

    Raises:
        RecordError: it cannot be made or read.
    """
    try:
        os.makedirs(path, exist_ok=True)
        return os.listdir(path)
    except OSError as error:
        raise RecordError(f"--output_dir={path}: {error.strerror}") from error


def take_lock(path: str) -> int:
    """Takes a folder for this process.

    Returns:
        A file descriptor; the lock ends when it is closed, or with the process.

    Raises:
        RecordError: another process has it.
    """
    try:
        descriptor = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RecordError(f"--output_dir={path}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise RecordError(
            f"--output_dir={path} is in use: another run writes into it"
        ) from error
    return descriptor


def cut_after(path: str, round_num: int) -> None:
    """Removes a CSV's rows of later rounds, and a last row that was cut off."""
    with open(path, newline="") as file:
        lines = file.readlines()
    if not lines or not lines[0].endswith("\n"):  # Cut off in its header.
        os.remove(path)
        return
    whole_lines = lines[:1]
    for line in lines[1:]:
        first = line.split(",", 1)[0]
        whole = line.endswith("\n") and first.isdigit()
        if not whole or int(first) > round_num:
            break
        whole_lines.append(line)
    if len(whole_lines) < len(lines):
        with open(path + ".new", "w", newline="") as file:
            file.writelines(whole_lines)
        os.replace(path + ".new", path)


def column(path: str, name: str) -> list[str]:
    """Returns a column of a CSV's complete lines; empty where there is no file."""
    try:
        with open(path, newline="") as file:
            lines = [line for line in file if line.endswith("\n")]
    except FileNotFoundError:
        return []
    return [row[name] for row in csv.DictReader(lines) if row.get(name)]


def remove_after(folder: str, round_num: int) -> None:
    """Removes a folder's files `round_NNNN.*` of later rounds, if it is there."""
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        number = name.partition("_")[2].partition(".")[0]
        if name.startswith("round_") and number.isdigit() and int(number) > round_num:
            os.remove(os.path.join(folder, name))


def complete_rounds(path: str) -> int:
    """Returns the last round with as many rows as round 1, before any gap."""
    counts: dict[int, int] = {}
    try:
        with open(path, newline="") as file:
            for line in list(file)[1:]:
                first = line.split(",", 1)[0]
                if not (line.endswith("\n") and first.isdigit()):
                    break
                counts[int(first)] = counts.get(int(first), 0) + 1
    except FileNotFoundError:
        return 0
    done = 0
    while counts.get(done + 1) and counts[done + 1] == counts[1]:
        done += 1
    return done
