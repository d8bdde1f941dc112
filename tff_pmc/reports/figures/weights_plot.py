"""A figure of the clients' weights in each round."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.reports.figures import figure_layout, run_styles


@figure_layout.with_style
def weights_plot(relative: pd.DataFrame, title: str = "") -> Figure:
    """Draws the largest, the median and the smallest weight of each round.

    Args:
        relative: the relative weights of the runs of one seed, as
            `weight_statistics.relative_weights` returns them.
        title: the figure's title.
    """
    runs = list(relative.groupby("label", sort=False))
    figure, all_axes = figure_layout.panels(len(runs))
    for axes, (label, weights) in zip(all_axes, runs):
        by_round = weights.groupby("round")["relative"]
        color = run_styles.style_of(str(label)).color
        axes.fill_between(
            by_round.min().index,
            by_round.min(),
            by_round.max(),
            color=color,
            alpha=0.25,
            linewidth=0,
        )
        axes.plot(by_round.median(), color=color)
        axes.axhline(1, color="black", linewidth=0.6, linestyle=":")
        figure_layout.name_panel(axes, str(label))
    figure_layout.round_axis(all_axes[0], int(relative["round"].max()))
    handles = [
        figure_layout.legend_handle("median of the cohort; band: smallest to largest"),
        figure_layout.legend_handle("equal weight", linestyle=":", linewidth=0.6),
    ]
    figure_layout.label_axes(figure, all_axes, "weight times clients", handles)
    figure_layout.set_figure_title(figure, f"Weights of the clients\n{title}")
    return figure
