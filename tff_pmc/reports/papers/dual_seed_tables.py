"""Dual's Table IV or V over several seeds, beside the one run that is published."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import pandas as pd

from tff_pmc.reports import SEED_REPORTS, Report, pages
from tff_pmc.reports.papers import dual_cells, dual_lambda, dual_tables
from tff_pmc.reports.papers.dual_cells import KEYS
from tff_pmc.reports.papers.dual_tables import STAND_IN, TITLES
from tff_pmc.reports.read import Run, conditions_of


def report(
    by_seed: Mapping[int, Sequence[Run]], *, table: int, baseline: str
) -> Report:
    """Returns `dual_tableN.csv` and `dual_tableN.md`.

    A row for each algorithm, set of clients and metric: `mean`, `deviation` (standard),
    `lowest` and `highest` of our best epochs, from 0 to 1, `published`, and
    `difference`, mean minus published; empty where there is none.

    Args:
        by_seed: the runs of each seed; see `dual_tables.report`.
        table: 4 or 5.
        baseline: not used: the published table is what the runs are held against.

    Raises:
        RecordError: see `dual_tables.report`.
    """
    first = next(iter(by_seed.values()))
    members = dual_cells.rows_of(first)
    if not members:
        return dual_tables.left_out(table)
    theirs, _ = dual_tables.published_table(table)
    notes_of_data = dual_tables.caveats(members)
    comparable = STAND_IN not in notes_of_data
    by_cell = pd.concat(
        dual_tables.beside(
            dual_cells.tidy_rows(runs, table), theirs, comparable=comparable
        )
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
        *(dual_tables.noise(theirs) if table == 4 else []),
        *notes_of_data,
    ]
    columns = [name for name in rows if name not in KEYS]
    parts = {
        str(clients): dual_tables.grid(part, columns)
        for clients, part in rows.groupby("clients", sort=False)
    }
    text, page = pages.of_grids(f"{TITLES[table]}, seeds", notes, parts)
    name = f"dual_table{table}"
    return Report(text, {name: rows}, {name: page}, digits=6)


for _table in TITLES:
    SEED_REPORTS.register(
        f"dual_table{_table}_seeds", functools.partial(report, table=_table)
    )
