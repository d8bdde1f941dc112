"""The table of runs under several seeds: the mean of each figure, and its spread.

It says how good each run is, and how much of that is the seed's. Whether two runs
differ is not read from it: that is `effect`'s question, seed by seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from tff_pmc.reports import Report, fairness, paired, summary
from tff_pmc.reports.pages import grid_text
from tff_pmc.reports.read import Run, with_caveat

_SHOWN = {
    "last_accuracy": "last accuracy",
    "best_accuracy": "best accuracy",
    **{f"last_{name}": one.title for name, one in fairness.MEASURES.items()},
}


def report(by_seed: Mapping[int, Sequence[Run]], *, baseline: str = "") -> Report:
    """Returns `seeds.csv`, the figures of `summary.tidy_rows` over the seeds.

    Nothing is held against the baseline here.

    Raises:
        RecordError: a seed has other runs than the first.
    """
    every = [summary.tidy_rows(runs) for runs in by_seed.values()]
    return of_figures(by_seed, pd.concat(every), _SHOWN)


def of_figures(
    by_seed: Mapping[int, Sequence[Run]],
    figures: pd.DataFrame,
    shown: Mapping[str, str],
) -> Report:
    """Returns `seeds.csv` of figures under each seed.

    It has a row a run and quantity: `experiment`, `quantity`, `seeds` (their number),
    `mean`, `standard_deviation` (of a sample: divided by the number of seeds less one;
    empty for one seed), `lowest` and `highest`.

    Args:
        by_seed: the runs of each seed, of the same labels.
        figures: the figures: `experiment`, `quantity` and `value`.
        shown: the quantities of the text, and their headings.

    Raises:
        RecordError: a seed has other runs than the first.
    """
    paired.labels(by_seed)
    values = figures.groupby(["experiment", "quantity"], sort=False)["value"]
    table = values.agg(
        seeds="count",
        mean="mean",
        standard_deviation="std",
        lowest="min",
        highest="max",
    ).reset_index()
    runs = [run for of_seed in by_seed.values() for run in of_seed]
    return Report(_text(table, shown), {"seeds": with_caveat(table, runs)}, digits=6)


def _text(table: pd.DataFrame, shown: Mapping[str, str]) -> str:
    cells = {
        (row["experiment"], row["quantity"]): _cell(row)
        for row in table.to_dict("records")
    }
    lines = [["", *shown.values()]]
    for label in dict.fromkeys(table["experiment"]):
        lines.append([str(label), *(cells[label, quantity] for quantity in shown)])
    seeds = int(table["seeds"].iloc[0])
    return (
        f"Mean ± standard deviation over {seeds} seeds; of the last round, where "
        f"nothing else is said\n{grid_text(lines)}"
    )


def _cell(row: Mapping[Any, Any]) -> str:
    spread = paired.number(row["standard_deviation"], ".4f")
    return f"{row['mean']:.4f}" + (f" ± {spread}" if spread else "")
