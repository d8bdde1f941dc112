"""A map of where another weighting helps: one step's answer beside that of whole runs.

Each cell is a federation. The cheap answer is the one-step effect of the ordering whose
step was best (`one_step_effects`), the dear one the paired difference of its runs from
those of DS under seeds of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from tff_pmc.record.read import BASELINE
from tff_pmc.reports import Report, figures, paired
from tff_pmc.reports.pages import Items, Page, Table, number
from tff_pmc.reports.paired import BySeed

_MEASURES = {"accuracy": "the second half of the rounds", "all_rounds": "all rounds"}
_MAPS = {
    "weight_moved": "share of weight moved",
    "one_step": "one step, points",
    "accuracy": "whole runs, points",
}
_ALPHA = 0.05
_LIMITS = (
    "Weight moved: the mean share of weight that the ordering moves away from DS in a "
    "round (total variation).",
    "One step: the model that a round's sums give with the ordering, minus that with "
    "DS, in points of accuracy, mean over the rounds of one run of DS. The ordering is "
    "the best of all by this, so that its value is a maximum and somewhat too high; "
    "* where it differs from DS (p below .05 by Holm's rule).",
    "Whole runs: the ordering's accuracy minus that of DS under the same seed, in "
    "points, mean over the second half of the rounds (as in `effect.md`), and over all "
    "rounds; ± is half of the 95 % interval over the seeds (Student's t), which are "
    "others than that of the first run; * where it leaves 0 out.",
)


class Cell(NamedTuple):
    """A federation of the map."""

    row: str
    column: str
    steps: pd.DataFrame  # `one_step_effects.effects` of a run of DS.
    by_seed: BySeed  # Runs of DS, and of the ordering whose step was best.


def best_step(steps: pd.DataFrame) -> str:
    """The weighting with the largest mean effect on accuracy for one step."""
    return str(steps.loc[steps["accuracy_mean"].idxmax(), "weighting"])


def data_of(cells: Sequence[Cell]) -> str:
    """Returns the data set of the cells, and their number of rounds."""
    (first, *_), *_ = cells[0].by_seed.values()
    return f"{first.data['name']}, {len(first.rounds)} rounds"


def report(cells: Sequence[Cell]) -> Report:
    """Returns `when_it_helps.csv`, a page of it, and the three maps as a figure."""
    table = pd.DataFrame([_row(cell) for cell in cells])
    texts = [sentence(table, measure) for measure in _MEASURES]
    page = Page(
        "When does another weighting help?",
        [*texts, Items(_LIMITS), Table(_grid(table))],
    )
    drawn = maps(table, title=f"Where another weighting helps: {data_of(cells)}")
    return Report(
        page.markdown(),
        {"when_it_helps": table},
        {"when_it_helps": page},
        {"when_it_helps": drawn},
        digits=6,
    )


def _row(cell: Cell) -> dict[str, Any]:
    """A cell's line of the table."""
    best = best_step(cell.steps)
    step = cell.steps.set_index("weighting").loc[best]
    differences = paired.table(
        cell.by_seed,
        lambda run: {
            "accuracy": run.late_accuracy,
            "all_rounds": float(run.accuracy.mean()),
        },
        dict.fromkeys((BASELINE, best), BASELINE),
    )
    found: dict[str, Any] = {
        "row": cell.row,
        "column": cell.column,
        "ordering": best,
        "weight_moved": step["total_variation"],
        "one_step": step["accuracy_mean"],
        "one_step_interval": step["accuracy_interval"],
        "one_step_p": step["accuracy_p"],
        "seeds": len(cell.by_seed),
    }
    for row in differences.to_dict("records"):
        found[row["measure"]] = 100 * row["mean"]
        found[f"{row['measure']}_interval"] = 100 * row["interval"]
    return found


def rank_correlation(table: pd.DataFrame, cheap: str, dear: str) -> tuple[float, float]:
    """Spearman's rank correlation of a cheap answer and a dear one, and its p."""
    if len(table) < 3 or (table[[cheap, dear]].nunique() < 2).any():
        return math.nan, math.nan
    found = stats.spearmanr(table[cheap], table[dear])
    return float(found.correlation), float(found.pvalue)


def sentence(table: pd.DataFrame, measure: str) -> str:
    """Says how far the cheap answers tell what whole runs show."""
    known = table[["one_step_p", f"{measure}_interval"]].notna().all(axis=1)
    told, untold = table["one_step_p"] < _ALPHA, table["one_step_p"] >= _ALPHA
    shown = table[measure].abs() > table[f"{measure}_interval"]
    gains, loses = shown & (table[measure] > 0), shown & (table[measure] < 0)

    def counts(where: pd.Series[bool]) -> str:
        gain, lose = ((where & known & one).sum() for one in (gains, loses))
        return f"gain in {gain} and lose in {lose}"

    both = table.assign(size=table[measure].abs())
    ranks = [
        f"of {words} {rho:+.2f} (p = {p:.2g})"
        for words, cheap, dear in (
            ("one step", "one_step", measure),
            ("the weight moved", "weight_moved", measure),
            ("the weight moved, with the effect's size", "weight_moved", "size"),
        )
        for rho, p in [rank_correlation(both, cheap, dear)]
    ]
    few = (~known).sum()
    unknown = f"Of {few} nothing is known: too few rounds or seeds. " if few else ""
    return (
        f"Over {_MEASURES[measure]}: where one step differs from {BASELINE} "
        f"({told.sum()} of {len(table)} federations), whole runs {counts(told)}; where "
        f"it does not ({untold.sum()}), they {counts(untold)}. {unknown}Rank "
        f"correlation with whole runs: {', '.join(ranks)}."
    )


def _grid(table: pd.DataFrame) -> list[list[str]]:
    head = ["labels", "federation", "ordering", "weight moved", "one step"]
    lines = [[*head, *(f"whole runs, {words}" for words in _MEASURES.values())]]
    for row in table.to_dict("records"):
        star = "*" if row["one_step_p"] < _ALPHA else ""
        cells = [row["row"], row["column"], row["ordering"]]
        cells += [f"{row['weight_moved']:.3f}", f"{row['one_step']:+.2f}{star}"]
        for measure in _MEASURES:
            half = row[f"{measure}_interval"]
            star = "*" if abs(row[measure]) > half else ""
            interval = f" ± {half:.2f}{star}" if pd.notna(half) else ""
            cells.append(f"{row[measure]:+.2f}{interval}")
        lines.append(cells)
    return lines


@figures.styled
def maps(table: pd.DataFrame, *, title: str) -> Figure:
    """Draws a heat map of each of the three columns, and the two answers together."""
    figure = figures.blank(6.2)
    every: Any = figure.subplots(2, 2).ravel()
    rows, columns = (list(dict.fromkeys(table[name])) for name in ("row", "column"))
    both = table[["one_step", "accuracy"]].abs().to_numpy().max()
    for axes, (name, words) in zip(every, _MAPS.items()):
        wide = table.pivot(index="column", columns="row", values=name)
        values = wide.reindex(index=columns, columns=rows).to_numpy(float)
        signed = name != "weight_moved"
        limits = (-both, both) if signed else (0, max(np.nanmax(values), 1e-9))
        colors = "RdBu" if signed else "Greys"
        axes.imshow(values, colors, vmin=limits[0], vmax=limits[1], aspect="auto")
        look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 7}
        for (line, place), value in np.ndenumerate(values):
            text = number(value, "+.2f" if signed else ".3f")
            color = "white" if abs(value) > 0.6 * limits[1] else "black"
            axes.text(place, line, text, color=color, **look)
        axes.set_xticks(range(len(rows)), rows)
        axes.set_yticks(range(len(columns)), columns)
        axes.grid(False)
        axes.set_title(words)
    last = every[-1]
    last.axhline(0, color="gray", linewidth=0.7)
    last.errorbar(
        table["one_step"],
        table["accuracy"],
        xerr=table["one_step_interval"],
        yerr=table["accuracy_interval"],
        fmt="o",
        markersize=3,
        linewidth=0.5,
        color="#0072B2",
    )
    last.set_xlabel(_MAPS["one_step"])
    last.set_ylabel(_MAPS["accuracy"])
    figures.entitle(figure, title)
    return figure
