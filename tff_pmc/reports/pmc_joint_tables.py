"""PMC's Tables 3, 5 and 7, ours beside the published ones.

Right and wrong by DS and by each other ordering, counted by `pmc_joint` in both its
pairings; beside each count stands what it would be if the two models' errors had
nothing to do with each other.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from leaf_data import DataError
from tff_pmc.reports import grids, pmc_joint, published
from tff_pmc.reports.read import Run, with_caveat

KEYS = ("experiment", "ds_outcome", "experiment_outcome")
_NOTES = (
    "Each model at its best round. X, ✓: wrong by DS, right by the ordering.",
    "aligned: both models' answers to the same example. shuffled: paired by the order "
    "of the files, as the authors' published code writes them.",
    "if independent: the counts that the totals alone would give.",
    "The published pairing is broken: it looks like the shuffled one, its counts being "
    "at or near independence. Only the totals (right) can be compared.",
)


def write(
    runs: Mapping[str, Run], folder: str, number: int, run_notes: Sequence[str] = ()
) -> str:
    """Writes `tableN.csv` and `tableN.md`; returns the table for a terminal.

    The CSV has a column `data` where the data has a caveat.

    Args:
        runs: run folder -> run, DS among them; the rows, in their order.
        folder: where the two files go; they are replaced.
        number: of the table: 3, 5 or 7.
        run_notes: what a reader must know of the runs, before the table's own notes.

    Raises:
        DataError: see `pmc_joint.joint_rows`, or there is no run beside DS.
    """
    if len(runs) < 2:
        raise DataError("there is no run beside the one of DS")
    notes = [*run_notes, *_NOTES]
    try:
        theirs = published.table(f"pmc_table{number}")
    except published.PublishedTableMissing as error:
        theirs = pd.DataFrame(columns=[*KEYS, "printed", "value"])
        notes.append(f"No comparison: {error}.")
    cells = compare(runs, theirs)
    ours, paper = (cells[name].iloc[:4].sum() for name in ("ours", "published"))
    if paper and ours != paper:
        notes.append(
            f"Ours are {ours:.0f} test examples and the paper's {paper:.0f}: look at "
            "shares, not at counts."
        )
    path = os.path.join(folder, f"table{number}")
    marked = with_caveat(cells, runs.values())
    marked.to_csv(f"{path}.csv", index=False, float_format="%.10g")
    title = (
        f"PMC Table {number}: test examples wrong (X) or right (✓) by DS at round "
        f"{cells['ds_round'].iloc[0]}, and by the ordering"
    )
    return grids.write(f"{path}.md", title, notes, {"Examples": _grid(cells)})


def compare(runs: Mapping[str, Run], theirs: pd.DataFrame) -> pd.DataFrame:
    """Counts in both pairings, each beside the published one.

    Args:
        runs: as `write` takes them.
        theirs: the published table, as `published.table` gives it.

    Returns:
        The columns `KEYS`, pairing, ds_round, experiment_round, ours, independent
        (expected from our totals), printed, published, published_independent and
        difference = ours - published.

    Raises:
        DataError: see `pmc_joint.joint_rows`.
    """
    parts = []
    for pairing in pmc_joint.PAIRINGS:
        rows = pmc_joint.joint_rows(runs, pairing)
        rows["experiment"] = rows["experiment"].map(published.pmc_experiment)
        cells = published.beside(rows, theirs, KEYS).fillna({"printed": ""})
        for place, name in enumerate(("pairing", "ds_round", "experiment_round"), 3):
            cells.insert(place, name, rows[name])
        for place, name in ((7, "ours"), (10, "published")):
            squares = cells[name].to_numpy(float).reshape(-1, 2, 2)
            column = "independent" if name == "ours" else "published_independent"
            cells.insert(place, column, independent(squares).ravel())
        parts.append(cells)
    both: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return both


def independent(counts: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The counts that the margins of two-by-two tables give, [..., 2, 2]."""
    rows, columns = counts.sum(-1, keepdims=True), counts.sum(-2, keepdims=True)
    return np.asarray(rows * columns / counts.sum((-2, -1), keepdims=True))


def _grid(cells: pd.DataFrame) -> grids.Grid:
    outcomes = [f"{ds}, {own}" for ds, own in pmc_joint.OUTCOMES]
    grid = [["ordering", "", *outcomes, "right: DS", "right: ordering", "round"]]
    for name, part in cells.groupby("experiment", sort=False):
        first = part[part["pairing"] == pmc_joint.PAIRINGS[0]]
        lines = {
            **{str(pairing): own["ours"] for pairing, own in part.groupby("pairing")},
            "if independent": first["independent"],
            "published": first["published"],
            "published, if independent": first["published_independent"],
        }
        for place, (what, values) in enumerate(lines.items()):
            counts = values.to_numpy(float)
            if np.isnan(counts).any():
                continue
            digits = 1 if what.endswith("independent") else 0
            totals = [counts[2] + counts[3], counts[1] + counts[3]]
            shown = [f"{count:.{digits}f}" for count in counts]
            shown += [f"{total:.0f}" for total in totals]
            number = f"{first['experiment_round'].iloc[0]}" if place == 0 else ""
            grid.append(["" if place else str(name), what, *shown, number])
    return grid
