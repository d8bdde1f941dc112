"""The report on accuracy and its spread over the clients, of every experiment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.record.measures import client_means
from tff_pmc.record.read import Run
from tff_pmc.reports import Report, figures, plots, styles, summary

MOST_TOGETHER = 4
"""The most runs that are lines of common panels; of more, each has its own."""

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

    Up to four runs are lines of four panels, one for each of `summary.SPREAD`; a
    run whose ordering was adjusted is dashed, in the color of the ordering that it
    began with. Of more, each has a panel of its own, with the 10th percentile and the
    mean of the worst tenth: their differences from the baseline, which is the line at
    0. Without a baseline they are as they are.
    """
    names = styles.in_order(styles.group_of(run)[0] for run in runs)
    kinds = list(dict.fromkeys(["", *(styles.group_of(run)[1] for run in runs)]))

    def place(run: Run) -> tuple[int, int]:
        name, words = styles.group_of(run)
        return kinds.index(words), names.index(name)

    draw = _by_measure if len(runs) <= MOST_TOGETHER else _by_run
    figure, every = draw(sorted(runs, key=place))
    figures.round_axis(every[0], max(len(run.rounds) for run in runs))  # All share it.
    figures.entitle(figure, f"Local test accuracy over the clients\n{title}")
    return figure


def _by_measure(runs: Sequence[Run]) -> tuple[Figure, Sequence[Any]]:
    figure = figures.blank(4.6)
    grid: Any = figure.subplots(2, 2, sharex=True)
    for axes, measure in zip(grid.flat, summary.SPREAD.values()):
        shown: list[float] = []
        for run in runs:
            line = {"linestyle": "--"} if styles.group_of(run)[1] else {}
            curve = _curve(run, measure)
            style = styles.style_of(styles.group_of(run)[0])
            figures.curve(axes, [curve], style, label=styles.label_of(run), **line)
            shown += curve.tolist()
        figures.share_limits(axes, shown)
        axes.set_title(measure.title)
    for axes in grid[-1]:
        axes.set_xlabel(figures.ROUNDS)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure, list(grid.flat)


def _by_run(runs: Sequence[Run]) -> tuple[Figure, Sequence[Any]]:
    bases = {
        styles.group_of(run)[1]: run
        for run in reversed(runs)
        if styles.group_of(run)[0] in styles.BASELINES
    }
    others = [run for run in runs if not any(run is base for base in bases.values())]
    figure, every = figures.panels(len(others))
    shown: list[float] = []
    for axes, run in zip(every, others):
        name, words = styles.group_of(run)
        base = bases.get(words, bases.get("")) if bases else None
        if base is not None:
            style = styles.style_of(styles.group_of(base)[0])
            axes.axhline(0, color=style.color, **styles.BEHIND)
        for measure, line in _IN_PANELS.items():
            curve = _curve(run, measure)
            if base is not None:
                curve = 100 * (curve - _curve(base, measure)).dropna()
            figures.curve(axes, [curve], styles.style_of(name), linestyle=line)
            shown += curve.tolist()
        figures.name_panel(axes, f"{styles.style_of(name).label}\n{words}")
    handles = [
        figures.handle(measure.title, linestyle=line)
        for measure, line in _IN_PANELS.items()
    ]
    labels = [styles.style_of(styles.group_of(base)[0]) for base in bases.values()]
    handles += [
        figures.handle(style.label, style.color, **styles.BEHIND)
        for style in dict.fromkeys(labels)
    ]
    if bases:
        margin = max(0.05 * (max(shown) - min(shown)), 0.1)
        every[0].set_ylim(min(0, *shown) - margin, max(0, *shown) + margin)
        up = f"accuracy, points from {handles[-1].get_label()}"
    else:
        figures.share_limits(every[0], shown)
        up = "accuracy"
    figures.name_panels(figure, every, up, handles)
    return figure, every


def _curve(run: Run, measure: summary.Measure) -> pd.Series[float]:
    """Returns a measure of a run by round."""
    found = measure.of(client_means(run.correct, run.examples))
    return pd.Series(found, range(1, len(found) + 1))
