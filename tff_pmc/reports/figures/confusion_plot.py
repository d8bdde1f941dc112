"""Figures of confusion matrices, and of the F1 of each class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics.confusion import Counts, class_metrics, normalized

_MAX_NUMBERED = 12
"""The most classes whose matrix has room for numbers."""

_MAX_NAME_LETTERS = 16
"""Of a class's name in a figure; a longer one ends with dots."""

_DARK = 0.7
"""The shade, of 0 to 1, above which white letters are easier to read than black."""

_MATRIX_INCHES = 2.55  # The side of a matrix whose classes have short names.
_INCHES_PER_LETTER = 0.07
_INCHES_PER_CLASS = 0.19
_POINTS_PER_INCH = 72


class ConfusionPart(NamedTuple):
    """A confusion matrix, and what it is of."""

    label: str  # Of the run.
    rounds: str  # Such as "last round, 40".
    clients: str  # All, or the worst tenth.
    counts: Counts
    class_names: Sequence[str] = ()  # Of all classes in order; by default numbers.

    def names(self) -> list[str]:
        """Returns the name of each class, or its number where it has none."""
        names = [*self.class_names[: len(self.counts)]]
        return names + [*map(str, range(len(names), len(self.counts)))]


@figure_layout.with_style
def confusion_plot(parts: Sequence[ConfusionPart], title: str = "") -> Figure:
    """Draws confusion matrices, normalized over the true labels, two in a row.

    Of up to 12 classes each cell has its number of examples. Of many named classes
    every second or third name is written.
    """
    num_rows = -(-len(parts) // 2)
    height = 0.7 + 3.2 * num_rows
    figure = figure_layout.new_figure(height)
    all_axes = figure.subplots(num_rows, 2, squeeze=False)
    for axes, part in zip(all_axes.flat, parts):
        counts = part.counts[:, : len(part.counts)]
        shares = normalized(part.counts, "true")[:, : len(part.counts)]
        image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        axes.grid(False)
        axes.set(xlabel="Predicted label", ylabel="True label")
        name = run_styles.figure_text(part.label)
        axes.set_title(f"{name}\n{part.rounds}, {part.clients}")
        _name_classes(axes, part)
        if len(counts) > _MAX_NUMBERED:
            continue
        cell_points = _POINTS_PER_INCH * _matrix_inches(part) / len(counts)
        font_size = min(7, cell_points / (0.65 * len(str(counts.max()))))
        for (row, column), count in np.ndenumerate(counts):
            _write(axes, row, column, f"{count or ''}", shares[row, column], font_size)
    for axes in all_axes.flat[len(parts) :]:
        axes.set_axis_off()
    figure.colorbar(
        image,
        ax=all_axes,
        shrink=min(0.6, 2.5 / height),
        label="share of the true label",
    )
    figure_layout.set_figure_title(
        figure, f"Confusion matrices (normalize: true)\n{title}"
    )
    return figure


@figure_layout.with_style
def class_f1_plot(parts: Sequence[ConfusionPart], title: str = "") -> Figure:
    """Draws the F1 of each class as a heat map: a row per class, a column per part.

    A class without examples and without predictions has an empty cell.
    """
    names = max((part.names() for part in parts), key=len)
    columns = [class_metrics(part.counts)["f1"].to_numpy() for part in parts]
    table = np.full([len(names), len(parts)], np.nan)
    for place, values in enumerate(columns):
        table[: len(values), place] = values
    heads = [f"{_short(part.label)}\n{part.clients}" for part in parts]
    is_wide = max(map(len, _lines(heads))) * len(parts) * _INCHES_PER_LETTER > 5
    heads_height = 1.6 if is_wide else 0.4
    height = 0.8 + heads_height + _INCHES_PER_CLASS * len(names)
    figure = figure_layout.new_figure(height)
    axes = figure.subplots()
    image = axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.grid(False)
    axes.set_yticks(range(len(names)), [*map(_short, names)])
    axes.set_xticks(range(len(parts)), heads, rotation=90 if is_wide else 0)
    axes.xaxis.tick_top()
    for (row, column), f1 in np.ndenumerate(table):
        if np.isfinite(f1):
            _write(axes, row, column, f"{f1:.2f}", f1, 7)
    figure.colorbar(image, ax=axes, shrink=min(1, 2 / height), label="F1")
    rounds = ", ".join(dict.fromkeys(part.rounds for part in parts))
    figure_layout.set_figure_title(figure, f"F1 of each class, {rounds}\n{title}")
    return figure


def _name_classes(axes: Any, part: ConfusionPart) -> None:
    """Names the classes at both axes, as many as there is room for."""
    names = part.names()
    if len(names) > _MAX_NUMBERED and not part.class_names:
        return  # Of many numbers matplotlib writes even ones.
    points_per_name = _POINTS_PER_INCH * _matrix_inches(part) / len(names)
    places = range(0, len(names), max(1, round(8 / points_per_name)))
    texts = [_short(names[place]) for place in places]
    axes.set_yticks(places, texts)
    axes.set_xticks(places, texts, rotation=90 if max(map(len, texts)) > 2 else 0)


def _matrix_inches(part: ConfusionPart) -> float:
    """Returns the side of a matrix, about, beside the names of its classes."""
    longest = max(map(len, map(_short, part.names())))
    return _MATRIX_INCHES - _INCHES_PER_LETTER * max(0, longest - 2)


def _write(
    axes: Any, row: int, column: int, text: str, shade: float, font_size: float
) -> None:
    """Writes into a cell, white where the cell is dark."""
    color = "white" if shade > _DARK else "black"
    axes.text(
        column, row, text, color=color, ha="center", va="center", fontsize=font_size
    )


def _short(name: str) -> str:
    text = run_styles.figure_text(name)
    if len(text) <= _MAX_NAME_LETTERS:
        return text
    return f"{text[: _MAX_NAME_LETTERS - 1]}…"


def _lines(texts: Sequence[str]) -> Iterator[str]:
    for text in texts:
        yield from text.split("\n")
