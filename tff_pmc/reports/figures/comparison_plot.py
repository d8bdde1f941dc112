"""A figure of the accuracy of two folders' runs over the rounds."""

from __future__ import annotations

from typing import Optional

import pandas as pd
from matplotlib.figure import Figure

from tff_pmc.reports.figures import figure_layout, run_styles

_LINES = {"a": run_styles.SOLID, "b": run_styles.DASHED}


@figure_layout.with_style
def comparison_plot(table: pd.DataFrame, a: str, b: str) -> Optional[Figure]:
    """Returns one panel per ordering that a and b both have, or None."""
    accuracy = table[table["quantity"] == "accuracy"]
    parts = {
        str(label): part.set_index("round")
        for label, part in accuracy.groupby("experiment", sort=False)
        if part["a"].notna().any() and part["b"].notna().any()
    }
    if not parts:
        return None
    figure, all_axes = figure_layout.panels(len(parts), height=2.2)
    for axes, (label, part) in zip(all_axes, parts.items()):
        style = run_styles.style_of(label)
        for side, line in _LINES.items():
            figure_layout.draw_curve(axes, [part[side]], style, linestyle=line)
        figure_layout.name_panel(axes, style.label)
    shown = [part[side] for part in parts.values() for side in _LINES]
    figure_layout.zoom_to_curves(all_axes[0], shown)
    handles = [
        figure_layout.legend_handle(run_styles.figure_text(name), linestyle=line)
        for line, name in zip(_LINES.values(), (a, b))
    ]
    figure_layout.label_axes(figure, all_axes, figure_layout.ACCURACY, handles)
    return figure
