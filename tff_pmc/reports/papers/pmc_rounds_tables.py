"""PMC's Tables 2, 4 and 6 from runs, ours with the published numbers.

They have the rounds DS needs until a share of the devices reaches a target accuracy,
and the rounds every other ordering gains over DS. Tables 3, 5 and 7 come from the same
runs, in `pmc_joint`.

Two rules of the paper, recomputed from its cells:

* A run that does not arrive counts as arriving in its last round (Table 6: 100), so
  its gain is a bound. Where DS does not arrive either, the cell is a dash.
* "Avg." of the tables is the sum of the gains / 9, a dash counting as 0. The paper's
  text has means of these (7.5 and 7.6) and averages over the columns that have a gain
  (8.6, 11.5 and 13).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import Report, pages
from tff_pmc.reports.conditions import data_caveat, with_caveat
from tff_pmc.reports.papers import pmc_paper, published
from tff_pmc.reports.papers.pmc_paper import AVERAGE, KEYS, PAPER, TEXT_AVERAGE
from tff_pmc.reports.rounds_to_target import (
    DEVICES,
    caveats,
    gains_over,
    reach_of,
    reach_rule,
    rounds_to_target,
)

AT_MOST, AT_LEAST = "at most", "at least"
AVERAGES = (AVERAGE, TEXT_AVERAGE)
_WRONG = "†"
_TEXT_TITLE = "Averages that the paper's text names"
_MARKS = {AT_MOST: "≤", AT_LEAST: "≥", "": ""}
_RULES = (
    "Gain: rounds of DS minus rounds of the ordering; more is better. Difference: ours "
    "minus the published.",
    "≤ and ≥: the ordering, or DS, did not arrive and counts as arriving in the last "
    f"round, as in the paper. {pages.MISSING}: neither arrived.",
    f"{AVERAGE}: the sum of the gains / 9, a dash as 0 (the paper's tables). "
    f"{TEXT_AVERAGE}: divided by the columns that have a gain, as some averages of the "
    "paper's text are.",
)


def report(results: Results, *, experiment: str) -> Report:
    """Returns `tableN.csv` and `tableN.md`: 2 (`mnist_iid`), 4 (`mnist_noniid`) or 6.

    Without a run of DS the table is left out, and the text reports it. Rows without a
    run, and runs without a row, are named in the notes. Runs of different rules are a
    `RecordError`.
    """
    paper = PAPER[experiment]
    rows, number = paper.rows(results), paper.rounds_table
    if BASELINE not in rows.labels:
        why = f"no run of {BASELINE}, its baseline"
        return Report(f"PMC Table {number} is left out: {why}.")
    ours = tidy_rows(rows, paper.targets)
    theirs = pmc_paper.published_rows(number)
    notes = [
        *paper.notes(results),
        reach_rule(reach_of(rows)),
        *caveats(rows),
        *_RULES,
    ]
    length, caveat = rows.length.max(), data_caveat(rows)
    other_length = paper.rounds is not None and length != paper.rounds
    if other_length:
        notes.append(
            f"Ours end in round {length}, the paper's in round {paper.rounds}: gains "
            "censored in ours (≤, ≥) are not comparable with gains censored there."
        )
    notes += paper.prose
    if paper.labels_in_doubt:
        comparable = not (caveat or other_length)
        notes += pmc_paper.exchanged_labels(ours, theirs, comparable=comparable)
    cells = published.joined(ours, theirs, KEYS).fillna({"printed": ""})
    cells["bound"] = ours["bound"]
    keys = list(zip(*(cells[key] for key in KEYS)))
    cells["impossible"] = [int(key in pmc_paper.IMPOSSIBLE) for key in keys]
    cells["text"] = [paper.text_numbers.get(key, np.nan) for key in keys]
    # The targets that DS reaches in fewer columns here than in the paper.
    missing_here = cells["ours"].isna() & cells["published"].notna()
    of_ds = missing_here & (cells["quantity"] == "rounds")
    short = sorted(map(int, set(cells.loc[of_ds, KEYS[2]])))
    early = cells[KEYS[2]].isin(short) & cells["devices"].isin(AVERAGES)
    cells.loc[early, "difference"] = np.nan
    if short:
        notes.append(
            f"At {', '.join(map(str, short))} % our run of DS is too short for columns "
            "that the paper has: our averages are of fewer columns there, and are not "
            "compared."
        )
    if cells["impossible"].any():
        notes.append(
            f"{_WRONG}: impossible as printed: more of the devices in an earlier round."
        )
    title = f"PMC Table {number}: {paper.title}, rounds of DS and gains over DS"
    parts = {f"{target} %": _grid(part) for target, part in cells.groupby(KEYS[2])}
    if cells["text"].notna().any():
        parts[_TEXT_TITLE] = _text_grid(cells[cells["text"].notna()])
    table = with_caveat(cells, rows)
    return pages.report(f"table{number}", title, notes, parts, table)


def tidy_rows(results: Results, targets: Sequence[int]) -> pd.DataFrame:
    """Returns the cells of equally long runs under one seed, that of DS among them.

    The columns are `KEYS` (experiment as the paper prints it; devices `10%` to `90%`,
    and of gains `Avg.` and `Avg. (text)`), `value` in rounds (NaN: not reached), and
    `bound`: `at most` where the run did not arrive, `at least` where DS did not.
    """
    reached = rounds_to_target(results, targets).pivot(
        index=["target", "label"], columns="devices", values="rounds"
    )
    last = results.length.max()
    parts = []
    for target in targets:
        base = reached.loc[target, BASELINE]
        for label in results.labels:
            own = reached.loc[target, label]
            cells = pd.DataFrame({"value": base, "bound": ""})
            if label != BASELINE:
                cells["value"] = gains_over(base, own, last)
                cells.loc[own.isna(), "bound"] = AT_MOST
                cells.loc[base.isna(), "bound"] = AT_LEAST
                cells.loc[base.isna() & own.isna(), "bound"] = ""
            cells.index = [f"{share}%" for share in cells.index]
            if label != BASELINE:
                known = cells["value"].dropna()
                total = known.sum() if len(known) else np.nan
                cells.loc[AVERAGE] = total / len(DEVICES), ""
                cells.loc[TEXT_AVERAGE] = known.mean(), ""
            name = published.pmc_experiment(label)
            quantity = "rounds" if label == BASELINE else "gain"
            where = dict(zip(KEYS, (name, quantity, target, cells.index)))
            parts.append(cells.assign(**where))
    tidy = pd.concat(parts, ignore_index=True)
    return tidy[[*KEYS, "value", "bound"]]


def _grid(cells: pd.DataFrame) -> pages.Grid:
    """Returns three lines for each experiment: ours, published, and the difference."""
    columns = list(dict.fromkeys(cells["devices"]))
    grid = [["experiment", "", *columns]]
    for name, part in cells.groupby("experiment", sort=False):
        unit = "rounds" if part["quantity"].iloc[0] == "rounds" else "gain"
        texts = {cell["devices"]: _texts(cell) for cell in part.to_dict("records")}
        for place, what in enumerate((f"{unit}, ours", "published", "difference")):
            line = [texts[c][place] if c in texts else "" for c in columns]
            if any(line):
                grid.append(["" if place else str(name), what, *line])
    return grid


def _text_grid(cells: pd.DataFrame) -> pages.Grid:
    """Returns a line for each number of the paper's text: it, its cell, ours."""
    grid = [["experiment", "", "text", "published", "ours", "ours minus the text's"]]
    for cell in cells.to_dict("records"):
        where = f"{cell['target_accuracy_pct']} %, {cell['devices']}"
        known = not np.isnan(cell["difference"])
        beyond = _signed(cell["ours"] - cell["text"]) if known else ""
        ours, theirs, _ = _texts(cell)
        own = [f"{cell['text']:.1f}", theirs, ours, beyond]
        grid.append([str(cell["experiment"]), where, *own])
    return grid


def _texts(cell: Mapping[Hashable, Any]) -> tuple[str, str, str]:
    """Returns ours, the published number with a decimal point, and the difference."""
    theirs = ""
    if cell["printed"] or not np.isnan(cell["published"]):
        wrong = _WRONG if cell["impossible"] else ""
        theirs = f"{published.rounds_text(cell['published'])}{wrong}"
    ours = f"{_MARKS[cell['bound']]}{published.rounds_text(cell['ours'])}"
    return ours, theirs, _signed(cell["difference"])


def _signed(difference: float) -> str:
    if np.isnan(difference):
        return ""
    return f"{'+' if difference > 0 else ''}{published.rounds_text(difference)}"


pmc_paper.register("pmc_table{rounds_table}", report)
