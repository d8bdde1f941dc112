"""PMC's Figures 2a, 2b and 3, worked by hand."""

import numpy as np
import pytest
from reported import write
from small_results import results_of_seed

from tff_pmc.reports.papers import pmc_figures


def words_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_ordering_is_drawn_over_all_rounds_with_ds_behind():
    runs = results_of_seed({"DS": [[3], [6], [6]], "LD": [[4], [7], [7]]}, [10])
    figure = pmc_figures.draw(runs, "title")
    (panel,) = figure.axes
    behind, each, mean = panel.get_lines()
    assert each.get_xydata().tolist() == [[1, 0.4], [2, 0.7], [3, 0.7]]
    # The mean of five rounds, here of the three that there are.
    np.testing.assert_allclose(mean.get_ydata(), 3 * [0.6])
    np.testing.assert_allclose(behind.get_ydata(), 3 * [0.5])
    assert panel.get_title() == "LD" and "DS" in words_of(figure)
    low, high = panel.get_ylim()
    assert 0.25 < low < 0.3 and 0.7 < high < 0.75  # The space that the curves need.
    alone = pmc_figures.draw(runs.only(label="DS"), "title")
    assert len(alone.axes[0].get_lines()) == 2 and "DS" not in words_of(alone)


CORRECT = [[min(5 * number, 95)] for number in range(1, 31)]


def test_the_printed_rounds_are_hollow_marks_with_ours(pmc_lines):
    """Table 4: half of the devices have 70 and 80 % in DS's round 10, LD gains 0."""
    runs = results_of_seed(
        {"DS": CORRECT, "LD": CORRECT}, [100], experiment="mnist_noniid"
    )
    figure = pmc_figures.draw(runs, "title")
    marks = figure.axes[0].collections
    theirs, ours = marks[:3], marks[3:]  # 95 % is beyond the rounds.
    assert {tuple(mark.get_facecolor()[0]) for mark in theirs} == {(1, 1, 1, 1)}
    for mark in ours:
        assert mark.get_facecolor().tolist() == mark.get_edgecolor().tolist()
    cells = pmc_lines(4)
    rounds = [
        cells["DS (baseline)", target]["50%"] - cells["LD", target]["50%"]
        for target in (70, 80, 90)
    ]
    assert [mark.get_offsets()[0][0] for mark in theirs] == rounds[::-1]
    assert [mark.get_offsets()[0][0] for mark in ours] == [14, 16, 18, 19]
    *_, mean = figure.axes[0].get_lines()
    height = dict(mean.get_xydata().tolist())
    assert height[14] == pytest.approx(0.7) and height[19] == pytest.approx(0.92)
    for mark in marks:
        ((x, y),) = mark.get_offsets()
        assert y == pytest.approx(height[x])  # It lies on its curve.
    assert words_of(figure)[-4:] == ["80 %", "90 %", "95 %", "as published"]


@pytest.mark.parametrize(
    ("number", "title"), [("2a", "MNIST IID"), ("2b", "MNIST non-IID"), ("3", "CelebA")]
)
def test_the_figures_are_named_as_in_the_paper(tmp_path, celeba_runs, number, title):
    runs = celeba_runs.only(label="DS")
    text = write(f"pmc_figure{number}", runs, tmp_path)
    assert (tmp_path / f"figure{number}.png").exists()
    assert text.startswith(f"PMC Figure {number}: {title}, test accuracy in each round")
    assert ("exchanged" in text) == (number == "3")
    lines = [line.split() for line in text.split("\n")]
    # 9 of ten devices have 85 %.
    assert ["DS", "0.7650", "3", "0.7650"] in lines
    none = write(f"pmc_figure{number}", celeba_runs.only(label="none"), tmp_path)
    assert none == f"PMC Figure {number} is omitted: no run of its orderings."
