"""The differences from the baseline over the rounds."""

import numpy as np
import pytest
from scipy import stats
from small_results import of_seeds

from tff_pmc.reports.figures import difference_plot

EXAMPLES = [10, 10]
COUNTS = {
    0: {"DS": [[1, 2], [3, 4]], "LD": [[2, 2], [5, 5]]},
    1: {"DS": [[2, 2], [4, 4]], "LD": [[1, 1], [8, 8]]},
    2: {"DS": [[3, 3], [5, 5]], "LD": [[3, 4], [9, 9]]},
}


def test_the_line_is_the_mean_of_paired_differences_and_the_band_its_interval():
    results = of_seeds(COUNTS, EXAMPLES)
    figure = difference_plot.difference_plot(results)
    (axes,) = figure.axes
    totals = {
        label: np.array([np.sum(COUNTS[seed][label], axis=1) for seed in COUNTS])
        for label in ("DS", "LD")
    }
    points = 100 * (totals["LD"] - totals["DS"]) / sum(EXAMPLES)
    line = axes.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), points.mean(axis=0))
    half = stats.t.interval(0.95, 2, 0, points.std(axis=0, ddof=1) / np.sqrt(3))[1]
    vertices = axes.collections[0].get_paths()[0].vertices
    for column, number in enumerate((1, 2)):
        drawn = vertices[vertices[:, 0] == number][:, 1]
        mean = points.mean(axis=0)[column]
        np.testing.assert_allclose(
            [drawn.min(), drawn.max()],
            [mean - half[column], mean + half[column]],
            rtol=1e-6,
        )
    assert "minus FedAvg (DS), points" in figure.get_supylabel().replace("\n", " ")


@pytest.mark.parametrize(("count", "panels"), [(3, 1), (4, 4)])
def test_more_than_three_rows_have_a_panel_each(count, panels):
    labels = ["DS", "LD", "MD", "LD,DS", "MD,DS"][: count + 1]
    counts = {label: [[k, 1], [k, 2]] for k, label in enumerate(labels)}
    figure = difference_plot.difference_plot(of_seeds({0: counts}, EXAMPLES))
    assert len(figure.axes) == panels


def test_rounds_that_only_one_of_a_pair_has_are_not_compared():
    results = of_seeds({0: COUNTS[0]}, EXAMPLES)
    ended = (results.rounds["label"] == "LD") & (results.rounds["round"] == 2)
    results.__dict__["rounds"] = results.rounds[~ended]
    (table,) = difference_plot.differences_by_round(results, "accuracy").values()
    assert table.index.tolist() == [1]


def test_a_row_is_compared_with_the_baseline_on_its_data():
    labels = ["DS, 3 clients", "LD, 3 clients", "DS, 4 clients", "LD, 4 clients"]
    counts = dict(zip(labels, [[[1, 1]], [[2, 1]], [[5, 5]], [[5, 8]]]))
    runs = {"title": ["DS", "LD"] * 2, "note": ["3 clients"] * 2 + ["4 clients"] * 2}
    results = of_seeds({0: counts}, EXAMPLES, runs=runs, baseline="DS")
    tables = difference_plot.differences_by_round(results, "accuracy")
    assert {label: round(float(t.iloc[0, 0]), 6) for label, t in tables.items()} == {
        "LD, 3 clients": 5.0,
        "LD, 4 clients": 15.0,
    }


def test_without_a_baseline_or_another_row_there_is_nothing_to_draw():
    alone = of_seeds({0: {"DS": [[1, 2]]}}, EXAMPLES)
    assert not difference_plot.has_differences(alone)
    others = of_seeds({0: {"LD": [[1, 2]], "MD": [[1, 2]]}}, EXAMPLES)
    assert not difference_plot.has_differences(others)
    others.about["baseline"] = "MD"
    assert difference_plot.has_differences(others)
