"""Reads a run, or an experiments folder, ours or the authors' published code's."""

from __future__ import annotations

import os

from tff_pmc.reports import read, reference_code
from tff_pmc.reports.plain_files import names_in
from tff_pmc.reports.record_error import RecordError


def read_runs(path: str) -> list[read.Run]:
    """Reads a run or an experiments folder; the folder shows whose it is.

    Returns:
        The runs: ours in the order of the folders' names, the published code's, whose
        folders are named by a time, in that of the indices.

    Raises:
        RecordError: there is no run, or a run's file is broken.
        FileNotFoundError: a run's file is missing.
    """
    if not os.path.isdir(path):
        raise RecordError(f"{path} is no folder")
    ours = os.path.exists(os.path.join(path, "clients.csv"))
    if ours or reference_code.is_run(path):
        return [_read_run(path)]
    folders = [os.path.join(path, name) for name in sorted(names_in(path))]
    runs = [
        _read_run(folder)
        for folder in folders
        if reference_code.is_run(folder)
        or os.path.exists(os.path.join(folder, "run.json"))
    ]
    if not runs:
        if os.path.exists(os.path.join(path, "run.json")):
            raise RecordError(
                f"{path} has run.json but no clients.csv, which tables are made from"
            )
        raise RecordError(
            f"{path} is no run (with run.json or {reference_code.PARAMETERS}) and no "
            "folder of runs"
        )
    return sorted(runs, key=_index)


def _read_run(folder: str) -> read.Run:
    if reference_code.is_run(folder):
        return reference_code.read_run(folder)
    return read.read_run(folder)


def _index(run: read.Run) -> int:
    return run.index if isinstance(run, reference_code.ReferenceRun) else 0
