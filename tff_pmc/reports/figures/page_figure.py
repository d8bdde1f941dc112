"""Figures inside a page: SVG, for two widths and for light and dark screens.

The colors of a figure are variables of the page's style sheet, and its text has the
page's font and color.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tff_pmc.reports.figures import figure_layout

MAX_BYTES = 1_500_000
"""The largest SVG; a figure of more points is a picture."""

DARK_PAPER = "#16181d"
"""The background of the page on a dark screen."""

_COLOR = re.compile(r"#[0-9a-f]{6}\b")
_CONTRAST = 3.0  # Of lines and marks, by WCAG 2.1, 1.4.11.


class PageFigure(NamedTuple):
    """A figure inside a page.

    Attributes:
        svg: the SVG for each of `figure_layout.PAGE_WIDTHS`, by its name; None where
            the figure has too many points for it.
        colors: the colors, `#rrggbb`, that are variables of the page.
    """

    svg: dict[str, str] | None
    colors: frozenset[str]


def page_figure(figure: Figure, name: str, description: str = "") -> PageFigure:
    """Returns a figure for a page, on which its name must be unique."""
    texts, colors = {}, set()
    for place in figure_layout.PAGE_WIDTHS:
        text, used = page_svg(figure, description or name, place, f"{name}-{place}")
        if len(text) > MAX_BYTES:
            return PageFigure(None, frozenset())
        texts[place] = text
        colors.update(used)
    return PageFigure(texts, frozenset(colors))


def page_svg(
    figure: Figure, description: str, place: str, name: str = ""
) -> tuple[str, set[str]]:
    """Returns a figure as an SVG for one of the page widths, and its set of colors."""
    with figure_layout.for_page(figure_layout.PAGE_WIDTHS[place]):
        again = figure_layout.redraw(figure)
        text = figure_layout.svg_text(again, description, name)
    text = text.replace("#ffffff", "var(--paper)")
    colors = {*_COLOR.findall(text)}
    return _COLOR.sub(lambda match: f"var({variable(match[0])})", text), colors


def variable(color: str) -> str:
    """Returns the name of a color's variable in the page's style sheet."""
    return f"--c{color[1:]}"


def color_rules(colors: Iterable[str], *, dark: bool = False) -> str:
    """Returns the variables of colors for a style sheet, lighter on a dark screen."""
    return " ".join(
        f"{variable(color)}: {lighten(color) if dark else color};"
        for color in sorted(colors)
    )


def lighten(color: str) -> str:
    """Returns a color mixed with white until it is visible on a dark screen."""
    paper = _luminance(to_rgb(DARK_PAPER))
    for share in range(11):
        mixed = [value + (1 - value) * share / 10 for value in to_rgb(color)]
        if (_luminance(mixed) + 0.05) / (paper + 0.05) >= _CONTRAST:
            break
    return "#" + "".join(f"{round(255 * value):02x}" for value in mixed)


def _luminance(color: Iterable[float]) -> float:
    """Returns the relative luminance of a color, by WCAG 2.1."""
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in color
    ]
    red, green, blue = linear
    return float(0.2126 * red + 0.7152 * green + 0.0722 * blue)
