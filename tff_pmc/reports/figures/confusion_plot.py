"""A figure of confusion matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure

from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics.confusion import Counts, normalized

_MAX_NUMBERED = 12
"""Of more classes the cells of a matrix have no room for numbers."""


class ConfusionPart(NamedTuple):
    """A confusion matrix, and the label of its run."""

    label: str  # Of the run.
    rounds: str  # Such as "last round, 40".
    clients: str  # All, or the worst tenth.
    counts: Counts


@figure_layout.with_style
def confusion_plot(parts: Sequence[ConfusionPart], title: str = "") -> Figure:
    """Draws confusion matrices, normalized over the true labels, two in a row."""
    figure = figure_layout.new_figure(0.7 + 3.2 * -(-len(parts) // 2))
    all_axes = figure.subplots(-(-len(parts) // 2), 2, squeeze=False)
    for axes, part in zip(all_axes.flat, parts):
        counts = part.counts[:, : len(part.counts)]
        shares = normalized(part.counts, "true")[:, : len(part.counts)]
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.grid(False)
        axes.set(xlabel="Predicted label", ylabel="True label")
        name = run_styles.figure_text(part.label)
        axes.set_title(f"{name}\n{part.rounds}, {part.clients}")
        if len(counts) > _MAX_NUMBERED:
            continue
        axes.set_xticks(range(len(counts)))
        axes.set_yticks(range(len(counts)))
        look = {"ha": "center", "va": "center", "fontsize": 5}
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row, column] > 0.5 else "black"
            axes.text(column, row, f"{count or ''}", color=color, **look)
    figure.colorbar(image, ax=all_axes, shrink=0.6, label="share of the true label")
    figure_layout.set_figure_title(
        figure, f"Confusion matrices (normalize: true)\n{title}"
    )
    return figure
