"""The report on accuracy and its spread over the clients, of every experiment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.reports import (
    escape,
    fairness,
    figures,
    kept,
    plots,
    styles,
    summary,
)
from tff_pmc.reports.read import Run

PLOT = "fairness.png"


def write(
    runs: Sequence[Run], folder: str, *, strictly_above: Optional[bool] = None
) -> str:
    """Writes `fairness.png`; returns the table of `summary` for a terminal.

    There is no plot of runs that are kept without their clients.

    Args:
        runs: the runs of an experiment.
        folder: the folder for the plot, which is replaced.
        strictly_above: not used: there are no targets here.
    """
    if not any(isinstance(run, kept.KeptRun) for run in runs):
        figure = fairness_plot(runs, title=plots.title_of(runs))
        figures.save(figure, os.path.join(folder, PLOT))
    return summary.text(runs)


@figures.styled
def fairness_plot(runs: Sequence[Run], *, title: str = "") -> Figure:
    """Draws the figures of `fairness.MEASURES` over the rounds, each by itself.

    Args:
        runs: the runs to draw; a run whose ordering was adjusted is dashed, in the
            color of the ordering that it began with.
        title: the title of the plot.

    Raises:
        NotKeptError: a run is kept without its clients.
    """
    figure = Figure(figsize=(figures.WIDTH, 4.6), dpi=figures.DPI, layout="constrained")
    every: Any = figure.subplots(2, 2, sharex=True)
    last = max(len(run.rounds) for run in runs)
    for axes, measure in zip(every.flat, fairness.MEASURES.values()):
        for run in runs:
            found = measure.of(fairness.client_means(*kept.clients_of(run)))
            name, words = styles.group_of(run)
            style = styles.style_of(name)
            line = {"linestyle": "--"} if words else {}
            curve = pd.Series(found, range(1, len(found) + 1))
            label = escape.figure_text(run.label)
            figures.curve(axes, [curve], style, label=label, **line)
        axes.set_title(measure.title)
        axes.set_ylim(0, measure.highest)
        figures.round_axis(axes, last)
    for axes in every[-1]:
        axes.set_xlabel("communication round")
    figures.entitle(figure, f"Local test accuracy over the clients\n{title}")
    handles, labels = every.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure
