"""How far runs are from the baseline over the rounds, seed by seed."""

from __future__ import annotations

import contextlib
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results
from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics import paired_effects, paired_statistics
from tff_pmc.reports.statistics.row_titles import row_titles

MAX_LINES_PER_PANEL = 3
"""The most rows in one panel; of more, each has a panel."""


@figure_layout.with_style
def difference_plot(
    results: Results, column: str = "accuracy", *, title: str = ""
) -> Figure:
    """Draws a column of `rounds` minus that of the baseline under the same seed.

    It shows what overlapping curves hide. With several seeds the line is the mean of
    the differences, and the band its 95 % interval (Student's t).

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
    bases = {titles[base] for base in _base_of(results).values()}
    base_word = bases.pop() if len(bases) == 1 else "the baseline"
    word = f"{column.replace('_', ' ')} minus {base_word}{unit}"
    figure_layout.label_axes(figure, all_axes, word, handles)
    figure_layout.set_figure_title(figure, title)
    return figure


def differences_by_round(results: Results, column: str) -> dict[str, pd.DataFrame]:
    """Returns label -> the differences from the baseline, by round and seed.

    The baseline is that on the row's data. The rounds are those that both runs of each
    seed have. Accuracies are in points.
    """
    wide = results.rounds.pivot(index="round", columns=["label", "seed"], values=column)
    wide = wide * 100 if column == "accuracy" else wide
    tables = {
        label: (wide[label] - wide[base]).dropna(axis=1, how="all").dropna()
        for label, base in _base_of(results).items()
        if label != base
    }
    return {label: table for label, table in tables.items() if table.size}


def _base_of(results: Results) -> dict[str, str]:
    """Returns label -> the label of its baseline; nothing where a row has none."""
    with contextlib.suppress(RecordError):
        return paired_effects.baselines(results, results.baseline)
    return {}


def has_differences(results: Results, column: str = "accuracy") -> bool:
    """Returns whether there is a baseline, and another row to compare with it."""
    return bool(differences_by_round(results, column))
