"""A forest plot: differences from a baseline with their intervals."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics.paired_effects import (
    NOT_FINITE,
    NOT_REACHED,
    is_lower_better,
    scale_and_unit,
)
from tff_pmc.reports.statistics.paired_statistics import MIN_SEEDS

_COLUMNS = 3
_TITLE_LETTERS = 20
_NAME_LETTERS = 22
_ROW_HEIGHT, _LINE_HEIGHT = 0.19, 0.13  # Inches.
_NARROW = 3.2  # Inches: the width of a figure of one measure, for a phone.
_NO_VERDICT = "#888888"
_MARKERS = {
    "better": ("#0072B2", "o"),
    "worse": ("#D55E00", "s"),
    "more": ("#000000", "o"),
    "less": ("#000000", "s"),
    "not shown": (_NO_VERDICT, "o"),
}
"""Verdict -> color and marker; without a verdict the marker is hollow."""


@figure_layout.with_style
def forest_plot(table: pd.DataFrame, *, title: str = "", legend: bool = True) -> Figure:
    """Draws each row's mean difference and its 95 % interval, a panel per measure.

    Measures of targets that no run reached are not drawn.

    Args:
        table: what `paired_effects.effects` returns, or some of its rows.
        title: the title of the figure.
        legend: whether a legend shows the markers of the verdicts.
    """
    drawn = table[table["verdict"] != NOT_REACHED]
    parts = dict(list(drawn.groupby("measure", sort=False)))
    rows = [*dict.fromkeys(table["row"])]
    titles = table.attrs.get("titles", {})
    names = [
        textwrap.fill(run_styles.figure_text(str(titles.get(row, row))), _NAME_LETTERS)
        for row in rows
    ]
    most_lines = max((name.count("\n") + 1 for name in names), default=1)
    row_height = max(_ROW_HEIGHT, 0.06 + _LINE_HEIGHT * most_lines)
    columns = min(_COLUMNS, max(len(parts), 1))
    lines = -(-len(parts) // columns) or 1
    height = lines * (0.7 + row_height * (len(rows) + 1))
    height += 0.35 * legend + 0.3 * bool(title)
    width = _NARROW if columns == 1 else figure_layout.WIDTH
    figure = figure_layout.new_figure(height, width)
    all_axes: Any = figure.subplots(lines, columns, sharey=True, squeeze=False).ravel()
    for axes in all_axes[len(parts) :]:
        axes.set_axis_off()
    for axes, (measure, part) in zip(all_axes, parts.items()):
        _draw_measure(axes, str(measure), part, rows)
    all_axes[0].set_yticks(range(len(rows)), names)
    all_axes[0].set_ylim(len(rows) - 0.4, -0.6)
    if legend:
        columns = 4 if columns > 1 else 2
        handles = _handles(table)
        figure.legend(handles=handles, loc="outside lower center", ncols=columns)
    if title:
        figure_layout.set_figure_title(figure, title)
    return figure


def _draw_measure(axes: Any, measure: str, part: pd.DataFrame, rows: list[str]) -> None:
    metric = str(part.attrs.get("metric", "accuracy"))
    factor, unit = scale_and_unit(measure, metric)
    axes.grid(axis="y", visible=False)
    axes.margins(x=0.08)
    if part["mean"].notna().any():
        axes.axvline(0, color="black", linewidth=0.8)
    for row in part.to_dict("records"):
        place = rows.index(row["row"])
        mean, half = factor * row["mean"], factor * row["interval"]
        if math.isnan(mean):
            axes.text(0.02, place, _signs(row), va="center", fontsize=8,
                      transform=axes.get_yaxis_transform())  # fmt: skip
            continue
        color, marker = _MARKERS.get(row["verdict"], (_NO_VERDICT, "o"))
        axes.errorbar(
            mean,
            place,
            xerr=None if math.isnan(half) else half,
            fmt=marker,
            markersize=4,
            color=color,
            markerfacecolor=color if row["verdict"] in _MARKERS else "white",
        )
    axes.set_title(textwrap.fill(measure.replace("_", " "), _TITLE_LETTERS))
    lower = is_lower_better(measure, metric)
    direction = {True: "left is better", False: "right is better", None: ""}[lower]
    axes.set_xlabel(", ".join(filter(None, [unit, direction])))
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    if part["mean"].isna().all():
        axes.set_xticks([])
    elif not (part["mean"].fillna(0).any() or part["interval"].fillna(0).any()):
        axes.set_xlim(-1, 1)


def _signs(row: Mapping[Hashable, Any]) -> str:
    """Returns the words for a difference without a mean."""
    if row["verdict"] == NOT_FINITE:
        return NOT_FINITE
    signs = [(row["more_in"], "later"), (row["less_in"], "earlier")]
    words = [f"{count} {word}" for count, word in signs if count]
    return ", ".join(words) if words else "not known"


def _handles(table: pd.DataFrame) -> list[Any]:
    shown = [verdict for verdict in _MARKERS if verdict in set(table["verdict"])]
    handles = [
        figure_layout.legend_handle(
            "no difference shown" if verdict == "not shown" else verdict,
            _MARKERS[verdict][0],
            marker=_MARKERS[verdict][1],
            markersize=4,
        )
        for verdict in shown
    ]
    if "undecided" in set(table["verdict"]):
        words = f"no verdict below {MIN_SEEDS} seeds"
        handles.append(
            figure_layout.legend_handle(
                words, _NO_VERDICT, marker="o", markersize=4, markerfacecolor="white"
            )
        )
    return handles
