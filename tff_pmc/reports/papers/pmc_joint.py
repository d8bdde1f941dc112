"""PMC's Tables 3, 5 and 7: right and wrong against DS, at each run's best round.

For each ordering, every test example is counted by whether the model of DS and the
model of the ordering classify it correctly. The two are paired in two ways:

* `aligned`: the same example of the same client.
* `shuffled`: the same row, when each round's files are put one after another in the
  order of their numbers. The authors' published code numbers them by place in a list
  of clients that it shuffles in place every round, so the answer for one client
  meets that for another, and the cells are what independence would give. The
  published tables look like this: in 3 and 5, at most 4 of 10,000 examples are
  wrong in both. (The script that made them is not published. In a folder that
  `reference_export` wrote, the order is fixed, and the two pairings are the same.)

The margins, each model's own counts of right and wrong, are the same in both.

Beside each count stands what it would be if the two models' errors had nothing to do
with each other, and the published one.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.predictions import Predictions
from tff_pmc.record.read import BASELINE, Run, with_caveat
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import Report, pages
from tff_pmc.reports.kept import cells_beside
from tff_pmc.reports.papers import pmc_paper, published
from tff_pmc.reports.papers.pmc_paper import PAPER
from tff_pmc.reports.reference_code import ReferenceRun

PAIRINGS = ("aligned", "shuffled")
WRONG, RIGHT = "X", "✓"
OUTCOMES = ((WRONG, WRONG), (WRONG, RIGHT), (RIGHT, WRONG), (RIGHT, RIGHT))
"""(DS, the ordering), in the order of the published rows."""

KEYS = ("experiment", "ds_outcome", "experiment_outcome")
_OF_RUNS = ("pairing", "ds_round", "experiment_round")
_COLUMNS = (
    *(*KEYS, *_OF_RUNS, "ours", "independent", "printed", "published"),
    *("published_independent", "difference"),
)
_NEEDED = ("experiment", *_OF_RUNS, "ours")
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
    """
    paper = PAPER[experiment]
    number, rows = paper.joint_table, list(paper.rows(runs).values())
    try:
        if len(rows) < 2:
            raise RecordError(f"there are no two runs, {BASELINE} and another")
        cells = cells_beside(rows, f"table{number}.csv", _NEEDED)
        if cells is None:
            cells = compare(rows, published.table(f"pmc_table{number}"))
    except RecordError as error:
        return Report(f"PMC Table {number} is left out: {error}")
    notes = [*paper.notes(runs), *_NOTES]
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
    table, parts = with_caveat(cells, rows), {"Examples": _grid(cells)}
    return pages.report(f"table{number}", title, notes, parts, table)


def compare(runs: Sequence[Run], theirs: pd.DataFrame) -> pd.DataFrame:
    """Returns counts in both pairings, each beside the published one.

    `independent` is what our totals alone would give, and `published_independent`
    theirs.
    """
    parts = []
    for pairing in PAIRINGS:
        rows = joint_rows(runs, pairing)
        rows["experiment"] = rows["experiment"].map(published.pmc_experiment)
        cells = published.beside(rows, theirs, KEYS).fillna({"printed": ""})
        cells["independent"] = independent(cells["ours"])
        cells["published_independent"] = independent(cells["published"])
        parts.append(cells.join(rows[list(_OF_RUNS)])[list(_COLUMNS)])
    both: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return both


def independent(counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Returns the counts that the margins of two-by-two tables give."""
    tables = np.asarray(counts, float).reshape(-1, 2, 2)
    rows, columns = tables.sum(-1, keepdims=True), tables.sum(-2, keepdims=True)
    return np.asarray(rows * columns / tables.sum((-2, -1), keepdims=True)).ravel()


def _grid(cells: pd.DataFrame) -> pages.Grid:
    outcomes = [f"{ds}, {own}" for ds, own in OUTCOMES]
    grid = [["ordering", "", *outcomes, "right: DS", "right: ordering", "round"]]
    for name, part in cells.groupby("experiment", sort=False):
        first = part[part["pairing"] == PAIRINGS[0]]
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


def best_round(run: Run) -> int:
    """Returns the first round of the highest accuracy over all test examples."""
    return int(run.accuracy.argmax()) + 1


def joint_rows(runs: Sequence[Run], pairing: str) -> pd.DataFrame:
    """Counts test examples by the outcomes of DS and of each other ordering.

    The columns are those of the published tables' CSV (X is wrong, ✓ right; `value` in
    examples), and pairing, ds_round and experiment_round. Clients of published runs
    that cannot be told apart, which `aligned` needs, are a `RecordError`.
    """
    baseline = next((run for run in runs if run.label == BASELINE), None)
    if baseline is None:
        raise RecordError(f"the joint tables need a run of {BASELINE}")
    base = _at_best_round(baseline, pairing)
    needed = ("client_ids", "row_splits", "y")
    rows: list[tuple[Any, ...]] = []
    for run in runs:
        if run is baseline:
            continue
        other = _at_best_round(run, pairing)
        same = len(base.y) == len(other.y)
        if pairing == "aligned":
            pairs = ((getattr(base, name), getattr(other, name)) for name in needed)
            same = all(np.array_equal(*pair) for pair in pairs)
        if not same:
            raise RecordError(
                f"{baseline.path} and {run.path} were tested on other clients or "
                "examples"
            )
        cells = 2 * base.right.astype(np.int64) + other.right
        counts = np.bincount(cells, minlength=4).tolist()
        where = pairing, best_round(baseline), best_round(run)
        both = zip(OUTCOMES, counts)
        rows += [(run.label, *outcome, count, *where) for outcome, count in both]
    return pd.DataFrame(rows, columns=[*KEYS, "value", *_OF_RUNS])


def _at_best_round(run: Run, pairing: str) -> Predictions:
    """Returns the answers of a run; shuffled ones in the order of a shuffled list."""
    number = best_round(run)
    if isinstance(run, ReferenceRun) and pairing != "aligned":
        return run.listed(number)
    predictions = run.predictions(number)
    if pairing == "aligned":
        return predictions
    # Ours have no such list: theirs begins in the federation's order.
    places = list(range(len(predictions.client_ids)))
    generator = random.Random(f"0/{run.label}")
    for _ in range(number):
        generator.shuffle(places)
    return predictions.reordered(places)


pmc_paper.register("pmc_table{joint_table}", report)
