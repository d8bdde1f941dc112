"""Dual's Tables IV and V, ours beside the published numbers; see `dual_cells`.

Of several seeds ours are a mean and its spread, beside the one run that is published.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import pandas as pd

from tff_pmc.record.read import Run, conditions_of
from tff_pmc.reports import REPORTS, SEED_REPORTS, Report, pages
from tff_pmc.reports.papers import dual_lambda, published
from tff_pmc.reports.papers.dual_cells import (
    CHOICES,
    KEYS,
    METRICS,
    POSITIVE,
    is_row,
    rows_of,
    tidy_rows,
)

TITLES = {4: "Dual Table IV (CIFAR-10)", 5: "Dual Table V (obstacles)"}
STAND_IN = "Stand-in data: a difference from the paper would mean nothing."
_SAME = ("Simple Average", "Weighted Mean")


def report(runs: Sequence[Run], *, table: int) -> Report:
    """Returns the table, and the lambda that the dual criterion's search chose.

    `dual_tableN.csv` and `dual_tableN.md`: a row for each algorithm, set of clients and
    metric. `dual_tableN_lambda.csv` and `.png`: the lambda of each epoch, where there
    was a search; see `dual_lambda.chosen`. Where none of the runs is a row, the text
    says so.

    Args:
        runs: the runs, with their predictions on record. Those of systems that the
            paper does not have are named in the notes.
        table: 4, or 5: two classes, whose precision and F1 are those of `POSITIVE`.

    Raises:
        RecordError: a record is missing or broken, or two runs are of one row; they
            are named.
    """
    members = rows_of(runs)
    if not members:
        return left_out(table)
    ours = tidy_rows(runs, table)
    theirs, missing = published_table(table)
    precision = (
        "macro averages."
        if table == 4
        else f"of the class {POSITIVE} (obstacles: blocked)."
    )
    notes = [
        *caveats(members),
        *conditions_of(runs),
        "best epoch: chosen on the reported test set, as printed (Algorithm 2). last: "
        "the last. validated: the best one on the evaluation set, where a run recorded "
        "that. difference: best epoch minus published.",
        *dual_lambda.notes(members),
        f"Precision and F1 are {precision}",
        *missing,
        *(noise(theirs) if table == 4 else []),
        *published.rows_note([run.label for run in runs if not is_row(run)]),
    ]
    cells = beside(ours, theirs, comparable=STAND_IN not in notes)
    columns = [*(f"ours_{name}" for name in CHOICES), "published", "difference"]
    parts = {
        str(clients): grid(part, columns)
        for clients, part in cells.groupby("clients", sort=False)
    }
    name = f"dual_table{table}"
    tables, drawn = {name: cells}, {}
    searched = [dual_lambda.chosen(run) for run in dual_lambda.searches(members)]
    if searched:
        lambdas = pd.concat(searched)
        tables[f"{name}_lambda"] = dual_lambda.rounded(lambdas)
        less = [note.partition(":")[0] for note in caveats(members)]
        title = "\n".join([f"{TITLES[table]}: lambda chosen in each epoch", *less])
        drawn[f"{name}_lambda"] = dual_lambda.plot(lambdas, title)
        for clients, rows in lambdas.groupby("clients", sort=False):
            head = (
                f"Lambda chosen in each epoch, {clients}; accuracies of the examples "
            )
            parts[f"{head}it was chosen on"] = dual_lambda.grid(rows)
    text, page = pages.of_grids(TITLES[table], notes, parts)
    return Report(text, tables, {name: page}, drawn, digits=10)


def seeds_report(
    by_seed: Mapping[int, Sequence[Run]], *, table: int, baseline: str
) -> Report:
    """Returns `dual_tableN.csv` and `dual_tableN.md`.

    A row for each algorithm, set of clients and metric: `mean`, `deviation` (standard),
    `lowest` and `highest` of our best epochs, from 0 to 1, `published`, and
    `difference`, mean minus published; empty where there is none.

    Args:
        by_seed: the runs of each seed; see `report`.
        table: 4 or 5.
        baseline: not used: the published table is what the runs are held against.

    Raises:
        RecordError: see `report`.
    """
    first = next(iter(by_seed.values()))
    members = rows_of(first)
    if not members:
        return left_out(table)
    theirs, _ = published_table(table)
    notes_of_data = caveats(members)
    comparable = STAND_IN not in notes_of_data
    by_cell = pd.concat(
        beside(tidy_rows(runs, table), theirs, comparable=comparable)
        for runs in by_seed.values()
    ).groupby(KEYS, sort=False)
    rows = by_cell["ours_best_epoch"].agg(
        mean="mean", deviation="std", lowest="min", highest="max"
    )
    # The published number is the same under every seed.
    rows = rows.join(by_cell[["published", "difference"]].mean()).reset_index()
    notes = [
        *conditions_of(first),
        "That was the first seed; the others differ from it in the seed alone.",
        f"Best epoch on the reported set, as printed; mean, standard deviation, lowest "
        f"and highest over the seeds {', '.join(map(str, by_seed))}. difference: mean "
        "minus published, which is one run. Each seed's own table is in its folder.",
        *dual_lambda.notes(members),
        *(noise(theirs) if table == 4 else []),
        *notes_of_data,
    ]
    columns = [name for name in rows if name not in KEYS]
    parts = {
        str(clients): grid(part, columns)
        for clients, part in rows.groupby("clients", sort=False)
    }
    text, page = pages.of_grids(f"{TITLES[table]}, seeds", notes, parts)
    name = f"dual_table{table}"
    return Report(text, {name: rows}, {name: page}, digits=6)


def left_out(table: int) -> Report:
    """Returns what is said where no run is a row."""
    return Report(f"{TITLES[table]} is left out: no run of its algorithms.")


def published_table(table: int) -> tuple[pd.DataFrame, list[str]]:
    """Returns the published table and no note; see `published.table_or_note`."""
    like = pd.DataFrame(columns=[*KEYS, "value"])
    return published.table_or_note(f"dualcriterion_table{table}", like)


def beside(
    ours: pd.DataFrame, theirs: pd.DataFrame, *, comparable: bool
) -> pd.DataFrame:
    """Returns our cells with the published ones; differences where comparable."""
    known = ours.get("difference")
    ours = ours.drop(columns="difference", errors="ignore")
    compared = ours.assign(value=ours["ours_best_epoch"])
    columns = published.beside(compared, theirs, KEYS).drop(columns="ours")
    cells: pd.DataFrame = pd.merge(ours, columns, on=KEYS)
    if known is not None:
        cells["difference"] = known.to_numpy()
    return cells if comparable else cells.assign(difference=float("nan"))


def noise(theirs: pd.DataFrame) -> list[str]:
    """Returns a sentence on what equal clients say of the published table's noise.

    With clients of one size the simple average and the weighted mean are one algorithm,
    so that a difference between their rows is what chance alone does. Ours share all
    seeds and begin to differ by the rounding of a sum, which training amplifies.
    """
    accuracy = theirs[theirs["metric"] == "Accuracy"]
    wide = accuracy.pivot(index="clients", columns="algorithm", values="value")
    if not set(_SAME) <= set(wide):
        return []
    gaps = (wide[_SAME[0]] - wide[_SAME[1]]).abs().dropna()
    texts = [f"{gap:.4f} ({clients})" for clients, gap in gaps.items()]
    return [
        f"Noise: with clients of one size {_SAME[0]} and {_SAME[1]} are the same "
        f"algorithm; in the published table their accuracies differ by "
        f"{' and '.join(texts)}, so differences of that size mean nothing. Our two "
        "share their seeds, and only the rounding of their sums differs: what training "
        "makes of that is the least noise of our rows. Other seeds add to it (--seeds)."
    ]


def caveats(runs: Sequence[Run]) -> list[str]:
    """Returns the reasons why runs are no comparison with the paper."""
    notes = [STAND_IN] if any(run.data_caveat for run in runs) else []
    options = [run.data.get("options", {}) for run in runs]
    fraction = min(float(own.get("image_fraction", 1)) for own in options)
    if fraction < 1:
        epochs = max(len(run.rounds) for run in runs)
        notes.append(
            f"On {fraction:g} of the images, {epochs} epochs: the differences are no "
            "comparison with the paper, which had all of them."
        )
    return notes


def grid(cells: pd.DataFrame, columns: Sequence[str]) -> pages.Grid:
    """Returns a line for each algorithm and metric; `difference` has its sign."""
    head = [name.replace("ours_", "").replace("_", " ") for name in columns]
    lines = [["algorithm", "metric", *head]]
    for cell in cells.to_dict("records"):
        texts = [
            ""
            if pd.isna(cell[name])
            else f"{cell[name]:{'+' if name == 'difference' else ''}.4f}"
            for name in columns
        ]
        first = cell["algorithm"] if cell["metric"] == next(iter(METRICS)) else ""
        lines.append([first, cell["metric"], *texts])
    return lines


for _table in TITLES:
    REPORTS.register(f"dual_table{_table}", functools.partial(report, table=_table))
    SEED_REPORTS.register(
        f"dual_table{_table}_seeds", functools.partial(seeds_report, table=_table)
    )
