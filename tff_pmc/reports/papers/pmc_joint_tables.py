"""PMC's Tables 3, 5 and 7, ours beside the published ones.

Right and wrong by DS and by each other ordering, counted by `pmc_joint` in both its
pairings; beside each count stands what it would be if the two models' errors had
nothing to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.read import BASELINE, Run, with_caveat
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import Report, pages
from tff_pmc.reports.kept import cells_beside
from tff_pmc.reports.papers import pmc_joint, pmc_paper, published
from tff_pmc.reports.papers.pmc_paper import PAPER

KEYS = ("experiment", "ds_outcome", "experiment_outcome")
_NOTES = (
    "Each model at its best round. X, ✓: wrong by DS, right by the ordering.",
    "aligned: both models' answers to the same example. shuffled: paired by the order "
    "of the files, as the authors' published code writes them.",
    "if independent: the counts that the totals alone would give.",
    "The published pairing is broken: it looks like the shuffled one, its counts being "
    "at or near independence. Only the totals (right) can be compared.",
)


def report(runs: Sequence[Run], *, experiment: str) -> Report:
    """Returns `tableN.csv` and `tableN.md`: 3 (`mnist_iid`), 5 (`mnist_noniid`) or 7.

    The CSV has a column `data` where the data has a caveat. A table that cannot be made
    (no run of DS or beside it, no predictions on record) is left out, and the text says
    why. Where runs are kept without their predictions, the page is made of the CSV
    beside them. Rows without a run, and runs without a row, are named in the notes.

    Raises:
        RecordError: see `PaperResults.rows`.
    """
    paper = PAPER[experiment]
    number, rows = paper.joint_table, list(paper.rows(runs).values())
    theirs, missing = published.table_or_note(
        f"pmc_table{number}", pd.DataFrame(columns=[*KEYS, "value"])
    )
    try:
        if len(rows) < 2:
            raise RecordError(f"there are no two runs, {BASELINE} and another")
        kept = cells_beside(rows, f"table{number}.csv")
        cells = compare(rows, theirs) if kept is None else kept
    except RecordError as error:
        return Report(f"PMC Table {number} is left out: {error}")
    notes = [*paper.notes(runs), *_NOTES, *missing]
    ours, printed = (cells[name].iloc[:4].sum() for name in ("ours", "published"))
    if printed and ours != printed:
        notes.append(
            f"Ours are {ours:.0f} test examples and the paper's {printed:.0f}: look at "
            "shares, not at counts."
        )
    title = (
        f"PMC Table {number}: test examples wrong (X) or right (✓) by DS at round "
        f"{cells['ds_round'].iloc[0]}, and by the ordering"
    )
    text, page = pages.of_grids(title, notes, {"Examples": _grid(cells)})
    name = f"table{number}"
    return Report(text, {name: with_caveat(cells, rows)}, {name: page}, digits=10)


def compare(runs: Sequence[Run], theirs: pd.DataFrame) -> pd.DataFrame:
    """Returns counts in both pairings, each beside the published one.

    The columns are `KEYS`, pairing, ds_round, experiment_round, ours, independent
    (expected from our totals), printed, published, published_independent and
    difference, ours minus published.

    Raises:
        RecordError: see `pmc_joint.joint_rows`.
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
    """Returns the counts that the margins of two-by-two tables give, [..., 2, 2]."""
    rows, columns = counts.sum(-1, keepdims=True), counts.sum(-2, keepdims=True)
    return np.asarray(rows * columns / counts.sum((-2, -1), keepdims=True))


def _grid(cells: pd.DataFrame) -> pages.Grid:
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


pmc_paper.register("pmc_table{joint_table}", report)
