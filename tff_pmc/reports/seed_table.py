"""The table of runs under several seeds: the mean of each figure, and its spread.

It says how good each run is, and how much of that is the seed's. Whether two runs
differ is not read from it: that is `effect`'s question, seed by seed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import pandas as pd

from tff_pmc.reports import escape, fairness, grids, paired, summary
from tff_pmc.reports.read import Run, with_caveat

FILE = "seeds.csv"
_SHOWN = {
    "last_accuracy": "last accuracy",
    "best_accuracy": "best accuracy",
    **{f"last_{name}": one.title for name, one in fairness.MEASURES.items()},
}


def write(
    by_seed: Mapping[int, Sequence[Run]],
    folder: str,
    *,
    baseline: str,
    strictly_above: Optional[bool] = None,
) -> str:
    """Writes `seeds.csv`; returns the table for a terminal.

    Args:
        by_seed: the runs of each seed, of the same labels.
        folder: the folder for the file, which is replaced.
        baseline: not used: nothing is held against another.
        strictly_above: not used: there are no targets here.

    Raises:
        RecordError: a seed has other runs than the first.
    """
    table = rows(by_seed)
    every = [run for runs in by_seed.values() for run in runs]
    path = os.path.join(folder, FILE)
    escape.write_csv(with_caveat(table, every), path, index=False, float_format="%.6g")
    return text(table)


def rows(by_seed: Mapping[int, Sequence[Run]]) -> pd.DataFrame:
    """Returns the figures of `summary.tidy_rows` over the seeds.

    Args:
        by_seed: the runs of each seed, of the same labels.

    Returns:
        A row a run and quantity: `experiment`, `quantity`, `seeds` (their number),
        `mean`, `standard_deviation` (of a sample: divided by the number of seeds less
        one; empty for one seed), `lowest` and `highest`.

    Raises:
        RecordError: a seed has other runs than the first.
    """
    paired.labels(by_seed)
    return spread(pd.concat([summary.tidy_rows(runs) for runs in by_seed.values()]))


def spread(every: pd.DataFrame) -> pd.DataFrame:
    """Returns the mean and the spread of each figure, in the columns of `rows`.

    Args:
        every: the figures under each seed: `experiment`, `quantity` and `value`.
    """
    values = every.groupby(["experiment", "quantity"], sort=False)["value"]
    found: pd.DataFrame = values.agg(["count", "mean", "std", "min", "max"])
    names = {"count": "seeds", "std": "standard_deviation"}
    names.update({"min": "lowest", "max": "highest"})
    return found.rename(columns=names).reset_index()


def text(table: pd.DataFrame, shown: Mapping[str, str] = _SHOWN) -> str:
    """Returns the rows as a table for a terminal.

    Args:
        table: as `rows` returns it.
        shown: the quantities that are shown, and their headings.
    """
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
        f"nothing else is said\n{grids.text(lines)}"
    )


def _cell(row: Mapping[Any, Any]) -> str:
    spread = paired.number(row["standard_deviation"], ".4f")
    return f"{row['mean']:.4f}" + (f" ± {spread}" if spread else "")
