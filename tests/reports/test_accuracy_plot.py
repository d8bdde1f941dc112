"""Accuracy over rounds: few lines to a panel, bands over seeds, axes close around."""

import pytest
from folders import TRAINED

from tff_pmc.reports import plots, styles


@pytest.fixture
def runs(run_of):
    """A function that makes runs of two devices from their accuracies, percent."""

    def make(**curves):
        info = {"settings": TRAINED, "data": {"name": "m", "clients": 2}}
        counts = {n: [[value] * 2 for value in one] for n, one in curves.items()}
        return [
            run_of(name.replace("_", ","), correct, [100, 100], **info)
            for name, correct in counts.items()
        ]

    return make


def lines_of(axes):
    lines = axes.get_lines()
    return {x.get_label(): (x.get_xydata().tolist(), x.get_color()) for x in lines}


def test_of_several_seeds_it_is_the_mean_in_a_band_from_lowest_to_highest(runs):
    seeds = [*runs(DS=[40, 44]), *runs(DS=[42, 50]), *runs(DS=[47, 47])]
    figure = plots.accuracy_plot(seeds)
    (axes,) = figure.axes
    ((points, color),) = lines_of(axes).values()
    assert points == [[1, pytest.approx(0.43)], [2, pytest.approx(0.47)]]
    (band,) = axes.collections
    corners = {tuple(v.round(6)) for v in band.get_paths()[0].vertices}
    assert corners == {(1, 0.4), (1, 0.47), (2, 0.44), (2, 0.5)}
    said = figure.legends[0].get_title().get_text()
    assert "mean of 3 seeds" in said and "lowest to highest" in said


def test_the_axes_are_close_around_the_curves(runs):
    (axes,) = plots.accuracy_plot(runs(DS=[40, 50], LD=[42, 48], MD=[45, 46])).axes
    low, high = axes.get_ylim()
    assert 0.38 < low < 0.4 and 0.5 < high < 0.52
    left, right = axes.get_xlim()
    assert 0.95 < left < 1 and 2 < right < 2.05


@pytest.mark.parametrize(
    ("rounds", "ticks"),
    [(1, [1]), (3, [1, 2, 3]), (12, [*range(1, 13)]), (40, [1, *range(5, 41, 5)])],
)
def test_rounds_are_whole_numbers_that_begin_with_1(runs, rounds, ticks):
    (axes,) = plots.accuracy_plot(runs(DS=[40] * rounds)).axes
    left, right = axes.get_xlim()
    assert [x for x in axes.get_xticks() if left <= x <= right][: len(ticks)] == ticks
    panels = plots.accuracy_plot(
        runs(**dict.fromkeys(("DS", "LD", "MD", "MD_LD", "LD_MD"), [40] * 50))
    )
    assert list(panels.axes[0].get_xticks()) == [1, 20, 40]


def test_of_many_each_has_a_panel_with_the_baseline_behind(runs):
    figure = plots.accuracy_plot(
        runs(DS=[40, 41], LD_DS_MD=[46, 47], MD=[44, 45], LD=[42, 43])
    )
    panels = {axes.get_title(): lines_of(axes) for axes in figure.axes if axes.axison}
    assert list(panels) == ["LD", "MD", "LD≻DS≻MD"]
    gray = ([[1, 0.4], [2, 0.41]], styles.style_of("DS").color)
    for name, lines in panels.items():
        assert list(lines) == ["DS", name] and lines["DS"] == gray
    points, color = panels["LD≻DS≻MD"]["LD≻DS≻MD"]
    assert points == [[1, 0.46], [2, 0.47]]
    assert color == styles.style_of("LD,DS,MD").color


def test_an_adjusted_ordering_is_beside_the_fixed_one_and_dashed(runs):
    labels = {"DS": [40], "LD": [41], "MD": [42], "LD_MD": [43]}
    made = runs(**labels, **{f"{name} (backtracking)": [44] for name in labels})
    figure = plots.accuracy_plot(made)
    assert len([axes for axes in figure.axes if axes.axison]) == 3
    for axes in figure.axes[:3]:
        dashes = [line.is_dashed() for line in axes.get_lines()]
        assert dashes == [False, True, False, True]
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["DS", "fixed", "backtracking"]
