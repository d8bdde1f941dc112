"""The plots of a set of runs."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib

matplotlib.use("Agg")  # Files only; a machine without a screen is enough.

from matplotlib import pyplot as plt  # noqa: E402

from tff_pmc.reports.read import Run  # noqa: E402


def accuracy_plot(
    runs: Sequence[Run], path: str, title: str, what: str = "priority"
) -> None:
    """Plots accuracy against rounds, with the 10th to 90th percentile of clients.

    Args:
        runs: the runs to draw, at most about nine.
        path: the PNG to write.
        title: of the plot.
        what: the labels of the runs are.
    """
    figure, axes = plt.subplots(figsize=(8.4, 4.4), dpi=110, layout="constrained")
    orderings = list(dict.fromkeys(run.label.split(" (")[0] for run in runs))
    colors = plt.get_cmap("tab10" if len(orderings) <= 10 else "tab20").colors
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
    plt.close(figure)
