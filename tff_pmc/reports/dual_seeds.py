"""Dual's Table IV or V over several seeds, beside the one run that is published."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tff_pmc.reports import grids, published
from tff_pmc.reports.dual_table4 import KEYS, TITLES, caveats, grid, noise
from tff_pmc.reports.read import conditions


def write(
    folders: Mapping[int, str],
    infos: Sequence[dict[str, Any]],
    output_dir: str,
    *,
    table: int = 4,
) -> str:
    """Writes `dual_tableN.csv` and `dual_tableN.md`; returns the text for a terminal.

    A row for each algorithm, set of clients and metric: `mean`, `deviation` (standard),
    `lowest` and `highest` of our best epochs, from 0 to 1, `published`, and
    `difference`, mean minus published; empty where there is none.

    Args:
        folders: of each seed, where `dual_table4.write` left its table.
        infos: of the runs of one seed, what `run.json` holds.
        output_dir: where the files go; they are replaced.
        table: 4 or 5.
    """
    name = f"dual_table{table}"
    paths = [os.path.join(path, f"{name}.csv") for path in folders.values()]
    cells = pd.concat(map(pd.read_csv, paths)).groupby(KEYS, sort=False)
    rows = cells["ours_best_epoch"].agg(
        mean="mean", deviation="std", lowest="min", highest="max"
    )
    # What is published is the same under every seed.
    rows = rows.join(cells[["published", "difference"]].mean()).reset_index()
    path = os.path.join(output_dir, name)
    rows.to_csv(f"{path}.csv", index=False, float_format="%.6g")
    notes = [
        *dict.fromkeys(map(conditions, infos)),
        "That was the first seed; the others differ from it in the seed alone.",
        f"Best epoch on the reported set, as printed; mean, standard deviation, lowest "
        f"and highest over the seeds {', '.join(map(str, folders))}. difference: mean "
        "minus published, which is one run. Each seed's own table is in its folder.",
    ]
    if table == 4:
        with contextlib.suppress(published.PublishedTableMissing):
            notes += noise(published.table("dualcriterion_table4"))
    notes += caveats(infos)
    columns = [name for name in rows if name not in KEYS]
    parts = {
        str(clients): grid(part, columns)
        for clients, part in rows.groupby("clients", sort=False)
    }
    return grids.write(f"{path}.md", f"{TITLES[table]}, seeds", notes, parts)
