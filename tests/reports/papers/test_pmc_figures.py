"""PMC's Figures 2a, 2b and 3, and the published script's, worked by hand."""

import numpy as np
import pandas as pd
import pytest
from reported import write

from tff_pmc.reports.papers import pmc_figures


def test_the_scripts_target_is_reached_by_the_rule_of_the_runs(tmp_path, run_of):
    ds = run_of("DS", [[2, 4], [3, 5], [4, 5]], [4, 6])  # 60, 80 and 90 %.
    for reach, last in (("at_least", 2), ("above", 3)):
        text = write("pmc_figure2b_script", [ds], tmp_path, reach=reach)
        assert len(pd.read_csv(tmp_path / "figure2b_script.csv")) == last
        assert ["DS", str(last)] in [line.split() for line in text.splitlines()]
        assert f"--reach={reach}" in text
    ld = run_of("LD", [[4, 5], [3, 5], [4, 5]], [4, 6])
    text = write("pmc_figure2b_script", [ds, ld], tmp_path)
    assert ["LD", "1", "+1"] in [line.split() for line in text.splitlines()]


def words_of(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_every_ordering_is_drawn_over_all_rounds_with_ds_behind(run_of):
    rows = {
        "DS": run_of("DS", [[3], [6], [6]], [10]),
        "LD": run_of("LD", [[4], [7], [7]], [10]),
    }
    figure = pmc_figures.draw(rows, "title")
    (panel,) = figure.axes
    behind, each, mean = panel.get_lines()
    assert each.get_xydata().tolist() == [[1, 0.4], [2, 0.7], [3, 0.7]]
    # The mean of five rounds, here of the three that there are.
    np.testing.assert_allclose(mean.get_ydata(), 3 * [0.6])
    np.testing.assert_allclose(behind.get_ydata(), 3 * [0.5])
    assert panel.get_title() == "LD" and "DS" in words_of(figure)
    low, high = panel.get_ylim()
    assert 0.25 < low < 0.3 and 0.7 < high < 0.75  # The space that the curves need.
    alone = pmc_figures.draw({"DS": rows["DS"]}, "title")
    assert len(alone.axes[0].get_lines()) == 2 and "DS" not in words_of(alone)


def test_panels_are_named_and_ordered_as_in_all_plots(run_of):
    """Without MW, as the paper prints MD, and the script's order."""
    names = ["DS", "LD", "MD", "DS,LD,MD", "DS,MD,LD", "LD,DS,MD", "LD,MD,DS"]
    runs = {one: run_of(one, [[3], [9]], [10]) for one in reversed(names)}
    drawn = pmc_figures.draw(runs, "title")
    expected = [name.replace(",", "≻") for name in names]
    assert [axes.get_title() for axes in drawn.axes if axes.axison] == expected[1:]
    curves = {name: run.accuracy for name, run in runs.items()}
    script = pmc_figures.draw_script(curves, dict.fromkeys(names), "title")
    titles = [axes.get_title().split(":")[0] for axes in script.axes if axes.axison]
    assert titles == expected


def test_the_printed_rounds_are_hollow_marks_beside_ours(run_of, page):
    """Table 4: half of the devices have 70 and 80 % in DS's round 10, LD gains 0."""
    settings = {"experiment": "mnist_noniid", "targets": [70, 80, 90, 95]}
    correct = [[min(5 * number, 95)] for number in range(1, 31)]
    labels = ("DS", "LD")
    rows = {one: run_of(one, correct, [100], settings=settings) for one in labels}
    figure = pmc_figures.draw(rows, "title")
    marks = figure.axes[0].collections
    theirs, ours = marks[:3], marks[3:]  # 95 % is beyond the rounds.
    assert {tuple(mark.get_facecolor()[0]) for mark in theirs} == {(1, 1, 1, 1)}
    for mark in ours:
        assert mark.get_facecolor().tolist() == mark.get_edgecolor().tolist()
    cells = page.by_line(4)
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
    other = {**settings, "normalization": "max"}
    rows = {"LD": run_of("LD", correct, [100], settings=other)}
    figure = pmc_figures.draw(rows, "title")
    assert not figure.axes[0].collections
    assert "as published" not in words_of(figure)


@pytest.mark.parametrize(
    ("number", "title"), [("2a", "MNIST IID"), ("2b", "MNIST non-IID"), ("3", "CelebA")]
)
def test_the_figures_are_named_as_in_the_paper(tmp_path, celeba_runs, number, title):
    text = write(f"pmc_figure{number}", celeba_runs[:1], tmp_path)
    assert (tmp_path / f"figure{number}.png").exists()
    assert text.startswith(f"PMC Figure {number}: {title}, test accuracy in each round")
    assert ("exchanged" in text) == (number == "3")
    lines = [line.split() for line in text.split("\n")]
    assert ["DS", "0.7650", "3", "0.7650"] in lines
    text = write(f"pmc_figure{number}_script", celeba_runs, tmp_path)
    said = f"As the published script draws Figure {number}: {title}, up to 80 %"
    assert text.startswith(said)
    assert write(f"pmc_figure{number}_script", [], tmp_path) == ""
    text = write(f"pmc_figure{number}", [], tmp_path)
    assert text == f"PMC Figure {number} is left out: no run of its orderings."
