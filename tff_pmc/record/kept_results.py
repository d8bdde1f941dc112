"""Kept results: the runs of a folder as one table of each kind, for a repository."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Optional, Protocol

import pandas as pd

from leaf_data.formats.data_files import expand_path
from tff_pmc.record.files import lists_to_tuples, read_json
from tff_pmc.record.tables import GZIP_SUFFIX, RUN_KEY, TABLES

EXPERIMENT_JSON = "experiment.json"
"""The file that describes the runs of a kept folder of results."""
ONLY_TESTED = "only_tested"
"""The key there that is true where rounds without a test are left out."""


class _Results(Protocol):
    """`Results`, which also has each of `TABLES` by its name."""

    runs: pd.DataFrame


def read_kept(
    path: str,
) -> tuple[pd.DataFrame, Callable[[str], Optional[pd.DataFrame]], dict[str, Any]]:
    """Reads a folder of kept results: the parts of which `Results` consists.

    Returns:
        The runs, one row each; a function from the name of a table to the table of all
        runs, or None if no run recorded it; and the content of `experiment.json`.
    """
    name = os.path.join(path, EXPERIMENT_JSON)
    about = read_json(name)
    rows = [
        {
            "path": "",
            **lists_to_tuples(about.get("settings", {})),
            **lists_to_tuples(run),
        }
        for run in about.get("runs", [])
    ]

    def read(table: str) -> Optional[pd.DataFrame]:
        if not TABLES[table].path(path):
            return None
        return TABLES[table].read(path, every_round=not about.get(ONLY_TESTED))

    return pd.DataFrame(rows, columns=None if rows else RUN_KEY), read, about


def keep_results(
    results: _Results, folder: str, about: Mapping[str, Any] | None = None
) -> None:
    """Writes `Results` into a folder as one table of each kind, for a repository.

    `experiment.json` has the settings that all runs share once, and one row per run
    with those that differ. Equal results give equal files.
    """
    folder = expand_path(folder)
    os.makedirs(folder, exist_ok=True)
    runs = results.runs.drop(columns="path")
    rows = [
        {name: value for name, value in row.items() if not _is_nan(value)}
        for row in runs.to_dict("records")
    ]
    first = rows[0] if rows else {}
    shared = {
        name: value
        for name, value in first.items()
        if name not in RUN_KEY
        and all(name in row and row[name] == value for row in rows)
    }
    varying = [{k: v for k, v in row.items() if k not in shared} for row in rows]
    content = {**(about or {}), "settings": shared, "runs": varying}
    with open(os.path.join(folder, EXPERIMENT_JSON), "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.write("\n")
    for name in TABLES:
        table = getattr(results, name)
        if len(table):
            text = table.to_csv(index=False, lineterminator="\n")
            with open(os.path.join(folder, f"{name}.csv{GZIP_SUFFIX}"), "wb") as packed:
                packed.write(gzip.compress(text.encode(), mtime=0))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value
