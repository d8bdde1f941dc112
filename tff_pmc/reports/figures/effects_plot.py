"""A figure of what one step with other weightings changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics.counterfactual_statistics import ALPHA, MEASURES

_MAX_DRAWN = 30  # Weightings in a figure.


@figure_layout.with_style
def effects_plot(table: pd.DataFrame, *, title: str) -> Figure:
    """Draws each weighting's mean difference and its interval, the largest of many."""
    order = table["accuracy_mean"].abs().sort_values(ascending=False).index
    shown = table.loc[sorted(order[:_MAX_DRAWN])][::-1]
    figure = figure_layout.new_figure(1.1 + 0.17 * max(3, len(shown)))
    all_axes: Any = figure.subplots(1, len(MEASURES), sharey=True)
    labels = [run_styles.style_of(str(name)).label for name in shown["weighting"]]
    for axes, (measure, words) in zip(all_axes, MEASURES.items()):
        axes.axvline(0, color="gray", linewidth=0.9)
        differs = shown[f"{measure}_p"] < ALPHA
        columns = (shown[f"{measure}_{part}"] for part in ("mean", "interval"))
        for place, (mean, half, dark) in enumerate(zip(*columns, differs)):
            error = None if np.isnan(half) else half
            color = "#0072B2" if dark else "#888888"
            axes.errorbar(mean, place, xerr=error, fmt="o", markersize=3, color=color)
        axes.set_xlabel(f"{words}, points from {table['baseline'].iloc[0]}")
    all_axes[0].set_yticks(range(len(labels)), labels)
    figure_layout.set_figure_title(figure, title)
    return figure
