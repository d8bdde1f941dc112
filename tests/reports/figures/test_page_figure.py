"""Figures inside a page: for two widths, and for light and dark screens."""

import re
import xml.etree.ElementTree as ET

import pytest
from matplotlib.colors import to_rgb

from tff_pmc.reports.figures import figure_layout, page_figure

PIXELS_OF_A_POINT = 96 / 72


@figure_layout.with_style
def draw(points=3):
    figure, all_axes = figure_layout.panels(3)
    for axes in all_axes:
        axes.plot(range(points), [0.1] * points, color="#332288", label="a line")
        axes.set_title("a panel")
    handles = [figure_layout.legend_handle(f"line {k}", "#882255") for k in range(9)]
    figure_layout.label_axes(figure, all_axes, figure_layout.ACCURACY, handles)
    figure_layout.set_figure_title(figure, "the title")
    return figure


def panel_places(svg):
    """Returns the places of the panels' titles, (x, y) each, in points."""
    texts = re.findall(r"translate\(([-\d.]+) ([-\d.]+)\)[^<]*>a panel", svg)
    return [(float(x), float(y)) for x, y in texts] or [
        (float(x), float(y))
        for x, y in re.findall(r'x="([-\d.]+)" y="([-\d.]+)"[^>]*>a panel', svg)
    ]


def test_panels_are_stacked_on_a_phone_and_no_text_shrinks():
    svg = page_figure.page_figure(draw(), "mine").svg
    wide, narrow = (ET.fromstring(svg[place]) for place in ("wide", "narrow"))
    widths = [float(root.get("width").rstrip("pt")) for root in (wide, narrow)]
    assert [round(width * PIXELS_OF_A_POINT) for width in widths] == [672, 355]
    rows = [len({y for _, y in panel_places(svg[place])}) for place in svg]
    assert rows == [1, 2]
    for text in svg.values():
        sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px", text)]
        # matplotlib writes points as pixels, in a picture whose unit is a point.
        assert sizes and min(sizes) * PIXELS_OF_A_POINT >= 10
        assert "the title" not in text and "a panel" in text


def test_colors_are_variables_and_visible_on_a_dark_screen():
    figure = page_figure.page_figure(draw(), "mine")
    for text in figure.svg.values():
        assert not re.search(r"#[0-9a-f]{6}", text)
        assert "var(--c332288)" in text and "currentColor" in text
    assert {"#332288", "#882255"} <= figure.colors
    assert page_figure.color_rules(["#332288"]) == "--c332288: #332288;"
    dark = page_figure.color_rules(["#332288"], dark=True)
    assert dark != "--c332288: #332288;"


@pytest.mark.parametrize("color", ["#000000", "#332288", "#882255", "#66bbdd"])
def test_a_lightened_color_has_the_contrast_of_a_line(color):
    """WCAG's contrast, computed here from its text."""

    def luminance(name):
        parts = [
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
            for c in to_rgb(name)
        ]
        return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), parts))

    seen = luminance(page_figure.lighten(color)) + 0.05
    assert seen / (luminance(page_figure.DARK_PAPER) + 0.05) >= 3
    if color == "#66bbdd":
        assert page_figure.lighten(color) == color


def test_ids_of_two_figures_differ_and_equal_figures_are_equal():
    first, again = (page_figure.page_figure(draw(), "a").svg for _ in range(2))
    other = page_figure.page_figure(draw(), "b").svg
    assert first == again
    ids = [
        {*re.findall(r'clip-path="url\(#(\w+)\)"', figure["wide"])}
        for figure in (first, other)
    ]
    assert ids[0] and not ids[0] & ids[1]


def test_a_figure_of_very_many_points_is_a_raster_image(monkeypatch):
    monkeypatch.setattr(page_figure, "MAX_BYTES", 100)
    assert page_figure.page_figure(draw(), "mine") == (None, frozenset())


@pytest.mark.parametrize("count", [2, 7, 12])
def test_a_legend_below_is_not_wider_than_its_figure(count):
    figure, all_axes = figure_layout.panels(4)
    words = ["half of the devices\nreach the target", *["as published"] * (count - 1)]
    handles = [figure_layout.legend_handle(label) for label in words]
    figure_layout.label_axes(figure, all_axes, figure_layout.ACCURACY, handles)
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width
    assert len(legend.get_texts()) == count
