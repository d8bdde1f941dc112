"""Table 1 of the device-aware paper (DA), ours beside the published numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import REPORTS, Report, pages, paired
from tff_pmc.reports.papers import published
from tff_pmc.reports.papers.published import DA_STUDIES
from tff_pmc.reports.rounds_to_target import rounds_to_target, untested

TITLE = "Table 1 of the device-aware paper: rounds until the devices reach a target"

TARGETS = (75, 80)
"""Target accuracies of the table, percent."""

COLUMNS = {
    "20%": (20,),
    "30%": (30,),
    "Low mean": (20, 30),
    "40%": (40,),
    "50%": (50,),
    "Mid mean": (40, 50),
    "70%": (70,),
    "75%": (75,),
    "High mean": (70, 75),
}
"""Column -> the shares of the devices it is the mean of, percent."""

KEYS = ("target_accuracy_pct", "study", "row", "column")
BEST, MEAN = "Best", "Mean"
PUBLISHED_BEST = "Md≻Ds≻Ld"
"""The initial ordering of the one row the paper prints of Final, its best."""

_SINGLE = np.array([len(shares) == 1 for shares in COLUMNS.values()])
_SHARES = sorted({share for part in COLUMNS.values() for share in part})


def tidy_rows(runs: Sequence[Run]) -> pd.DataFrame:
    """Returns the table from runs: the columns `KEYS` and `value` (NaN: not reached).

    Three studies: `Ind` (one criterion), `MCA` (an ordering of three, fixed, and the
    `Mean` of the six) and `Final` (online adjustment by backtracking from each initial
    ordering, and the `Best` and the `Mean` of the six). `Best` is the initial ordering
    that reached the most cells over both targets, then the one with the fewest rounds
    over these cells, then the first. A mean is exact, and not reached where one of its
    parts is not: a mean of the rest would look better than it is. Rows whose run is
    missing are left out, `Best` and `Mean` where one of the six is. Two runs of one
    label, or of other clients, are a `RecordError`.
    """
    for label, run in paired.by_label(runs).items():
        if not np.array_equal(run.examples, runs[0].examples):
            raise RecordError(
                f"Table 1: the runs {runs[0].label} and {label} have other clients"
            )
    rows: list[tuple[Any, ...]] = []
    for study, names in DA_STUDIES.items():
        part = _rows_of(study, runs)
        if study != "Ind" and len(part) == len(names):
            mean = np.mean(list(part.values()), axis=0)
            best = {BEST: part[_best(part)]} if study == "Final" else {}
            part = {**part, **best, MEAN: mean}
        rows += [
            (target, study, row, column, value)
            for row, values in part.items()
            for target, line in zip(TARGETS, values)
            for column, value in zip(COLUMNS, line)
        ]
    rows.sort(key=lambda row: row[0])  # Stable: by target, then as above.
    return pd.DataFrame(rows, columns=[*KEYS, "value"])


def report(runs: Sequence[Run]) -> Report:
    """Returns `table1.csv` and `table1.md`; nothing where no run is in the table.

    The rule of reaching a target is the paper's, at least the target.
    """
    ours = tidy_rows(runs)
    if ours.empty:
        return Report()
    theirs = published.table("da_table1")
    # The one row that is printed of Final is its best: it stands beside ours, too.
    best = theirs[(theirs["study"] == "Final") & (theirs["row"] == PUBLISHED_BEST)]
    theirs = pd.concat([theirs, best.assign(row=BEST)])
    cells = published.beside(ours, theirs, KEYS).fillna({"printed": ""})
    head = f"{TITLE}\n\nEach cell: ours (published)."
    return pages.report("table1", head, _notes(runs), _grids(cells), cells)


def _rows_of(study: str, runs: Sequence[Run]) -> dict[str, npt.NDArray[np.float64]]:
    """Returns row -> rounds, [targets, columns], of the study's rows with a run."""
    by_label, found = {run.label: run for run in runs}, {}
    for label, row in DA_STUDIES[study].items():
        if label in by_label:
            run = by_label[label]
            reached = rounds_to_target(run.correct, run.examples, TARGETS, _SHARES)
            rounds = {key: value or np.nan for key, value in reached.items()}
            found[row] = np.array(
                [
                    [np.mean([rounds[t, p] for p in part]) for part in COLUMNS.values()]
                    for t in TARGETS
                ]
            )
    return found


def _best(part: Mapping[str, npt.NDArray[np.float64]]) -> str:
    """Returns the row with the most cells reached, then the fewest rounds."""
    cells = {row: rounds[:, _SINGLE] for row, rounds in part.items()}
    return min(
        part, key=lambda row: (np.isnan(cells[row]).sum(), np.nansum(cells[row]))
    )


def _notes(runs: Sequence[Run]) -> list[str]:
    examples, rounds = runs[0].examples, [len(run.accuracy) for run in runs]
    span = f"{min(rounds)} to " if min(rounds) < max(rounds) else ""
    notes = [
        f"Runs: {runs[0].data['name']}, {len(examples)} clients, "
        f"{span}{max(rounds)} rounds.",
        f"{published.DASH}: not reached, and a mean with a part not reached. Our means "
        "are exact; the paper cuts its decimals.",
    ]
    notes += untested(runs[:1])
    starts = _rows_of("Final", runs)
    if len(starts) == len(DA_STUDIES["Final"]):
        notes.append(
            f"{BEST}: of the six initial orderings, the most cells reached, then the "
            f"fewest rounds: ours {_best(starts)}, the paper's {PUBLISHED_BEST}."
        )
    needed = [label for names in DA_STUDIES.values() for label in names]
    what = f"No run, so no row (nor {MEAN} and {BEST} of its six)"
    return [*notes, *published.rows_notes(runs, needed, what)]


def _grids(cells: pd.DataFrame) -> dict[str, pages.Grid]:
    """Returns the page's tables by their headings, each cell ours and published."""
    parts: dict[str, pages.Grid] = {}
    for target, at_target in cells.groupby(KEYS[0]):
        table = [["study", "row", *COLUMNS]]
        for (study, row), part in at_target.groupby(["study", "row"], sort=False):
            pairs = zip(map(published.rounds_text, part.ours), part.printed)
            table.append([study, row, *(f"{o} ({t})" if t else o for o, t in pairs)])
        parts[f"{target} %"] = table
    return parts


REPORTS.register("da_table1", report)
