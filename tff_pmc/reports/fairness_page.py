"""The report on accuracy and its spread over the clients, of every experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.measures import client_means
from tff_pmc.record.read import Run
from tff_pmc.reports import Report, escape, figures, plots, styles, summary
from tff_pmc.reports.accuracy_plot import MOST_TOGETHER

_IN_PANELS = {
    summary.SPREAD["p10"]: styles.SOLID,
    summary.SPREAD["worst_tenth"]: styles.DOTTED,
}


def report(runs: Sequence[Run]) -> Report:
    """Returns the table of `summary` as text, and `fairness.png`."""
    figure = fairness_plot(runs, title=plots.title_of(runs))
    return Report(summary.text(runs), figures={"fairness": figure})


@figures.styled
def fairness_plot(runs: Sequence[Run], *, title: str = "") -> Figure:
    """Draws how accuracy is spread over the clients, over the rounds.

    Up to three runs are lines of four panels, one for each of `summary.SPREAD`; a
    run whose ordering was adjusted is dashed, in the color of the ordering that it
    began with. Of more, each has a panel of its own, with the 10th percentile and the
    mean of the worst tenth, and the baseline in gray.
    """
    draw = _by_measure if len(runs) <= MOST_TOGETHER else _by_run
    figure, every, shown = draw(runs)
    for axes, values in zip(every, shown):
        figures.share_limits(axes, values)
    figures.round_axis(every[0], max(len(run.rounds) for run in runs))  # All share it.
    figures.entitle(figure, f"Local test accuracy over the clients\n{title}")
    return figure


_Drawn = tuple[Figure, Sequence[Any], Sequence[Sequence[float]]]
"""A figure, its panels, and what is drawn in each that has an own vertical axis."""


def _by_measure(runs: Sequence[Run]) -> _Drawn:
    figure = figures.blank(4.6)
    grid: Any = figure.subplots(2, 2, sharex=True)
    shown: list[list[float]] = []
    for axes, measure in zip(grid.flat, summary.SPREAD.values()):
        shown.append([])
        for run in runs:
            line = {"linestyle": "--"} if styles.group_of(run)[1] else {}
            label = escape.figure_text(run.label)
            shown[-1] += _curve(axes, run, measure, label=label, **line)
        axes.set_title(measure.title)
    for axes in grid[-1]:
        axes.set_xlabel(figures.ROUNDS)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure, list(grid.flat), shown


def _by_run(runs: Sequence[Run]) -> _Drawn:
    bases = {
        styles.group_of(run)[1]: run
        for run in reversed(runs)
        if styles.group_of(run)[0] in styles.BASELINES
    }
    others = [run for run in runs if not any(run is base for base in bases.values())]
    figure, every = figures.panels(len(others), columns=figures.columns_of(len(others)))
    shown: list[float] = []
    for axes, run in zip(every, others):
        name, words = styles.group_of(run)
        base = bases.get(words, bases.get(""))
        for measure, line in _IN_PANELS.items():
            if base is not None:
                shown += _curve(axes, base, measure, linestyle=line, linewidth=0.9)
            shown += _curve(axes, run, measure, linestyle=line)
        figures.name_panel(axes, f"{styles.style_of(name).label}\n{words}")
    handles = [
        figures.handle(measure.title, linestyle=line)
        for measure, line in _IN_PANELS.items()
    ]
    for name in dict.fromkeys(styles.group_of(base)[0] for base in bases.values()):
        style = styles.style_of(name)
        handles.append(figures.handle(style.label, style.color, lw=0.9))
    figures.name_panels(figure, every, "accuracy", handles)
    return figure, every, [shown]


def _curve(
    axes: Any, run: Run, measure: summary.Measure, **options: Any
) -> list[float]:
    """Draws a measure of a run; returns what was drawn."""
    found = measure.of(client_means(run.correct, run.examples))
    style = styles.style_of(styles.group_of(run)[0])
    figures.curve(axes, [pd.Series(found, range(1, len(found) + 1))], style, **options)
    return [float(value) for value in found]
