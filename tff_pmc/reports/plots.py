"""The plots of a set of runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from tff_pmc.reports.adjustment_plot import adjustment_plot
from tff_pmc.reports.read import BASELINE, Run, data_caveat


def write(runs: Sequence[Run], folder: str, what: str = "priority") -> None:
    """Writes `accuracy.png`, and `adjustment_RUN.png` for each run that was adjusted.

    Args:
        runs: the runs of an experiment.
        folder: the folder for the plots, which are replaced.
        what: the word for what the labels of the runs name.
    """
    accuracy_plot(runs, os.path.join(folder, "accuracy.png"), title_of(runs), what)
    baseline = next((run for run in runs if run.label == BASELINE), None)
    for run in runs:
        if run.candidates is not None:
            name = f"adjustment_{os.path.basename(run.path)}.png"
            title = f"{run.label}. {title_of([run])}"
            adjustment_plot(run, os.path.join(folder, name), title, baseline)


def title_of(runs: Sequence[Run]) -> str:
    """Returns a title for runs of one experiment: their data and how they trained."""
    settings, data = runs[0].settings, runs[0].data
    clients = dict.fromkeys(str(run.data["clients"]) for run in runs)
    dealt = data.get("options", {}).get("partition", "")
    partition = f"{dealt}, " if dealt else ""
    experiment = settings["experiment"]
    name = "" if data["name"] == experiment else f"{data['name']}, "
    caveat = data_caveat(runs)
    return (
        f"{experiment}: {name}{' or '.join(clients)} clients, "
        f"{partition}E = {settings['local_epochs']}, "
        f"B = {settings['batch_size'] or 'all'}, rate {settings['learning_rate']:g}"
        + (f"\n({caveat})" if caveat else "")
    )


def accuracy_plot(
    runs: Sequence[Run], path: str, title: str, what: str = "priority"
) -> Figure:
    """Plots accuracy against rounds, with the 10th to 90th percentile of clients.

    Args:
        runs: the runs to draw, at most about nine.
        path: the PNG to write.
        title: the title of the plot.
        what: the word for what the labels of the runs name.

    Returns:
        The figure that was written.
    """
    figure = Figure(figsize=(8.4, 4.4), dpi=110, layout="constrained")
    axes: Any = figure.subplots()
    orderings = list(dict.fromkeys(run.label.split(" (")[0] for run in runs))
    palette = "tab10" if len(orderings) <= 10 else "tab20"
    colors: Any = matplotlib.colormaps[palette].colors  # type: ignore[attr-defined]
    for run in runs:
        ordering, _, adjusted = run.label.partition(" (")
        rounds, color = run.rounds, colors[orderings.index(ordering) % len(colors)]
        axes.plot(
            rounds["round"],
            rounds["accuracy"],
            color=color,
            linestyle="--" if adjusted else "-",
            linewidth=1.3,
            label=run.label,
        )
        if len(runs) <= 2:  # More bands than two hide each other.
            axes.fill_between(
                rounds["round"],
                rounds["p10"],
                rounds["p90"],
                color=color,
                alpha=0.13,
                linewidth=0,
            )
    axes.set_xlabel("communication round")
    axes.set_ylabel("local test accuracy, all clients")
    axes.set_ylim(0, 1)
    axes.set_xlim(1, max(2, *(run.rounds["round"].max() for run in runs)))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.set_title(title, fontsize=10)
    band = "\nband: 10th to 90th\npercentile of clients" if len(runs) <= 2 else ""
    figure.legend(
        fontsize=8,
        title_fontsize=8,
        loc="outside right center",
        title=f"{what}{band}",
        frameon=False,
    )
    figure.savefig(path)
    return figure
