"""The papers' published tables as data, and ours beside them.

The tables are the files of `results/paper`, which a wheel has inside. Should they be
missing, a report goes on without them and says so.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import pandas as pd

from tff_pmc import project_files
from tff_pmc.record.read import BASELINE

FOLDER = str(project_files.folder("results/paper"))
"""The folder of the published tables."""

DASH = "—"
"""Not reached, as the papers print it."""


class PublishedTableMissing(FileNotFoundError):
    """A published table is not where it should be."""


def table(name: str) -> pd.DataFrame:
    """Returns a published table, as printed.

    Args:
        name: the name of its file in `results/paper` without `.csv`, for example
            `da_table1`.

    Returns:
        A row a cell: the columns that say which cell, `printed` (the text on the
        page) and `value` (float, NaN where the page has a dash).

    Raises:
        PublishedTableMissing: there is no such file.
    """
    path = os.path.join(FOLDER, f"{name}.csv")
    try:
        return pd.read_csv(path, dtype={"printed": str, "value": float})
    except FileNotFoundError:
        raise PublishedTableMissing(
            f"no published table {path}: the tables come with the project's "
            "checkout and its wheel"
        ) from None


def table_or_note(name: str, like: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """Returns a published table and no note, or one like ours and why it is empty."""
    try:
        return table(name), []
    except PublishedTableMissing as error:
        return like.head(0).assign(printed=""), [f"No comparison: {error}."]


def rows_note(labels: Sequence[str]) -> list[str]:
    """Returns a note that names runs which are no row of a table, if there are any."""
    return [f"Runs that are no row of this table: {'; '.join(labels)}."] * bool(labels)


def beside(
    ours: pd.DataFrame, theirs: pd.DataFrame, keys: Sequence[str]
) -> pd.DataFrame:
    """Returns our cells in our order, each with the published one of the same keys.

    The columns are `keys`, `ours`, `printed` (NaN where nothing was published, a dash
    where the paper did not reach), `published`, and `difference` = ours - published. A
    cell that is there twice is a `ValueError`.
    """
    keys = list(keys)
    left = ours.rename(columns={"value": "ours"})[[*keys, "ours"]]
    right = theirs.rename(columns={"value": "published"})
    right = right[[*keys, "printed", "published"]]
    joined = pd.merge(left, right, how="left", on=keys, validate="one_to_one")
    joined["difference"] = joined["ours"] - joined["published"]
    return joined


def rounds_text(rounds: float) -> str:
    """Returns a number of rounds with two decimals at most; a dash for NaN."""
    return DASH if math.isnan(rounds) else f"{rounds:.2f}".rstrip("0").rstrip(".")


def pmc_experiment(label: str) -> str:
    """Returns a run's label as PMC prints it, `LD≻DS≻MW`: MW is the divergence."""
    if label == BASELINE:
        return f"{BASELINE} (baseline)"
    return label.replace("MD", "MW").replace(",", "≻")
