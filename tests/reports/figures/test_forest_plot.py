"""The forest plot: its points, intervals, verdicts and words."""

import math

import pandas as pd
import pytest

from tff_pmc.reports.figures.forest_plot import forest_plot


def table_of(rows, metric="accuracy", titles=None):
    """Returns a table of (row, measure, mean, interval, verdict)."""
    names = ["row", "measure", "mean", "interval", "verdict"]
    table = pd.DataFrame(rows, columns=names)
    table = table.assign(seeds=5, more_in=1, less_in=3)
    table.attrs = {"metric": metric, "titles": titles or {}}
    return table


def points_of(axes):
    """Returns x, row, marker and whether it is filled, of each mean."""
    return [
        (
            *line.get_xydata()[0],
            line.get_marker(),
            line.get_markerfacecolor() != "white",
        )
        for line in axes.get_lines()
        if line.get_marker() in ("o", "s")
    ]


def test_each_row_has_its_mean_interval_and_verdict():
    """Accuracies are in points; a row has the same height in all panels."""
    figure = forest_plot(
        table_of(
            [
                ("LD", "accuracy", 0.02, 0.01, "better"),
                ("MD", "accuracy", -0.03, 0.01, "worse"),
                ("CB", "accuracy", 0.01, math.nan, "undecided"),
                ("MD", "rounds to 80 %", 1.5, 2.0, "not shown"),
                ("LD", "rounds to 90 %", math.nan, math.nan, "not reached"),
            ],
            titles={"LD": "A title", "MD": "$b$"},
        ),
        title="All",
    )
    first, second, *_ = figure.axes
    assert [axes.get_title() for axes in (first, second)] == [
        *("accuracy", "rounds to 80 %")
    ]
    assert points_of(first) == [
        (pytest.approx(2), 0, "o", True),
        (pytest.approx(-3), 1, "s", True),
        (pytest.approx(1), 2, "o", False),
    ]
    assert points_of(second) == [(1.5, 1, "o", True)]
    intervals = [part.get_segments()[0][:, 0] for part in first.collections]
    assert [list(ends) for ends in intervals] == [
        pytest.approx([1, 3]),
        pytest.approx([-4, -2]),
    ]
    names = [text.get_text() for text in first.get_yticklabels()]
    assert names == ["A title", r"\$b\$", "CB"]
    assert first.get_xlabel() == "points, right is better"
    assert second.get_xlabel() == "rounds, left is better"
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *("better", "worse", "no difference shown", "no verdict below 5 seeds")
    ]


@pytest.mark.parametrize(
    ("measure", "metric", "verdict", "label", "words"),
    [
        (
            "rounds to 80 %",
            "accuracy",
            "censored",
            "rounds, left is better",
            "1 later",
        ),
        ("test_loss", "test_loss", "not finite", "left is better", "not finite"),
        ("worst tenth", "test_loss", "not finite", "left is better", "not finite"),
        (
            "worst tenth",
            "accuracy",
            "not finite",
            "points, right is better",
            "not finite",
        ),
        ("zeros", "accuracy", "not finite", "", "not finite"),
    ],
)
def test_a_difference_without_a_mean_has_words(measure, metric, verdict, label, words):
    rows = [("LD", measure, math.nan, math.nan, verdict)]
    (axes,) = forest_plot(table_of(rows, metric), legend=False).axes
    (text,) = axes.texts
    assert text.get_text().startswith(words) and not points_of(axes)
    assert axes.get_xlabel() == label and not len(axes.get_xticks())
    assert axes.get_title() == measure.replace("_", " ")


def test_if_all_differences_are_equal_zero_is_in_the_middle():
    rows = [("LD", "rounds to 80 %", 0.0, 0.0, "not shown")]
    (axes,) = forest_plot(table_of(rows)).axes
    assert axes.get_xlim() == (-1, 1)
    assert forest_plot(table_of(rows)[:0]).axes  # Nothing to draw is not an error.
