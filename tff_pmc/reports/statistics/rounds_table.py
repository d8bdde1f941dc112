"""The table of rounds to targets: its cells, and their range over seeds.

A paper declares the targets, the columns and the baseline of its table, and prints the
cells with the published (`page_model.comparison_grid`); see `papers.pmc_tables` and
`papers.da_table1`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd

from tff_pmc.record.results import Results
from tff_pmc.reports.statistics.rounds_to_target import (
    DEVICES,
    gains_over,
    rounds_to_target,
)

AVERAGE = "Avg."
"""The column with the average of a row's gains."""

AT_MOST, AT_LEAST = "at most", "at least"
"""The bounds of a gain: the run did not arrive, or its baseline did not."""

COLUMNS: Mapping[str, Sequence[int]] = {f"{share}%": (share,) for share in DEVICES}
"""Column -> the shares of the devices of which it is the mean, percent."""

Average = Callable[["pd.Series[float]"], float]


def rounds_cells(
    results: Results,
    targets: Sequence[int],
    columns: Mapping[str, Sequence[int]] = COLUMNS,
    baseline: Mapping[str, str] | None = None,
    *,
    averages: Mapping[str, Average] | None = None,
    reach: str = "",
) -> pd.DataFrame:
    """Returns the rounds to targets of runs under one seed, and their gains.

    Args:
        results: the runs.
        targets: target accuracies, percent.
        columns: the table's columns: name -> shares of the devices, percent. A mean of
            shares is not reached where one of them is not.
        baseline: label -> the label of the run over which it gains; by default the
            table has no gains.
        averages: further columns of the gains: name -> function of a row's gains.
        reach: the rule of reaching a target, see `rounds_to_target`.

    Returns:
        One row per run, target and column, first the `rounds` of all runs, then each
        `gain`: `label`, `quantity`, `target`, `column`, `value` (NaN: not reached) and
        `bound`. If one of two runs does not reach the target, the gain is a bound: that
        run counts as reaching it in the last round of the longer one (`gains_over`).
    """
    heads = ["label", "quantity", "target", "column", "value", "bound"]
    if not (results.labels and targets):
        return pd.DataFrame(columns=heads)
    shares = sorted({share for part in columns.values() for share in part})
    reached = rounds_to_target(results, targets, shares, reach).pivot(
        index=["label", "target"], columns="devices", values="rounds"
    )
    rounds = pd.DataFrame(
        {
            name: reached[[*part]].mean(axis=1, skipna=False)
            for name, part in columns.items()
        }
    )
    of_label = {label: rounds.loc[label].loc[[*targets]] for label in results.labels}
    parts = {
        (label, "rounds"): _cells(
            values, pd.DataFrame("", values.index, values.columns)
        )
        for label, values in of_label.items()
    }
    length = results.length.droplevel("seed")
    for label, base_label in (baseline or {}).items():
        ours, base = of_label[label], of_label[base_label]
        gains = gains_over(base, ours, int(length[[label, base_label]].max()))
        late = np.select([base.isna(), ours.isna()], [AT_LEAST, AT_MOST], "")
        bounds = pd.DataFrame(late, gains.index, gains.columns).where(gains.notna(), "")
        for name, average in (averages or {}).items():
            gains[name] = gains[[*columns]].apply(average, axis=1)
            bounds[name] = ""
        parts[label, "gain"] = _cells(gains, bounds)
    return pd.concat(parts, names=heads[:2]).reset_index()


def _cells(values: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Returns the cells of a run by target and column."""
    frames = {"value": values, "bound": bounds}
    return pd.DataFrame(
        {
            name: frame.rename_axis("column", axis=1).stack(future_stack=True)
            for name, frame in frames.items()
        }
    )


def seed_range(
    cells_by_seed: pd.DataFrame, lengths: pd.Series[int], is_rounds: pd.Series[bool]
) -> pd.DataFrame:
    """Returns the `median`, `lowest` and `highest` of cells over seeds.

    A cell that is not known under one seed (NaN) is not known. But a run that did not
    reach a target reaches it later than its last round: `highest` is then infinite, and
    the others are not known only where they are after that round.

    Args:
        cells_by_seed: one column per seed.
        lengths: the last round of the runs, by seed.
        is_rounds: which cells are rounds; others are gains.
    """
    wide = cells_by_seed.copy()
    known_until = wide.isna().mul(lengths).where(wide.isna()).min(axis=1)
    wide[is_rounds] = wide[is_rounds].fillna(math.inf)
    median, lowest = wide.median(axis=1, skipna=False), wide.min(axis=1, skipna=False)
    middle = np.sort(wide, axis=1)[:, wide.shape[1] // 2]  # Of two the later one.
    return pd.DataFrame(
        {
            "median": median.mask(is_rounds & (middle > known_until)),
            "lowest": lowest.mask(is_rounds & (lowest > known_until)),
            "highest": wide.max(axis=1, skipna=False),
        }
    )
