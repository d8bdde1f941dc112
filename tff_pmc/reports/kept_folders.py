"""The folders of results that a repository keeps, and what is known of each.

`kept.json`, in the folder that holds them or beside it, says of each the command that
made it and what its records cannot give again:

    {"quickstart": {"command": "make quickstart",
                    "remark": "",
                    "tables_of": "",
                    "as_made": {"results.csv": "clients.csv is not kept"}}}
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping

from tff_pmc.reports import kept, read
from tff_pmc.reports.plain_files import names_in, open_plain
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import RecordError, RecordMissingError
from tff_pmc.reports.record_tables import SCHEMAS

CATALOG = "kept.json"
_LARGEST = 1 << 20
_RECORDS = {
    *("run.json", "timing.csv", "groups.csv", "excluded.csv"),
    *(
        name
        for name in SCHEMAS
        if name != "results.csv" and not name.startswith(("table", "dual_table"))
    ),
}


def is_record(name: str) -> bool:
    """Returns whether a file of this name is part of a record, and no table."""
    return name.removesuffix(".gz") in _RECORDS


@dataclasses.dataclass(frozen=True)
class KeptFolder:
    """A folder of results.

    Attributes:
        name: of the folder.
        path: to it.
        command: the command that made it.
        remark: what else a reader has to know.
        tables_of: the experiment whose tables are made, where it is not the runs' own.
        as_made: file -> why the records do not suffice to make it again.
    """

    name: str
    path: str
    command: str = ""
    remark: str = ""
    tables_of: str = ""
    as_made: Mapping[str, str] = dataclasses.field(default_factory=dict)

    def runs(self) -> list[Run]:
        """Returns its runs, those of one suite in the order of their tables."""
        return [run for runs in self.runs_by_folder().values() for run in runs]

    def runs_by_folder(self) -> dict[str, list[Run]]:
        """Returns its runs by the folder, under this one, that they are in.

        Raises:
            RecordError: a file does not parse.
        """
        found: dict[str, list[Run]] = {}
        for run in kept.kept_runs(self.path):
            inside = os.path.relpath(run.path, self.path)
            where = os.path.dirname(inside) if inside != "." else ""
            found.setdefault(where, []).append(run)
        return {
            where: _in_order(os.path.join(self.path, where), runs)
            for where, runs in found.items()
        }

    def products(self) -> list[str]:
        """Returns the tables and figures that are kept, as paths within the folder."""
        found = []
        for path, _, names in os.walk(self.path):
            inside = os.path.relpath(path, self.path)
            found += [
                os.path.normpath(os.path.join(inside, name))
                for name in names
                if not is_record(name)
            ]
        return sorted(found)


def kept_folders(path: str) -> list[KeptFolder]:
    """Returns the folders of results in a folder, or the one that it is.

    Raises:
        RecordError: it is no folder, or the catalog does not parse.
    """
    path = os.path.abspath(path)
    if os.path.exists(os.path.join(path, CATALOG)):
        known = _catalog(path)
        folders = [n for n in names_in(path) if os.path.isdir(os.path.join(path, n))]
        return [_folder(path, name, known) for name in sorted(folders)]
    parent, name = os.path.split(path)
    if not os.path.isdir(path):
        raise RecordError(f"{path} is no folder")
    known = _catalog(parent) if os.path.exists(os.path.join(parent, CATALOG)) else {}
    return [_folder(parent, name, known)]


def _folder(
    parent: str, name: str, known: Mapping[str, Mapping[str, str]]
) -> KeptFolder:
    of_name = known.get(name, {})
    try:
        return KeptFolder(name, os.path.join(parent, name), **of_name)  # type: ignore[arg-type]
    except TypeError as error:
        raise RecordError(f"{parent}/{CATALOG}: {name}: {error}") from error


def _catalog(folder: str) -> Mapping[str, Mapping[str, str]]:
    path = os.path.join(folder, CATALOG)
    with open_plain(path, at_most=_LARGEST) as file:
        try:
            found = json.load(file)
        except ValueError as error:
            raise RecordError(f"{path} cannot be read: {error}") from error
    if not isinstance(found, dict) or not all(
        isinstance(value, dict) for value in found.values()
    ):
        raise RecordError(f"{path} must be an object of objects")
    return found


def _in_order(folder: str, runs: list[Run]) -> list[Run]:
    """Returns runs in the order of the settings that they share, if these say it."""
    try:
        shared = read.read_info(folder).get("settings", {})
    except RecordMissingError:
        shared = {}
    order = [str(label) for label in shared.get("orderings", ())]
    labels = [run.label for run in runs]
    if not set(labels) <= set(order):
        return runs
    return sorted(runs, key=lambda run: order.index(run.label))
