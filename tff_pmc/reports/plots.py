"""The plots of a set of runs."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")  # Files only; a machine without a screen is enough.

from matplotlib import pyplot as plt  # noqa: E402

from tff_pmc.reports.read import Run  # noqa: E402


def accuracy_plot(runs: Sequence[Run], path: str, title: str) -> None:
    """Plots accuracy against rounds, with the 10th to 90th percentile of clients.

    Args:
        runs: the runs to draw, at most about nine.
        path: the PNG to write.
        title: of the plot.
    """
    figure, axes = plt.subplots(figsize=(7, 4.2), dpi=110)
    colours = plt.get_cmap("tab10").colors
    for index, run in enumerate(runs):
        rounds, colour = run.rounds, colours[index % len(colours)]
        axes.plot(rounds["round"], rounds["accuracy"], color=colour, label=run.label)
        if len(runs) <= 2:  # More bands than two hide each other.
            axes.fill_between(
                rounds["round"],
                rounds["p10"],
                rounds["p90"],
                color=colour,
                alpha=0.13,
                linewidth=0,
            )
    axes.set_xlabel("communication round")
    axes.set_ylabel("local test accuracy, all clients")
    axes.set_ylim(0, 1)
    axes.set_xlim(1, max(run.rounds["round"].max() for run in runs))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(alpha=0.3)
    axes.set_title(title, fontsize=10)
    band = "  (band: 10th to 90th percentile of clients)" if len(runs) <= 2 else ""
    axes.legend(
        fontsize=8, title_fontsize=8, loc="lower right", title=f"priority{band}"
    )
    figure.tight_layout()
    figure.savefig(path)
    plt.close(figure)
