"""PMC's Tables 3, 5 and 7: right and wrong against DS, at each run's best round.

For each ordering, every test example is counted by whether the model of DS and the
model of the ordering classify it correctly. The two are paired in two ways:

* `aligned`: the same example of the same client.
* `shuffled`: the same row, when each round's files are concatenated in the order of
  their numbers. The authors' published code numbers them by position in a list of
  clients that it shuffles in place every round, so the prediction for one client is
  paired with that for another, and the cells are what independence would give. The
  published tables look like this: in 3 and 5, at most 4 of 10,000 examples are
  wrong in both. (The script that made them is not published.)

The margins, each model's counts of right and wrong, are the same in both.

Next to each count are the count that independent errors of the two models would give,
and the published count.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record import reference_code
from tff_pmc.record.predictions import Predictions
from tff_pmc.record.record_error import RecordError, RecordMissingError
from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import Report, page_model, single_seed_only
from tff_pmc.reports.papers import pmc_paper
from tff_pmc.reports.papers.pmc_paper import PAPER
from tff_pmc.reports.statistics import published
from tff_pmc.reports.statistics.run_notes import mark_incomplete_data

PAIRINGS = ("aligned", "shuffled")
WRONG, RIGHT = "X", "✓"
OUTCOMES = ((WRONG, WRONG), (WRONG, RIGHT), (RIGHT, WRONG), (RIGHT, RIGHT))
"""(DS, the ordering), in the order of the published rows."""

KEYS = ("experiment", "ds_outcome", "experiment_outcome")
_RUN_COLUMNS = ("pairing", "ds_round", "experiment_round")
_COLUMNS = (
    *(*KEYS, *_RUN_COLUMNS, "ours", "independent", "printed", "published"),
    *("published_independent", "difference"),
)
_NEEDED = ("experiment", *_RUN_COLUMNS, "ours")
_NOTES = (
    "Each model at its best round. X, ✓: wrong by DS, right by the ordering.",
    "aligned: both models' answers to the same example. shuffled: paired by the order "
    "of the files, as the authors' published code writes them.",
    "if independent: the counts that the totals alone would give.",
    "The published pairing is broken: it looks like the shuffled one, its counts being "
    "at or near independence. Only the totals (right) can be compared.",
)


@single_seed_only
def report(results: Results, *, experiment: str) -> Report:
    """Returns `tableN.csv` and `tableN.md`: 3 (`mnist_iid`), 5 (`mnist_noniid`) or 7.

    The CSV has a column `data` if the data has a caveat. A table that has no numbers
    (no run of DS or of another ordering, no predictions) is omitted, and the text gives
    the reason. If runs are kept without their predictions, the page is computed from
    the CSV that was kept with them. Rows without a run, and runs without a row, are
    named in the notes.
    """
    paper = PAPER[experiment]
    number, rows = paper.joint_table, paper.rows(results)
    try:
        if len(rows.labels) < 2:
            raise RecordError(f"there are no two runs, {BASELINE} and another")
        cells = _cells(rows, number)
    except RecordError as error:
        return Report(f"PMC Table {number} is omitted: {error}")
    notes = [*paper.notes(results), *_NOTES]
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
    table, parts = mark_incomplete_data(cells, rows), {"Examples": _grid(cells)}
    return Report.from_grids(f"table{number}", title, notes, parts, table)


def _cells(results: Results, number: int) -> pd.DataFrame:
    """Returns the cells from predictions, or kept cells if there are none."""
    try:
        return joint_cells(results, published.table(f"pmc_table{number}"))
    except RecordMissingError:
        kept = published.stored_table(results, f"table{number}.csv", _NEEDED)
        if kept is None:
            raise
        return kept


def joint_cells(results: Results, theirs: pd.DataFrame) -> pd.DataFrame:
    """Returns counts in both pairings, each with the published one.

    `independent` is what our totals alone would give, and `published_independent`
    theirs.
    """
    parts = []
    for pairing in PAIRINGS:
        rows = joint_rows(results, pairing)
        rows["experiment"] = rows["experiment"].map(published.pmc_experiment)
        cells = published.join_published(rows, theirs, KEYS).fillna({"printed": ""})
        cells["independent"] = independent_counts(cells["ours"])
        cells["published_independent"] = independent_counts(cells["published"])
        parts.append(cells.join(rows[list(_RUN_COLUMNS)])[list(_COLUMNS)])
    cells_of_both: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return cells_of_both


def independent_counts(counts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Computes the counts that the margins of two-by-two tables imply."""
    tables = np.asarray(counts, float).reshape(-1, 2, 2)
    rows, columns = tables.sum(-1, keepdims=True), tables.sum(-2, keepdims=True)
    return np.asarray(rows * columns / tables.sum((-2, -1), keepdims=True)).ravel()


def _grid(cells: pd.DataFrame) -> page_model.Grid:
    outcomes = [f"{ds}, {pairing_rows}" for ds, pairing_rows in OUTCOMES]
    grid = [["ordering", "", *outcomes, "right: DS", "right: ordering", "round"]]
    for name, part in cells.groupby("experiment", sort=False):
        first = part[part["pairing"] == PAIRINGS[0]]
        lines = {
            **{
                str(pairing): pairing_rows["ours"]
                for pairing, pairing_rows in part.groupby("pairing")
            },
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


def joint_rows(results: Results, pairing: str) -> pd.DataFrame:
    """Counts test examples by the outcomes of DS and of each other ordering.

    The columns are those of the published tables' CSV (X is wrong, ✓ right; `value` in
    examples), and pairing, ds_round and experiment_round, the first rounds of the
    highest accuracy. Clients of published runs that cannot be distinguished, which
    `aligned` needs, are a `RecordError`.
    """
    if BASELINE not in results.labels:
        raise RecordError(f"the joint tables need a run of {BASELINE}")
    rounds = results.rounds.set_index("round")
    best = rounds.groupby("label", sort=False)["correct"].idxmax()
    predictions = {
        label: _predictions(results, label, best[label], pairing)
        for label in results.labels
    }
    base = predictions.pop(BASELINE)
    needed = ("client_ids", "row_splits", "y")
    rows: list[tuple[Any, ...]] = []
    for label, other in predictions.items():
        is_comparable = len(base.y) == len(other.y)
        if pairing == "aligned":
            pairs = ((getattr(base, name), getattr(other, name)) for name in needed)
            is_comparable = all(np.array_equal(*pair) for pair in pairs)
        if not is_comparable:
            raise RecordError(
                f"{BASELINE} and {label} were tested on different clients or examples"
            )
        cells = 2 * base.right.astype(np.int64) + other.right
        counts = np.bincount(cells, minlength=4).tolist()
        where = pairing, best[BASELINE], best[label]
        counted = zip(OUTCOMES, counts)
        rows += [(label, *outcome, count, *where) for outcome, count in counted]
    return pd.DataFrame(rows, columns=[*KEYS, "value", *_RUN_COLUMNS])


def _predictions(
    results: Results, label: str, round_num: int, pairing: str
) -> Predictions:
    """Returns the predictions of a run, those of `shuffled` in a shuffled order."""
    run = results.only(label=label).runs.iloc[0]
    if pairing == "aligned":
        return results.predictions(run["seed"], label, round_num)
    if run["path"] and reference_code.holds_runs(run["path"]):
        return reference_code.read_shuffled_predictions(run["path"], round_num)
    # Our runs have no such list; it starts in the federation's order.
    predictions = results.predictions(run["seed"], label, round_num)
    places = list(range(len(predictions.client_ids)))
    generator = random.Random(f"0/{label}")
    for _ in range(round_num):
        generator.shuffle(places)
    return predictions.reorder(places)


pmc_paper.register("pmc_table{joint_table}", report)
