"""The look that all figures share, and the one function that writes them to files.

A function that draws returns a `matplotlib.figure.Figure` and writes nothing; it never
touches `pyplot`, so that a notebook's backend stays what it is.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import html
import io
import math
import re
import textwrap
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Optional, TypeVar

import matplotlib
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from tff_pmc.reports.figures.run_styles import Style, figure_text

WIDTH = 7.0
"""The width of a figure, inches: that of a page of two columns."""

_MAX_PANEL_LETTERS = 25
_MIN_LABEL_HEIGHT = (
    2.8  # Inches, below which a figure has no room for all of `ACCURACY`.
)

_LOOK: dict[str, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "figure.titlesize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.alpha": 0.3,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.2,
    "pdf.fonttype": 42,  # Letters stay letters.
}

_PAGE_LOOK: dict[str, Any] = {
    **_LOOK,
    # No text below 10 pixels: an inch of a page has 96, and a point 1.33.
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), 8),
    **dict.fromkeys(("legend.fontsize", "legend.title_fontsize"), 8),
    "svg.fonttype": "none",  # Letters stay letters, in the page's font.
    "font.sans-serif": ["DejaVu Sans"],
}
_LEGEND_LINE = 0.17  # Inches.

PAGE_WIDTHS = {"wide": WIDTH, "narrow": 3.7}
"""The widths of figures inside a page, inches: of a screen, and of a phone."""

_page_width: contextvars.ContextVar[Optional[float]] = contextvars.ContextVar(
    "page_width", default=None
)
_redraws: weakref.WeakKeyDictionary[Figure, Callable[[], Figure]] = (
    weakref.WeakKeyDictionary()
)

ROUNDS = "round"
ACCURACY = "accuracy, all clients' test examples"
"""What the axes of most figures are."""

DPI = 120
"""Pixels to an inch of the PNGs."""

_TITLE_LETTERS_PER_INCH = 17  # Of a title.
_COLORS = 128  # Of a PNG's palette: a plot has few, and the file is a third as large.

_Drawing = TypeVar("_Drawing", bound=Callable[..., Any])


def with_style(draw: _Drawing) -> _Drawing:
    """Makes a function draw in the look that all figures share."""

    @functools.wraps(draw)
    def drawn(*args: Any, **options: Any) -> Any:
        with matplotlib.rc_context(_PAGE_LOOK if _page_width.get() else _LOOK):
            figure = draw(*args, **options)
        if figure is not None:
            _redraws[figure] = functools.partial(drawn, *args, **options)
        return figure

    return drawn  # type: ignore[return-value]


@contextlib.contextmanager
def for_page(width: float) -> Iterator[None]:
    """Makes figures drawn inside the context fit a page of this width, in inches.

    They have no titles, which the page has; the narrower the page, the fewer panels
    stand side by side, and legends stand below.
    """
    token = _page_width.set(width)
    try:
        yield
    finally:
        _page_width.reset(token)


def redraw(figure: Figure) -> Figure:
    """Returns a figure drawn again, in the current layout; see `for_page`."""
    return _redraws[figure]() if figure in _redraws else figure


def is_narrow() -> bool:
    """Whether the figure is for a page on which two panels hardly fit side by side."""
    width = _page_width.get()
    return width is not None and width < 5


def panels(
    count: int, *, columns: int = 0, height: float = 1.55
) -> tuple[Figure, list[Any]]:
    """Returns a figure of small panels with common axes, and its panels.

    `columns` are the most in a row, by default those that leave the fewest places
    empty, and `height` is that of a panel, inches.
    """
    columns = min(columns or (3 if count in (3, 5, 6, 9) else 4), count)
    columns = min(columns, 2) if is_narrow() else columns
    rows = -(-count // columns)
    figure = new_figure(0.75 + height * rows)
    all_axes: Any = figure.subplots(
        rows, columns, sharex=True, sharey=True, squeeze=False
    ).ravel()
    for place, axes in enumerate(all_axes[count:], start=count):
        axes.set_axis_off()
        # The panel above has the numbers that this one would.
        all_axes[place - columns].tick_params(labelbottom=True)
    return figure, list(all_axes[:count])


def label_axes(
    figure: Figure, all_axes: Sequence[Any], y_label: str, handles: Sequence[Any] = ()
) -> None:
    """Writes what the axes and the lines of small panels are, once for all of them.

    The rounds are named below the lowest panel of each column, where the legend below
    the figure leaves room for it.
    """
    for axes in all_axes:
        if axes.xaxis.get_tick_params()["labelbottom"]:
            axes.set_xlabel(ROUNDS)
    if figure.get_figheight() < _MIN_LABEL_HEIGHT:
        y_label = y_label.replace(", ", ",\n")
    figure.supylabel(y_label, fontsize=8)
    if handles:
        add_legend(figure, handles, below=True)


def add_legend(
    figure: Figure, handles: Sequence[Any], title: str = "", *, below: bool = False
) -> None:
    """Adds the legend of a figure, at its right or below; on a phone always below."""
    options: dict[str, Any] = {"handles": handles, "title": title or None}
    if not is_narrow():
        if below:
            _add_legend_below(figure, options)
        else:
            figure.legend(**options, loc="outside right center", alignment="left")
        return
    lines = len(handles) + len(title.splitlines())
    figure.set_figheight(figure.get_figheight() + _LEGEND_LINE * (lines + 1))
    figure.legend(**options, loc="outside lower left", alignment="left")


def _add_legend_below(figure: Figure, options: Mapping[str, Any]) -> None:
    """Adds a legend in the fewest rows that are not wider than the figure.

    The figure grows by all rows but the first. `options` are those of `Figure.legend`.
    """
    count = len(options["handles"])
    for rows in range(1, count + 1):
        legend = figure.legend(
            **options,
            loc="outside lower center",
            ncols=math.ceil(count / rows),
            alignment="center",
        )
        if rows == count or legend.get_window_extent().width <= figure.bbox.width:
            more_height = 2 * _LEGEND_LINE * (rows - 1)  # Labels may have two lines.
            figure.set_figheight(figure.get_figheight() + more_height)
            return
        legend.remove()


def legend_handle(label: str, color: str = "black", **options: Any) -> Line2D:
    """Returns a line for a legend; `options` are those of `Line2D`."""
    return Line2D([], [], color=color, label=label, **options)


def name_panel(axes: Any, label: str) -> None:
    """Writes what is drawn in a small panel, in lines that leave the next one room.

    A label without spaces, as `average[0.5,0.3,0.2]:DS,LD,MD`, is broken behind its
    colon and, if need be, its commas.
    """
    if len(label) > _MAX_PANEL_LETTERS:
        label = label.replace(":", ":\n")
    lines = [""]
    for part in re.findall(r"[^,\n]+,?|\n", label):
        if part == "\n" or len(lines[-1] + part) > _MAX_PANEL_LETTERS:
            lines.append("")
        lines[-1] += part.strip("\n")
    axes.set_title("\n".join(filter(None, lines)))


def set_figure_title(figure: Figure, title: str) -> None:
    """Writes the title of a figure, in lines that are not wider than it."""
    if _page_width.get():  # The page has the title.
        return
    letters = round(_TITLE_LETTERS_PER_INCH * figure.get_size_inches()[0])
    lines = [textwrap.fill(line, letters) for line in _as_texts(title)]
    figure.suptitle("\n".join(lines))


def set_panel_title(axes: Any, title: str) -> None:
    """Writes the title of a figure of one panel, above its left end."""
    if _page_width.get():
        return
    axes.set_title("\n".join(_as_texts(title)), loc="left")


def _as_texts(title: str) -> list[str]:
    """Returns the lines of a title; no name in it is read as a formula."""
    return [figure_text(line) for line in title.splitlines()]


def new_figure(height: float, width: float = WIDTH) -> Figure:
    """Returns a figure without panels; its size is in inches."""
    width = min(width, _page_width.get() or width)
    return Figure(figsize=(width, height), dpi=DPI, layout="constrained")


def one_panel(height: float = 3.0, width: float = WIDTH) -> tuple[Figure, Any]:
    """Returns a figure of one panel, and the panel."""
    figure = new_figure(height, width)
    return figure, figure.subplots()


def draw_curve(
    axes: Any,
    seeds: Sequence[pd.Series[float]],
    style: Style,
    *,
    label: str = "",
    **options: Any,
) -> None:
    """Draws a value over the rounds; of several seeds the mean, in a band.

    The band is from the lowest to the highest seed of each round: of a few seeds a
    standard deviation would show less. `band_words` explains it to a reader. Both end
    with the seed whose run ended first, as by `--patience`.
    """
    table = pd.concat(seeds, axis=1, join="inner")
    drawn = {"color": style.color, "linestyle": style.line, **options}
    if len(table) == 1:
        drawn.setdefault("marker", "o")
    axes.plot(table.index, table.mean(axis=1), label=label or style.label, **drawn)
    if len(seeds) > 1:
        axes.fill_between(
            table.index,
            table.min(axis=1),
            table.max(axis=1),
            color=drawn["color"],
            alpha=0.18,
            linewidth=0,
        )


def band_words(seeds: int) -> str:
    """Returns what a line and its band are, for a legend; nothing for one seed."""
    if seeds < 2:
        return ""
    return f"line: mean of {seeds} seeds; band: lowest to highest"


def finish_panel(
    axes: Any, title: str, y_label: str, handles: Sequence[Any], what: str, band: str
) -> None:
    """Writes the title, the axes and the legend of one panel over the rounds.

    The legend, next to the panel, names its lines (`what`) and its band.
    """
    set_panel_title(axes, title)
    axes.set(xlabel=ROUNDS, ylabel=y_label)
    legend_title = "\n".join([what, *band.split("; ")]).strip()
    add_legend(axes.figure, handles, legend_title)


def zoom_to_curves(axes: Any, curves: Sequence[pd.Series[float]]) -> None:
    """Sets the limits close around shares by round, within 0 and 1."""
    round_axis(axes, max(int(curve.index.max()) for curve in curves))
    share_limits(axes, pd.concat(curves))


def share_limits(axes: Any, values: Iterable[float]) -> None:
    """Sets the vertical limits close around shares that are drawn, within 0 and 1."""
    finite = [float(value) for value in values if value == value]
    low, high = min(finite), max(finite)
    margin = max(0.05 * (high - low), 0.005)
    axes.set_ylim(max(0.0, low - margin), min(1.0 + margin / 4, high + margin))


def round_axis(axes: Any, last: int) -> None:
    """Makes the horizontal axis one of whole rounds from 1 to the last."""
    last = max(2, last)
    margin = 0.015 * (last - 1)  # For the marks of the first and the last.
    axes.set_xlim(1 - margin, last + margin)
    number_rounds(axes, last)


def number_rounds(axes: Any, last: int) -> None:
    """Writes whole numbers at the horizontal axis: 1, and then even steps."""
    most = 12 if axes.get_subplotspec().get_gridspec().ncols == 1 else 4
    steps = [1, 2, 5, 10]
    ticks = MaxNLocator(most, integer=True, steps=steps).tick_values(0, last)
    step = max(1, round(ticks[1] - ticks[0]))
    step = 5 if step == 2 else step  # A 2 would touch the 1.
    axes.set_xticks(sorted({1, *range(step, last + 1, step)}))


def png_bytes(figure: Figure) -> bytes:
    """Returns a figure as the content of a PNG."""
    from PIL import Image

    with matplotlib.rc_context(_LOOK):
        drawn, small = io.BytesIO(), io.BytesIO()
        figure.savefig(drawn, format="png")
    image = Image.open(drawn).convert("RGB").quantize(_COLORS)
    image.save(small, format="PNG", optimize=True)
    return small.getvalue()


def svg_text(figure: Figure, description: str, salt: str = "") -> str:
    """Returns a figure as an SVG element for a page, in the page's colors and fonts.

    Its background is transparent, and black is the color of the text around it. The
    ids of its elements follow from `salt`, and must differ within a page.
    """
    drawn = io.StringIO()
    look = {**_PAGE_LOOK, "svg.hashsalt": salt or description}
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context(look):
        figure.savefig(drawn, format="svg", transparent=True, metadata=nothing)
    text = drawn.getvalue()
    element = text[text.index("<svg") + len("<svg") :].replace(
        "#000000", "currentColor"
    )
    links = set(re.findall(r"#([\w.]+)", element))
    element = re.sub(
        r' id="([^"]*)"', lambda id: id[0] if id[1] in links else "", element
    )
    label = html.escape(description, quote=True)
    return f'<svg role="img" aria-label="{label}" fill="currentColor"{element}'


def save(figure: Figure, stem: str, *, pdf: bool = False) -> None:
    """Writes a figure as `STEM.png`, and as `STEM.pdf` where that is requested."""
    with open(f"{stem}.png", "wb") as file:
        file.write(png_bytes(figure))
    if pdf:
        with matplotlib.rc_context(_LOOK):
            # Without a date, so that equal figures are equal files.
            figure.savefig(f"{stem}.pdf", metadata={"CreationDate": None})
