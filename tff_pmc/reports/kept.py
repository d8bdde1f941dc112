"""The runs that a repository keeps, in folders, and what is known of each folder.

`kept.json`, in the folder that holds them or beside it, says of each the command that
made it and what its records cannot give again:

    {"quickstart": {"command": "make quickstart",
                    "remark": "",
                    "as_made": {"rates.csv": "it is the record itself"}}}
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import pandas as pd

from tff_pmc.record.columns import SCHEMAS
from tff_pmc.record.plain_files import names_in, open_plain
from tff_pmc.record.predictions import FOLDER
from tff_pmc.record.read import Run, read_run
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.schema import (
    COUNT,
    NUMBER,
    PACKED,
    TEXT,
    Schema,
    has_table,
    read_csv,
)
from tff_pmc.reports.read_folder import in_recorded_order

CATALOG = "kept.json"
_LARGEST = 1 << 20
_CELLS = Schema(
    {
        **dict.fromkeys(("algorithm", "clients", "metric", "printed", "data"), TEXT),
        **dict.fromkeys(("experiment", "pairing"), TEXT),
        **dict.fromkeys(("ds_outcome", "experiment_outcome"), TEXT),
        **dict.fromkeys(("ds_round", "experiment_round"), COUNT),
    },
    others=NUMBER,
)


def kept_runs(folder: str) -> list[Run]:
    """Returns the runs under a folder, in the order of the folders' names.

    A file that does not parse is a `RecordError` that names it.
    """
    found = []
    for path, folders, names in os.walk(folder):
        folders.sort()
        if "run.json" in names and has_table(path, "rounds.csv"):
            found.append(read_run(path))
    return found


def cells_beside(
    runs: Sequence[Run], name: str, needed: tuple[str, ...]
) -> Optional[pd.DataFrame]:
    """Returns the table of this name, and columns, beside runs without predictions.

    Predictions are large, and repositories of results do not keep them. The CSV of a
    table that was made from them has its cells, and the page can be made from these
    again. None where a run has predictions on record, or where there is no such table.
    """
    folders = {os.path.dirname(os.path.abspath(run.path)) for run in runs if run.path}
    recorded = any(os.path.exists(os.path.join(r.path, FOLDER)) for r in runs)
    folder = folders.pop() if len(folders) == 1 else ""
    if recorded or not folder or not os.path.exists(os.path.join(folder, name)):
        return None
    found = read_csv(folder, name, _CELLS._replace(needed=needed))
    return found.drop(columns="data", errors="ignore")


def is_record(name: str) -> bool:
    """Returns whether a file of this name is part of a record, and no table."""
    return name == "run.json" or name.removesuffix(PACKED) in SCHEMAS


@dataclasses.dataclass(frozen=True)
class KeptFolder:
    """A folder of results.

    `command` made it, `remark` is what else a reader has to know, and `as_made` says of
    files why the records do not suffice to make them again.
    """

    name: str
    path: str
    command: str = ""
    remark: str = ""
    as_made: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def runs(self) -> list[Run]:
        """Returns its runs, those of one suite in the order of their tables."""
        return [run for runs in self.runs_by_folder().values() for run in runs]

    def runs_by_folder(self) -> dict[str, list[Run]]:
        """Returns its runs by the folder, under this one, that they are in."""
        found: dict[str, list[Run]] = {}
        for run in kept_runs(self.path):
            inside = os.path.relpath(run.path, self.path)
            found.setdefault(os.path.dirname(inside), []).append(run)
        return {
            where: in_recorded_order(os.path.join(self.path, where), runs)
            for where, runs in found.items()
        }

    def products(self) -> list[str]:
        """Returns the tables and figures that are kept, as paths within the folder."""
        paths = [
            os.path.relpath(os.path.join(path, name), self.path)
            for path, _, names in os.walk(self.path)
            for name in names
            if not is_record(name)
        ]
        return sorted(paths)


def kept_folders(path: str) -> list[KeptFolder]:
    """Returns the folders of results in a folder, or the one that it is.

    What is no folder, or has a catalog that does not parse, is a `RecordError`.
    """
    path = os.path.abspath(path)
    if not os.path.isdir(path):
        raise RecordError(f"{path} is no folder")
    (parent, name), names = os.path.split(path), names_in(path)
    if CATALOG in names:
        parent, every = path, sorted(names)
    else:
        every = [name]
    known, found = _catalog(parent), []
    for name in every:
        if os.path.isdir(own := os.path.join(parent, name)):
            try:
                found.append(KeptFolder(name, own, **known.get(name, {})))
            except TypeError as error:
                raise RecordError(f"{parent}/{CATALOG}: {name}: {error}") from error
    return found


def _catalog(folder: str) -> Mapping[str, Mapping[str, Any]]:
    path = os.path.join(folder, CATALOG)
    if not os.path.exists(path):
        return {}
    with open_plain(path, at_most=_LARGEST) as file:
        try:
            found = json.load(file)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{path} cannot be read: {error}") from error
    if not (isinstance(found, dict) and {*map(type, found.values())} <= {dict}):
        raise RecordError(f"{path} must be an object of objects")
    return found
