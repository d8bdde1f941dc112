"""The curves of `compare`: a panel for each ordering that both sides have."""

from __future__ import annotations

from typing import Optional

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tff_pmc.reports import escape, figures, styles

FILE = "comparison.png"

_LINES = {"a": styles.SOLID, "b": styles.DASHED}


@figures.styled
def comparison_plot(table: pd.DataFrame, a: str, b: str) -> Optional[Figure]:
    """Returns a plot of the accuracies of two sides over the rounds.

    Args:
        table: what `compare.compare` returns.
        a: what the first side is, for the legend.
        b: the second.

    Returns:
        The figure; None where the sides have no ordering in common.
    """
    accuracy = table[table["quantity"] == "accuracy"]
    parts = {
        str(label): part.set_index("round")
        for label, part in accuracy.groupby("experiment", sort=False)
        if part["a"].notna().any() and part["b"].notna().any()
    }
    if not parts:
        return None
    columns = figures.columns_of(len(parts))
    figure, every = figures.panels(len(parts), columns=columns, height=2.2)
    for axes, (label, part) in zip(every, parts.items()):
        style = styles.style_of(label)
        for side, line in _LINES.items():
            figures.curve(axes, [part[side]], style, linestyle=line)
        axes.set_title(style.label)
    shown = pd.concat([part[["a", "b"]].stack() for part in parts.values()])
    figures.share_limits(every[0], shown)
    figures.round_axis(every[0], max(int(part.index.max()) for part in parts.values()))
    vertical = "accuracy, all clients' test examples"
    figures.name_axes(figure, every, "communication round", vertical)
    handles = [
        Line2D([], [], color="black", linestyle=line, label=escape.figure_text(name))
        for line, name in zip(_LINES.values(), (a, b))
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure
