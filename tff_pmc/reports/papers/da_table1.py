"""Table 1 of the device-aware paper (DA), ours with the published numbers."""

from __future__ import annotations

import pandas as pd

from tff_pmc.record.results import Results
from tff_pmc.reports import REPORTS, Report, page_model, single_seed_only
from tff_pmc.reports.page_model import comparison_grid, rounds_text
from tff_pmc.reports.statistics import published
from tff_pmc.reports.statistics.published import DA_STUDIES
from tff_pmc.reports.statistics.rounds_table import rounds_cells
from tff_pmc.reports.statistics.run_notes import caveat_notes

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
"""Column -> the shares of the devices over which it is a mean, percent."""

KEYS = ("target_accuracy_pct", "study", "row", "column")
BEST, MEAN = "Best", "Mean"
PUBLISHED_BEST = "Md≻Ds≻Ld"
"""The initial ordering of the only row that the paper has of Final, its best."""


def tidy_rows(results: Results) -> pd.DataFrame:
    """Returns the table from runs: the columns `KEYS` and `value` (NaN: not reached).

    Three studies: `Ind` (one criterion), `MCA` (an ordering of three, fixed, and the
    `Mean` of the six) and `Final` (online adjustment by backtracking from each initial
    ordering, and the `Best` and the `Mean` of the six). `Best` is the initial ordering
    that reached the most cells over both targets, then the one with the fewest rounds
    over these cells, then the first. A mean is exact, and NaN if one of its parts was
    not reached: a mean of the rest would look better than it is. Rows without a run are
    omitted, and so are `Best` and `Mean` if one of the six is missing.

    Raises:
        RecordError: the runs were tested on different clients.
    """
    rounds = _rounds_by_column(results)
    parts = []
    for study, names in DA_STUDIES.items():
        part = _study_rows(study, rounds)
        if study != "Ind" and len(part) == len(names):
            mean = part.mean(skipna=False)
            if study == "Final":
                part.loc[BEST] = part.loc[_best_row(part)]
            part.loc[MEAN] = mean
        parts.append(pd.concat({study: part}, names=["study", "row"]))
    cells = pd.concat(parts).stack([0, 1], future_stack=True)
    tidy = cells.rename("value").reset_index()[[*KEYS, "value"]]
    return tidy.sort_values(KEYS[0], kind="stable", ignore_index=True)


@single_seed_only
def report(results: Results) -> Report:
    """Returns `table1.csv` and `table1.md`, or an empty report without a row.

    The rule of reaching a target is the paper's, at least the target.
    """
    ours = tidy_rows(results)
    if ours.empty:
        return Report()
    theirs = published.table("da_table1")
    # The only row that the paper has of Final is its best: it is compared with ours.
    best = theirs[(theirs["study"] == "Final") & (theirs["row"] == PUBLISHED_BEST)]
    theirs = pd.concat([theirs, best.assign(row=BEST)])
    cells = published.join_published(ours, theirs, KEYS).fillna({"printed": ""})
    head = f"{TITLE}\n\nEach cell: ours (published)."
    return Report.from_grids("table1", head, _notes(results), _grids(cells), cells)


def _rounds_by_column(results: Results) -> pd.DataFrame:
    """Returns the rounds of each run that is a row; columns are (target, column)."""
    runs = results.only(label=[label for rows in DA_STUDIES.values() for label in rows])
    published.check_clients(runs)
    names = [KEYS[0], "column"]
    columns = pd.MultiIndex.from_product([TARGETS, COLUMNS], names=names)
    cells = rounds_cells(runs, TARGETS, COLUMNS, reach="at_least")
    cells = cells.rename(columns={"target": KEYS[0]}).astype({"value": float})
    return cells.pivot(index="label", columns=names, values="value").reindex(
        columns=columns
    )


def _study_rows(study: str, rounds: pd.DataFrame) -> pd.DataFrame:
    """Returns the rounds of the study's rows with a run, named as in the paper."""
    names = DA_STUDIES[study]
    return rounds.loc[[label for label in names if label in rounds.index]].rename(names)


def _best_row(part: pd.DataFrame) -> str:
    """Returns the row with the most cells reached, then the fewest rounds."""
    single = [column for column, shares in COLUMNS.items() if len(shares) == 1]
    cells = part.loc[:, (slice(None), single)]
    missed, rounds = cells.isna().sum(axis=1), cells.sum(axis=1)
    return str(min(part.index, key=lambda row: (missed[row], rounds[row])))


def _notes(results: Results) -> list[str]:
    length, first = results.length, results.runs.iloc[0]
    clients = results.clients[results.clients["label"] == first["label"]]
    examples = clients.drop_duplicates("client")["examples"]
    span = f"{length.min()} to " if length.min() < length.max() else ""
    notes = [
        f"Runs: {first['data_name']}, {len(examples)} clients, "
        f"{span}{length.max()} rounds.",
        f"{page_model.MISSING}: not reached, and a mean with a part not reached. Our "
        "means are exact; the paper cuts its decimals.",
    ]
    notes += caveat_notes(results.only(label=first["label"]))
    starts = _study_rows("Final", _rounds_by_column(results))
    if len(starts) == len(DA_STUDIES["Final"]):
        notes.append(
            f"{BEST}: of the six initial orderings, the most cells reached, then the "
            f"fewest rounds: ours {_best_row(starts)}, the paper's {PUBLISHED_BEST}."
        )
    if {"MD", "LD"} & {*results.runs["label"]}:
        notes.append(
            "The paper's rows Model divergence and Label diversity probably have each "
            "other's names: in six of ten cells the first equals each ordering that "
            "begins with Ld, and the second each that begins with Md. Our names are "
            "right."
        )
    needed = [label for names in DA_STUDIES.values() for label in names]
    what = f"No run, so no row (nor {MEAN} and {BEST} of its six)"
    return [*notes, *published.missing_row_notes(results, needed, what)]


def _grids(cells: pd.DataFrame) -> dict[str, page_model.Grid]:
    """Returns the page's tables by their headings, each cell ours and published."""
    theirs = cells["printed"].map(lambda text: text and f" ({text})")
    cells = cells.assign(text=cells["ours"].map(rounds_text) + theirs)
    head = ["study", "row"]
    return {
        f"{target} %": comparison_grid(part, head, head, "column", {"text": ""})
        for target, part in cells.groupby(KEYS[0])
    }


REPORTS.register("da_table1", report)
