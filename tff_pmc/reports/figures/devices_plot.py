"""A figure of the rounds in which shares of the devices reach targets, over seeds."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tff_pmc.reports.figures import figure_layout
from tff_pmc.reports.statistics.rounds_to_target import DEVICES, REACH_RULES

_COLORS = ("#4477aa", "#228833", "#cc6677", "#aa7733")


@figure_layout.with_style
def devices_plot(cells: pd.DataFrame, title: str, seeds: int) -> Figure:
    """Draws when shares of the devices reach targets with DS, ours and the published.

    A line ends where the median is not known.

    Args:
        cells: rounds by `target_accuracy_pct` and devices (`median`, `lowest`,
            `highest`, `published`) and by `reach`: by one rule, which are drawn as
            solid lines, and by the other, as dashed ones.
        title: the title of the figure.
        seeds: their number.
    """
    figure, axes = figure_layout.one_panel(height=3.6)
    handles: list[Line2D] = []
    cells = cells.replace(math.inf, np.nan)
    rules = [*dict.fromkeys(cells["reach"])]
    for (target, part), color in zip(cells.groupby("target_accuracy_pct"), _COLORS):
        cells_of_target, other = (part[part["reach"] == rule] for rule in rules)
        axes.plot(DEVICES, cells_of_target["median"], color=color)
        axes.fill_between(
            DEVICES,
            cells_of_target["lowest"],
            cells_of_target["highest"],
            color=color,
            alpha=0.18,
            lw=0,
        )
        axes.plot(DEVICES, other["median"], "--", color=color, lw=1)
        axes.plot(DEVICES, cells_of_target["published"], "o", color=color, mfc="white")
        handles.insert(0, figure_layout.legend_handle(f"{target} %", color))
    axes.set_yscale("log")
    first, last = cells["lowest"].min(), cells[["highest", "published"]].max().max()
    ticks = [t for t in (1, 2, 5, 10, 20, 50, 100, 200, 500) if first / 2 < t <= last]
    axes.set_yticks(ticks, [*map(str, ticks)])
    axes.minorticks_off()
    axes.set_xticks(DEVICES)
    figure_layout.set_panel_title(axes, title)
    axes.set(xlabel="share of the devices that has reached the target, percent")
    axes.set(ylabel=figure_layout.ROUNDS)
    solid, dashed = (f"accuracy {REACH_RULES[rule]}" for rule in rules)
    handles.append(figure_layout.legend_handle(f"{solid}\n(band: lowest to highest)"))
    handles.append(figure_layout.legend_handle(dashed, linestyle="--", lw=1))
    handles.append(
        figure_layout.legend_handle("paper", marker="o", linestyle="", mfc="white")
    )
    figure.legend(
        handles=handles,
        loc="outside right center",
        title=f"target\nlines: median of {seeds} seeds",
        alignment="left",
    )
    return figure
