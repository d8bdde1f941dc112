"""Figures of confusion matrices, and of the F1 of each class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from tff_pmc.reports.figures import figure_layout, run_styles
from tff_pmc.reports.statistics.confusion import Counts, class_metrics, normalize_counts

_MAX_NUMBERED = 12
"""The most classes whose matrix has room for numbers."""

_MAX_NAME_LETTERS = 16
"""The longest name of a class in a figure; a longer one ends with dots."""

# From nothing to a blue through which a light or dark page shows, so that numbers in
# the color of the page's text can be read in every cell.
_BLUE = (0.12, 0.47, 0.79)
_SHADES = LinearSegmentedColormap.from_list("shades", [(*_BLUE, 0), (*_BLUE, 0.65)])

_INCHES_PER_CLASS = 0.19
_INCHES_PER_F1 = 0.33
_POINTS_PER_INCH = 72
_LETTER_WIDTH = 0.65  # Of the font's size.


class ConfusionPart(NamedTuple):
    """A confusion matrix, with the run, the rounds and the clients that it counts."""

    label: str  # Of the run.
    rounds: str  # Such as "last round, 40".
    clients: str  # All, or the worst tenth.
    counts: Counts
    class_names: Sequence[str] = ()  # Of all classes in order; by default numbers.

    def names(self) -> list[str]:
        """Returns the name of each class, or its number if it has none."""
        names = [*self.class_names[: len(self.counts)]]
        return names + [*map(str, range(len(names), len(self.counts)))]


@figure_layout.with_style
def confusion_plot(parts: Sequence[ConfusionPart], title: str = "") -> Figure:
    """Draws confusion matrices, normalized over the true labels, two in a row.

    Of up to 12 classes each cell has its number of examples, or where that is too long
    to be read, its percentage of the true label. Of many named classes every second or
    third name is written.
    """
    columns = 1 if figure_layout.is_narrow() else 2
    num_rows = -(-len(parts) // columns)
    figure = figure_layout.new_figure(0.7 + 3.2 * num_rows)
    all_axes: Any = figure.subplots(num_rows, columns, squeeze=False)
    inches = 2.55  # The side of a matrix whose classes have short names, about.
    sides = [inches - _text_inches(max(_lengths(part)) - 2) for part in parts]
    counts_fit = all(
        _text_inches(len(str(part.counts.max()))) * len(part.counts) <= side
        for part, side in zip(parts, sides)
        if len(part.counts) <= _MAX_NUMBERED
    )
    for axes, part, side in zip(all_axes.flat, parts, sides):
        counts = part.counts[:, : len(part.counts)]
        shares = normalize_counts(part.counts, "true")[:, : len(part.counts)]
        _draw_cells(axes, shares)
        axes.set_aspect("equal")
        axes.set(xlabel="Predicted label", ylabel="True label")
        name = run_styles.style_of(part.label).label
        axes.set_title(f"{name}\n{part.rounds}, {part.clients}")
        _name_classes(axes, part, side)
        if len(counts) > _MAX_NUMBERED:
            continue
        for (row, column), count in np.ndenumerate(counts):
            number = count if counts_fit else round(100 * shares[row, column])
            _write(axes, row, column, f"{number}" if count else "")
    for axes in all_axes.flat[len(parts) :]:
        axes.set_axis_off()
    words = "shade: share of the true label"
    if any(len(part.counts) <= _MAX_NUMBERED for part in parts):
        words += "; numbers: " + ("examples" if counts_fit else "percent of it")
    figure.supxlabel(words, fontsize=8)
    figure_layout.set_figure_title(
        figure, f"Confusion matrices (normalize: true)\n{title}"
    )
    return figure


@figure_layout.with_style
def class_f1_plot(parts: Sequence[ConfusionPart], title: str = "") -> Figure:
    """Draws the F1 of each class as a heat map: a row per class, a column per part.

    A class without examples and without predictions has an empty cell. Where the
    columns are more than fit side by side, they are in panels below each other.
    """
    largest = max(parts, key=lambda part: len(part.counts))
    names = [*map(_short, largest.names())]
    table = np.full([len(names), len(parts)], np.nan)
    for place, part in enumerate(parts):
        table[: len(part.counts), place] = class_metrics(part.counts)["f1"]
    labels = [run_styles.style_of(part.label).label for part in parts]
    heads = [f"{label}\n{part.clients}" for label, part in zip(labels, parts)]
    longest_head = max(len(line) for head in heads for line in head.split("\n"))
    figure = figure_layout.new_figure(1.0)
    width = figure.get_figwidth() - _text_inches(max(map(len, names))) - 0.4
    columns = min(len(parts), int(width / _INCHES_PER_F1))
    is_upright = _text_inches(longest_head) * columns > width
    num_panels = -(-len(parts) // columns)
    heads_height = _text_inches(longest_head) if is_upright else 0.35
    panel_height = heads_height + 0.3 + _INCHES_PER_CLASS * len(names)
    figure.set_figheight(0.6 + panel_height * num_panels)
    all_axes: Any = figure.subplots(num_panels, 1, squeeze=False)
    for panel, axes in enumerate(all_axes.flat):
        shown = slice(panel * columns, (panel + 1) * columns)
        _draw_cells(axes, table[:, shown])
        axes.set_xlim(-0.5, columns - 0.5)  # Columns of all panels are equally wide.
        axes.set_yticks(range(len(names)), names)
        places = range(len(heads[shown]))
        axes.set_xticks(places, heads[shown], rotation=90 if is_upright else 0)
        axes.xaxis.tick_top()
        for (row, column), f1 in np.ndenumerate(table[:, shown]):
            if np.isfinite(f1):
                _write(axes, row, column, f"{f1:.2f}")
    rounds = ", ".join(dict.fromkeys(part.rounds for part in parts))
    all_axes[-1, 0].set_xlabel(f"F1, {rounds}")
    figure_layout.set_figure_title(figure, f"F1 of each class\n{title}")
    return figure


def _draw_cells(axes: Any, shades: Any) -> None:
    """Draws a table of shades from 0 to 1, its first row on top."""
    axes.grid(False)
    rows, columns = shades.shape
    edges = np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5
    axes.pcolormesh(*edges, shades, cmap=_SHADES, vmin=0, vmax=1)
    axes.invert_yaxis()


def _name_classes(axes: Any, part: ConfusionPart, inches: float) -> None:
    """Names the classes at both axes of a matrix, as many as there is room for."""
    names = part.names()
    if len(names) > _MAX_NUMBERED and not part.class_names:
        return  # Of many numbers matplotlib writes even ones.
    points_per_name = _POINTS_PER_INCH * inches / len(names)
    step = max(1, round((_font_size() + 1) / points_per_name))
    places = range(0, len(names), step)
    texts = [_short(names[place]) for place in places]
    axes.set_yticks(places, texts)
    axes.set_xticks(places, texts, rotation=90 if max(_lengths(part)) > 2 else 0)


def _write(axes: Any, row: int, column: int, text: str) -> None:
    """Writes into a cell."""
    axes.text(column, row, text, ha="center", va="center", fontsize=_font_size())


def _font_size() -> float:
    """Returns the size of the letters in cells and at axes, points."""
    return float(matplotlib.rcParams["xtick.labelsize"])


def _text_inches(letters: int) -> float:
    """Returns how wide a text is, about."""
    return max(0, letters) * _LETTER_WIDTH * _font_size() / _POINTS_PER_INCH


def _lengths(part: ConfusionPart) -> list[int]:
    return [len(_short(name)) for name in part.names()]


def _short(name: str) -> str:
    text = run_styles.figure_text(name)
    if len(text) <= _MAX_NAME_LETTERS:
        return text
    return f"{text[: _MAX_NAME_LETTERS - 1]}…"
