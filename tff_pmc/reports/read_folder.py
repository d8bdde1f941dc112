"""Reads a run, or an experiments folder, ours or the authors' published code's."""

from __future__ import annotations

import contextlib
import logging
import os
import re
from collections.abc import Sequence
from typing import Any

from tff_pmc.record import run_json
from tff_pmc.record.plain_files import names_in
from tff_pmc.record.read import Run, read_run
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.schema import has_table
from tff_pmc.reports import reference_code


def read_runs(path: str) -> list[Run]:
    """Reads a run or an experiments folder; the folder shows whose it is.

    Our runs come in the order in which they were made, where a `run.json` of all of
    them has it, else of the folders' names; the published code's, whose folders are
    named by a time, in that of the indices. No run, or one whose file is broken, is a
    `RecordError`; a missing file is a `FileNotFoundError`, too.
    """
    runs = [
        reference_code.read_run(folder)
        if reference_code.is_run(folder)
        else read_run(folder)
        for folder in run_folders(path)
    ]
    if any(isinstance(run, reference_code.ReferenceRun) for run in runs):
        return sorted(runs, key=lambda run: getattr(run, "index", 0))
    if lacking := missing(path, runs):
        logging.warning("%s: no run is there of %s", path, "; ".join(lacking))
    return in_recorded_order(path, runs)


def seed_folders(path: str) -> dict[int, str]:
    """The folders of runs under each seed in a folder, by the seed; there may be none.

    What else the folder holds is made of them.
    """
    names = names_in(path) if os.path.isdir(path) else ()
    found = [re.fullmatch("seed_([0-9]{1,10})", name) for name in names]
    seeds = {int(one[1]): os.path.join(path, one[0]) for one in found if one}
    return dict(sorted(seeds.items()))


def in_recorded_order(path: str, runs: Sequence[Run]) -> list[Run]:
    """Returns runs in the order of the settings that they share, where these say it."""
    places = {label: place for place, label in enumerate(_labels(path))}
    return sorted(runs, key=lambda run: places.get(run.label, len(places)))


def missing(path: str, runs: Sequence[Run]) -> list[str]:
    """Returns the labels of runs that the folder's `run.json` has and nothing else."""
    there = {run.label for run in runs}
    return [label for label in _labels(path) if label not in there]


def baseline_of(path: str) -> str:
    """Returns what a folder's runs are held against, if its `run.json` has it."""
    return str(_recorded(path, "baseline") or "")


def _labels(path: str) -> Sequence[str]:
    found: Sequence[str] = _recorded(path, "orderings") or ()
    return found


def _recorded(path: str, setting: str) -> Any:
    """What the `run.json` of a folder of runs says; each run's own is what counts."""
    with contextlib.suppress(RecordError):
        return run_json.read(path).get("settings", {}).get(setting)
    return None


def run_folders(path: str) -> list[str]:
    """Returns the folders of the runs in a folder: itself alone, if it is a run."""
    if not os.path.isdir(path):
        raise RecordError(f"{path} is no folder")
    ours = has_table(path, "clients.csv") or has_table(path, "rounds.csv")
    if ours or reference_code.is_run(path):
        return [path]
    names = sorted(names_in(path))
    seeds = list(seed_folders(path).values())
    if seeds:
        raise RecordError(
            f"{path} holds runs under several seeds: name one of its folders, as "
            f"{seeds[0]}; --tables takes all of them"
        )
    folders = [
        folder
        for folder in (os.path.join(path, name) for name in names)
        if reference_code.is_run(folder)
        or os.path.exists(os.path.join(folder, "run.json"))
    ]
    if not folders:
        if "run.json" in names:
            others = [name for name in names if name.endswith((".csv", ".md"))]
            there = f"; there is only {', '.join(others)}" if others else ""
            raise RecordError(
                f"{path} has run.json but no clients.csv or rounds.csv, which tables "
                f"are made from{there}"
            )
        raise RecordError(
            f"{path} is no run (with run.json or {reference_code.PARAMETERS}) and no "
            "folder of runs"
        )
    return folders
