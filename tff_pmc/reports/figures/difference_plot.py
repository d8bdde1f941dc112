"""How far runs are from the baseline over the rounds, seed by seed."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.results import Results
from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics import paired_statistics
from tff_pmc.reports.statistics.row_titles import row_titles

MAX_LINES_PER_PANEL = 3
"""The most rows in one panel; of more, each has a panel."""


@figure_layout.with_style
def difference_plot(
    results: Results, column: str = "accuracy", *, title: str = ""
) -> Figure:
    """Draws a column of `rounds` minus that of the baseline under the same seed.

    It shows what curves that lie on each other hide. Of several seeds the line is the
    mean of the differences, and the band its 95 % interval (Student's t).

    Args:
        results: the runs, of the baseline and of others.
        column: the column of `rounds`; an accuracy is in points.
        title: the title of the figure.
    """
    curves = differences_by_round(results, column)
    titles = row_titles(results)
    in_panels = len(curves) > MAX_LINES_PER_PANEL
    if in_panels:
        figure, all_axes = figure_layout.panels(len(curves))
    else:
        figure, all_axes = figure_layout.panels(1, height=2.2)
    handles, styles = [], run_styles.styles_of(curves)
    for place, (label, table) in enumerate(curves.items()):
        axes = all_axes[place if in_panels else 0]
        style = styles[label]
        look: dict[str, Any] = {"color": style.color, "linestyle": style.line}
        mean = table.mean(axis=1)
        axes.plot(mean.index, mean, **look, marker="o" if len(mean) == 1 else None)
        half = paired_statistics.half_interval(table.std(axis=1), table.shape[1])
        axes.fill_between(
            mean.index,
            mean - half,
            mean + half,
            color=style.color,
            alpha=0.18,
            linewidth=0,
        )
        if in_panels:
            figure_layout.name_panel(axes, titles[label])
        else:
            handles.append(figure_layout.legend_handle(titles[label], **look))
    for axes in all_axes:
        axes.axhline(0, color="black", linewidth=0.6)
    last = max(int(table.index.max()) for table in curves.values())
    figure_layout.round_axis(all_axes[0], last)
    seeds = len(results.seeds)
    if seeds > 1:
        words = f"line: mean of {seeds} seeds; band: its 95 % interval"
        handles.append(figure_layout.legend_handle(words, "none"))
    unit = ", points" if column == "accuracy" else ""
    word = f"{column.replace('_', ' ')} minus {titles[_baseline_label(results)]}{unit}"
    figure_layout.label_axes(figure, all_axes, word, handles)
    figure_layout.set_figure_title(figure, title)
    return figure


def differences_by_round(results: Results, column: str) -> dict[str, pd.DataFrame]:
    """Returns label -> the differences from the baseline, by round and seed.

    The rounds are those that both runs of each seed have. Accuracies are in points.
    """
    wide = results.rounds.pivot(index="round", columns=["label", "seed"], values=column)
    wide = wide * 100 if column == "accuracy" else wide
    base = _baseline_label(results)
    tables = {
        label: (wide[label] - wide[base]).dropna(axis=1, how="all").dropna()
        for label in results.labels
        if label != base
    }
    return {label: table for label, table in tables.items() if table.size}


def _baseline_label(results: Results) -> str:
    """Returns the label of the first run of the baseline, or "" where there is none."""
    runs, baseline = results.runs, results.baseline
    is_base = (runs["label"] == baseline) | (runs["title"] == baseline)
    return str(next(iter(runs["label"][is_base]), ""))


def has_differences(results: Results) -> bool:
    """Returns whether there is a baseline, and another row to compare with it."""
    return bool(_baseline_label(results)) and len(results.labels) > 1
