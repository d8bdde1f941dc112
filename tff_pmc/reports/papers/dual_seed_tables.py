"""Dual's Table IV or V over several seeds, beside the one run that is published."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Optional

import pandas as pd

from tff_pmc.reports import SEED_REPORTS, escape, grids
from tff_pmc.reports.papers import dual_cells, dual_lambda, dual_tables
from tff_pmc.reports.papers.dual_cells import KEYS
from tff_pmc.reports.papers.dual_tables import STAND_IN, TITLES
from tff_pmc.reports.read import Run, conditions_of


def write(
    by_seed: Mapping[int, Sequence[Run]],
    folder: str,
    *,
    table: int,
    baseline: str,
    strictly_above: Optional[bool] = None,
) -> str:
    """Writes `dual_tableN.csv` and `dual_tableN.md`; returns the text for a terminal.

    A row for each algorithm, set of clients and metric: `mean`, `deviation` (standard),
    `lowest` and `highest` of our best epochs, from 0 to 1, `published`, and
    `difference`, mean minus published; empty where there is none.

    Args:
        by_seed: the runs of each seed; see `dual_tables.write`.
        folder: where the files go; they are replaced.
        table: 4 or 5.
        baseline: not used: the published table is what the runs are held against.
        strictly_above: not used: there are no targets here.

    Raises:
        RecordError: see `dual_tables.write`.
    """
    first = next(iter(by_seed.values()))
    members = dual_cells.rows_of(first)
    if not members:
        return f"{TITLES[table]} is left out: no run of its algorithms."
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
    path = os.path.join(folder, f"dual_table{table}")
    escape.write_csv(rows, f"{path}.csv", index=False, float_format="%.6g")
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
    return grids.write(f"{path}.md", f"{TITLES[table]}, seeds", notes, parts)


for _table in TITLES:
    SEED_REPORTS.register(
        f"dual_table{_table}_seeds", functools.partial(write, table=_table)
    )
