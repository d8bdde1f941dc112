"""PMC's Tables 2, 4 and 6 from runs under several seeds, with the published numbers.

The paper ran once. Here each cell is the median over our seeds, with the lowest and the
highest: where the published number lies between these two, another seed would do as
much as what differs between the paper and us. The rounds of DS are counted by both
rules of reaching a target: the tables do not say whether they follow the paper's text
or the evaluation script of its published code.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports import REPORTS, Report, figures, pages
from tff_pmc.reports.conditions import conditions, data_caveat, with_caveat
from tff_pmc.reports.papers import pmc_paper, published
from tff_pmc.reports.papers.pmc_paper import AVERAGE, KEYS, PAPER, TEXT_AVERAGE
from tff_pmc.reports.papers.pmc_rounds_tables import tidy_rows
from tff_pmc.reports.rounds_to_target import (
    DEVICES,
    RULES,
    caveats,
    reach_of,
    reach_rule,
)

_COLORS = ("#4477aa", "#228833", "#cc6677", "#aa7733")
_NOTES = (
    "Ours: the median over the seeds, and in brackets the lowest and the highest.",
    "Gain: rounds of DS minus rounds of the ordering under the same seed; more is "
    f"better. {AVERAGE}: the sum of the gains / 9.",
    "The paper's text says that devices reach a target (at_least); the evaluation "
    "script of its published code counts the devices above it (above).",
    f"{pages.MISSING}: not reached; of ours, the ordering or DS did not arrive under "
    "one seed at least. Of DS, a run that did not arrive is later than its last round, "
    "and a median or lowest after that round is not known.",
)


def report(results: Results, *, experiment: str) -> Report:
    """Returns `tableN_seeds.csv`, `.md` and `.png`, N as in `pmc_rounds_tables`.

    It is empty for one seed, and for runs without DS. The figure has the rows of DS.
    They are there twice, by both rules of `--reach`: the runs' own first.
    """
    paper = PAPER[experiment]
    rows = results.only(label=paper.labels)
    if len(results.seeds) < 2 or BASELINE not in rows.labels:
        return Report()
    (other_rule,) = {*RULES} - {reach_of(rows)}
    recounted = rows.only(label=BASELINE)
    recounted.runs = recounted.runs.assign(reach=other_rule)
    cells = pd.concat([spread_over_seeds(of, experiment) for of in (rows, recounted)])
    number, seeds = paper.rounds_table, ", ".join(map(str, results.seeds))
    title = f"PMC Table {number}: {paper.title}, rounds of DS and gains over DS"
    notes = [
        f"Seeds: {seeds}; under the first:",
        *conditions(rows.only(seed=results.seeds[0])),
        reach_rule(reach_of(rows)),
        *caveats(rows),
        *_NOTES,
    ]
    notes += published.rows_notes(results, paper.labels)
    parts = {f"{target} %": _grid(part) for target, part in cells.groupby(KEYS[2])}
    name = f"table{number}_seeds"
    found = pages.report(name, title, notes, parts, with_caveat(cells, rows))
    head = f"PMC Table {number}, {paper.title}: rounds of {BASELINE}"
    if caveat := data_caveat(rows):
        head = f"{head}\n({caveat})"
    of_ds = cells[cells["quantity"] == "rounds"]
    figure = draw(of_ds, head, len(results.seeds))
    # A terminal has no room for the table: its text is left to the page.
    return dataclasses.replace(found, text="", figures={name: figure})


def spread_over_seeds(results: Results, experiment: str) -> pd.DataFrame:
    """Returns a row a cell, with its median, lowest and highest, and the published.

    The columns are `KEYS`, `reach` (the rule by which a target is reached), `median`,
    `lowest`, `highest` and `published`.
    A gain is known where both runs arrive; under one seed unknown it is so in its row.
    A run of DS that does not arrive arrives later than its last round, `inf` here: what
    of the median or the lowest is after that round is not known (NaN).

    Raises:
        RecordError: the runs of a seed are neither equally long nor have reached all
            targets, or were tested on other clients.
    """
    paper = PAPER[experiment]
    of_seeds = {}
    for seed in results.seeds:
        cells = tidy_rows(paper.rows(results.only(seed=seed)), paper.targets)
        cells = cells[cells["devices"] != TEXT_AVERAGE].set_index([*KEYS])
        of_seeds[seed] = cells["value"].where(cells["bound"] == "")
    wide = pd.DataFrame(of_seeds)
    of_ds = wide.index.get_level_values("quantity") == "rounds"
    averages = wide.index.get_level_values("devices") == AVERAGE
    rows = wide.index.droplevel("devices")
    incomplete = wide.isna().any(axis=1).groupby(rows).transform("any")
    wide[incomplete & averages] = np.nan
    lengths = results.only(label=BASELINE).length.droplevel("label")
    known_until = wide.isna().mul(lengths).where(wide.isna()).min(axis=1)
    wide[of_ds] = wide[of_ds].fillna(math.inf)
    median, lowest = wide.median(axis=1, skipna=False), wide.min(axis=1, skipna=False)
    middle = np.sort(wide, axis=1)[:, wide.shape[1] // 2]  # Of two the later one.
    found = pd.DataFrame(
        {
            "reach": reach_of(results),
            "median": median.mask(of_ds & (middle > known_until)),
            "lowest": lowest.mask(of_ds & (lowest > known_until)),
            "highest": wide.max(axis=1, skipna=False),
        }
    )
    theirs = pmc_paper.published_rows(paper.rounds_table).set_index([*KEYS])["value"]
    return found.assign(published=theirs.reindex(found.index)).reset_index()


@figures.styled
def draw(cells: pd.DataFrame, title: str, seeds: int) -> Figure:
    """Draws the rounds of DS by the share of the devices, ours and the published.

    A line ends where the median is not known.

    Args:
        cells: the rows of `report`'s table that are rounds: by one rule, which are
            drawn as solid lines, and by the other, as dashed ones.
        title: the title of the figure.
        seeds: their number.
    """
    figure, axes = figures.single(height=3.6)
    handles: list[Line2D] = []
    cells = cells.replace(math.inf, np.nan)
    rules = [*dict.fromkeys(cells["reach"])]
    for (target, part), color in zip(cells.groupby(KEYS[2]), _COLORS):
        own, other = (part[part["reach"] == rule] for rule in rules)
        axes.plot(DEVICES, own["median"], color=color)
        axes.fill_between(
            DEVICES, own["lowest"], own["highest"], color=color, alpha=0.18, lw=0
        )
        axes.plot(DEVICES, other["median"], "--", color=color, lw=1)
        axes.plot(DEVICES, own["published"], "o", color=color, mfc="white")
        handles.insert(0, figures.handle(f"{target} %", color))
    axes.set_yscale("log")
    first, last = cells["lowest"].min(), cells[["highest", "published"]].max().max()
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500) if first / 2 < t <= last]
    axes.set_yticks(ticks, [*map(str, ticks)])
    axes.minorticks_off()
    axes.set_xticks(DEVICES)
    figures.head(axes, title)
    axes.set(xlabel="share of the devices that has reached the target, percent")
    axes.set(ylabel=figures.ROUNDS)
    solid, dashed = (f"accuracy {RULES[rule]}" for rule in rules)
    handles.append(figures.handle(f"{solid}\n(band: lowest to highest)"))
    handles.append(figures.handle(dashed, linestyle="--", lw=1))
    handles.append(figures.handle("paper", marker="o", linestyle="", mfc="white"))
    figure.legend(
        handles=handles,
        loc="outside right center",
        title=f"target\nlines: median of {seeds} seeds",
        alignment="left",
    )
    return figure


def _grid(cells: pd.DataFrame) -> pages.Grid:
    """Returns our lines of each ordering, one a rule, and then the published one."""
    columns, own = list(dict.fromkeys(cells["devices"])), cells["reach"].iloc[0]
    grid = [["experiment", "", *columns]]
    for name, part in cells.groupby("experiment", sort=False):
        part = part.set_index("devices")
        for rule, rows in part.groupby("reach", sort=False):
            ours = {share: _text(row) for share, row in rows.iterrows()}
            heads = [str(name), f"{rows['quantity'].iloc[0]}, ours"]
            heads = heads if rule == own else ["", f"{heads[1]} ({rule})"]
            grid.append([*heads, *(ours.get(share, "") for share in columns)])
        theirs = part[part["reach"] == own]["published"].map(published.rounds_text)
        grid.append(["", "published", *(theirs.get(c, "") for c in columns)])
    return grid


def _text(row: pd.Series[float]) -> str:
    """Returns `18 (17 to 20)`, with one decimal where it is no whole number."""
    median, *ends = (
        pages.number(row[name], ".1f", pages.MISSING).removesuffix(".0")
        for name in ("median", "lowest", "highest")
    )
    same = len({median, *ends}) == 1
    return median if same else f"{median} ({' to '.join(ends)})"


for _experiment, _paper in PAPER.items():
    REPORTS.register(
        f"pmc_table{_paper.rounds_table}_seeds",
        functools.partial(report, experiment=_experiment),
    )
