"""A figure of the clients' weights in each round."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.reports.figures import figure_layout, run_styles


@figure_layout.with_style
def weights_plot(relative: pd.DataFrame, title: str = "") -> Figure:
    """Draws the largest, the median and the smallest weight of each round.

    With several seeds they are means, in bands from the lowest to the highest seed.

    Args:
        relative: the relative weights of runs, as `weight_statistics.relative_weights`
            returns them.
        title: the figure's title.
    """
    runs = list(relative.groupby("label", sort=False))
    seeds = relative["seed"].nunique()
    figure, all_axes = figure_layout.panels(len(runs))
    for axes, (label, weights) in zip(all_axes, runs):
        style = run_styles.style_of(str(label))
        draw = _draw_cohort if seeds == 1 else _draw_seeds
        draw(axes, weights, style)
        axes.axhline(1, color="black", linewidth=0.6, linestyle=":")
        figure_layout.name_panel(axes, style.label)
    lengths = relative.groupby(["label", "seed"])["round"].max()
    last = lengths.groupby(level="label").min().max()  # As a curve over seeds ends.
    figure_layout.round_axis(all_axes[0], int(last))
    handles = [
        figure_layout.legend_handle("median of the cohort; band: smallest to largest"),
        figure_layout.legend_handle("equal weight", linestyle=":", linewidth=0.6),
    ]
    if seeds > 1:
        extremes = "smallest and largest"
        band = figure_layout.band_words(seeds).replace("; ", "\n")
        handles[:1] = [
            figure_layout.legend_handle("median of the cohort"),
            figure_layout.legend_handle(extremes, linestyle=run_styles.DASHED),
            figure_layout.legend_handle(band, "none"),
        ]
    figure_layout.label_axes(figure, all_axes, "weight / mean of the round", handles)
    figure_layout.set_figure_title(figure, f"Weights of the clients\n{title}")
    return figure


def _draw_cohort(axes: Any, weights: pd.DataFrame, style: run_styles.Style) -> None:
    """Draws the median of one seed's cohorts in a band over their clients."""
    by_round = weights.groupby("round")["relative"]
    axes.fill_between(
        by_round.min().index,
        by_round.min(),
        by_round.max(),
        color=style.color,
        alpha=0.25,
        linewidth=0,
    )
    axes.plot(by_round.median(), color=style.color)


def _draw_seeds(axes: Any, weights: pd.DataFrame, style: run_styles.Style) -> None:
    """Draws three lines, the means over the seeds, each in a band over the seeds."""
    by_seed = [
        part.groupby("round")["relative"].agg(["median", "min", "max"])
        for _, part in weights.groupby("seed")
    ]
    lines = {"median": "-", "min": run_styles.DASHED, "max": run_styles.DASHED}
    for name, line in lines.items():
        curves = [table[name] for table in by_seed]
        figure_layout.draw_curve(axes, curves, style, linestyle=line)
