"""The rounds-to-target table, as text and as tidy rows, and the file `results.csv`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional

import pandas as pd

from tff_pmc.reports import escape, pages, recorded_settings, summary
from tff_pmc.reports.kept import rounds_of
from tff_pmc.reports.read import BASELINE, Run, conditions_of, with_caveat
from tff_pmc.reports.record_error import RecordError
from tff_pmc.reports.rounds_to_target import (
    DEVICES,
    Rounds,
    average,
    gains,
    reach_rule,
)

AVERAGE = "Avg."
_TITLES = {
    "rounds": "Rounds until a share of the devices reaches the target accuracy",
    "gain": "Rounds gained over DS (DS minus this; Avg. = sum / 9, a dash as 0)",
}


def write(
    runs: Sequence[Run], folder: str, *, strictly_above: Optional[bool] = None
) -> str:
    """Writes `results.csv` and its page, `results.md`; returns the text for a terminal.

    The file has the rows of `tidy_rows`, and below them those of `summary.tidy_rows`.

    Args:
        runs: the runs, whose own targets are taken.
        folder: the folder for the files, which are replaced.
        strictly_above: see `rounds_to_target`; by default the runs' own rule.

    Raises:
        RecordError: two runs have different targets, or rules where none is given.
    """
    above = recorded_settings.strictly_above(runs, strictly_above)
    tidy = tidy_rows(runs, recorded_settings.targets(runs), strictly_above=above)
    marked = with_caveat(pd.concat([tidy, summary.tidy_rows(runs)]), runs)
    escape.write_csv(marked, os.path.join(folder, "results.csv"), index=False)
    notes = [*_conditions(runs), reach_rule(above)]
    pages.write(os.path.join(folder, "results"), _page(tidy, notes))
    return text_tables(tidy)


def tidy_rows(
    runs: Sequence[Run], targets: Sequence[int], *, strictly_above: bool = False
) -> pd.DataFrame:
    """Returns the rounds to target of every run, and the gains over DS.

    The columns are those of the published tables' CSV: experiment, quantity
    (`rounds`, or `gain` = rounds of DS minus rounds of this), target_accuracy_pct,
    devices (`10%` to `90%`, and `Avg.` of the gains) and value (empty: not
    reached).

    Args:
        runs: the runs; the gains need one whose ordering is DS alone.
        targets: target accuracies, percent.
        strictly_above: see `rounds_to_target`.
    """
    reached = {
        run.label: rounds_of(run, targets, strictly_above=strictly_above)
        for run in runs
    }
    rows: list[dict[str, Any]] = []
    for label, rounds in reached.items():
        rows += _rows(label, "rounds", rounds, targets)
    for label, rounds in reached.items():
        if BASELINE in reached and label != BASELINE:
            gained = gains(rounds, reached[BASELINE])
            rows += _rows(label, "gain", gained, targets, with_average=True)
    return summary.table_of(rows)


def text_tables(tidy: pd.DataFrame) -> str:
    """Returns the tidy rows as a reader's tables: rounds first, then gains over DS.

    Where no run reached any target, a sentence says so in the place of dashes.
    """
    if tidy[tidy["quantity"] == "rounds"]["value"].isna().all():
        targets = ", ".join(map(str, dict.fromkeys(tidy["target_accuracy_pct"])))
        return (
            f"{_TITLES['rounds']}:\n{DEVICES[0]} % of the devices reached none of "
            f"{targets} % in any run."
            if targets
            else ""
        )
    parts = tidy.groupby("quantity", sort=False)
    return "\n\n".join(_table(_TITLES[str(name)], part) for name, part in parts)


def _rows(
    label: str,
    quantity: str,
    values: Rounds,
    targets: Sequence[int],
    with_average: bool = False,
) -> list[dict[str, Any]]:
    rows = []
    for target in targets:
        cells: list[tuple[str, float | None]] = [
            (f"{share}%", values[target, share]) for share in DEVICES
        ]
        if with_average:
            cells.append((AVERAGE, round(average(values, target), 2)))
        rows += [
            {
                "experiment": label,
                "quantity": quantity,
                "target_accuracy_pct": target,
                "devices": devices,
                "value": value,
            }
            for devices, value in cells
        ]
    return rows


def _conditions(runs: Sequence[Run]) -> list[str]:
    try:
        return conditions_of(runs)
    except RecordError:
        return []  # Old files, and the published code's, do not say all of them.


def _page(tidy: pd.DataFrame, notes: Sequence[str]) -> pages.Page:
    blocks: list[pages.Block] = [pages.Items(notes)]
    for quantity, part in tidy.groupby("quantity", sort=False):
        columns = list(dict.fromkeys(part["devices"]))
        grid = [["target", "", *columns]]
        rows = part.groupby(["target_accuracy_pct", "experiment"], sort=False)
        for (target, name), row in rows:
            cells = dict(zip(row["devices"], row["value"]))
            texts = [_cell(cells[column], column) for column in columns]
            grid.append([f"{target} %", str(name), *texts])
        title = _TITLES[str(quantity)]
        blocks += [pages.Heading(title), pages.Table(grid, left=2)]
    return pages.Page("Rounds to target", blocks)


def _table(title: str, tidy: pd.DataFrame) -> str:
    columns = list(dict.fromkeys(tidy["devices"]))
    width = max(len(name) for name in tidy["experiment"])
    head = " ".join(f"{column:>6}" for column in columns)
    lines = [title, f"{'target':>6}  {'':{width}} {head}"]
    for target in dict.fromkeys(tidy["target_accuracy_pct"]):
        for name in dict.fromkeys(tidy["experiment"]):
            rows = tidy[
                (tidy["experiment"] == name) & (tidy["target_accuracy_pct"] == target)
            ]
            cells = " ".join(
                f"{_cell(value, column):>6}"
                for column, value in zip(rows["devices"], rows["value"])
            )
            lines.append(f"{target:>4} %  {name:{width}} {cells}")
    return "\n".join(lines)


def _cell(value: float | None, column: str) -> str:
    if value is None or pd.isna(value):
        return "-"
    return f"{value:.2f}" if column == AVERAGE else f"{value:.0f}"
