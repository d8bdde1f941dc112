"""The report on accuracy and its spread over the clients, of every experiment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Optional

import matplotlib
from matplotlib.figure import Figure

from tff_pmc.reports import fairness, plots, summary
from tff_pmc.reports.escape import printable
from tff_pmc.reports.read import Run, data_caveat
from tff_pmc.reports.record_error import RecordError

PLOT = "fairness.png"


def write(
    runs: Sequence[Run], folder: str, *, strictly_above: Optional[bool] = None
) -> str:
    """Writes `fairness.png`; returns the table of `summary` for a terminal.

    Args:
        runs: the runs of an experiment.
        folder: the folder for the plot, which is replaced.
        strictly_above: not used: there are no targets here.
    """
    fairness_plot(runs, os.path.join(folder, PLOT), _title(runs))
    return summary.text(runs)


def _title(runs: Sequence[Run]) -> str:
    try:
        return plots.title_of(runs)
    except RecordError:  # The published code's runs do not have our settings.
        return ", ".join(filter(None, [runs[0].data["name"], data_caveat(runs)]))


def fairness_plot(runs: Sequence[Run], path: str, title: str) -> Figure:
    """Plots the figures of `fairness.MEASURES` over the rounds, each by itself.

    Args:
        runs: the runs to draw; a run whose ordering was adjusted is dashed, in the
            color of the ordering that it began with.
        path: the PNG to write.
        title: the title of the plot.

    Returns:
        The figure that was written.
    """
    figure = Figure(figsize=(10, 6.4), dpi=110, layout="constrained")
    every: Any = figure.subplots(2, 2, sharex=True)
    names = list(dict.fromkeys(run.label.split(" (")[0] for run in runs))
    last = max(2, *(len(run.correct) for run in runs))
    for axes, measure in zip(every.flat, fairness.MEASURES.values()):
        for run in runs:
            found = fairness.client_means(run.correct, run.examples)
            axes.plot(
                range(1, len(run.correct) + 1),
                measure.of(found),
                linewidth=1.3,
                label=printable(run.label),
                **_style(run.label, names),
            )
        axes.set_title(measure.title, fontsize=10)
        axes.set_ylim(0, measure.highest)
        axes.set_xlim(1, last)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    for axes in every[-1]:
        axes.set_xlabel("communication round")
    head = f"Local test accuracy over the clients\n{printable(title)}"
    figure.suptitle(head, fontsize=10)
    handles, labels = every.flat[0].get_legend_handles_labels()
    figure.legend(
        handles, labels, fontsize=8, loc="outside right center", frameon=False
    )
    figure.savefig(path)
    return figure


def _style(label: str, names: Sequence[str]) -> dict[str, Any]:
    """The color of the ordering that a run began with, and the line of its search."""
    name, _, adjusted = label.partition(" (")
    palette = "tab10" if len(names) <= 10 else "tab20"
    colors: Any = matplotlib.colormaps[palette].colors  # type: ignore[attr-defined]
    return {
        "color": colors[names.index(name) % len(colors)],
        "linestyle": "--" if adjusted else "-",
    }
