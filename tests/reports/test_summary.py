"""The last and the best round of runs: rows, table, file and plot, by hand."""

import pytest
from folders import TRAINED
from reported import write

from tff_pmc.reports import fairness_page, summary

# Three rounds of four devices, of which the third has no test examples.
EXAMPLES = [10, 10, 0, 20]
FALLING = [[1, 1, 0, 2], [9, 5, 0, 20], [9, 6, 0, 18]]
RISING = [[0, 0, 0, 0], [1, 1, 0, 2], [8, 8, 0, 16]]


@pytest.fixture
def runs(run_of, tmp_path):
    data = {"name": "m", "clients": 4}
    return [
        run_of(label, correct, EXAMPLES, settings=TRAINED, data=data, path=label)
        for label, correct in (("DS", FALLING), ("LD,DS", RISING))
    ]


def test_the_table_says_both_rounds_or_that_they_are_one(runs):
    title, head, *lines, note = summary.text(runs).splitlines()
    assert "chosen on the same examples" in note
    assert title.endswith("(3 of 4, who have tests)")
    assert head.split()[0] == "round" and "mean of worst tenth" in head
    words = [line.split() for line in lines]
    assert words[0][:4] == ["DS", "last", "3", "0.8250"]
    assert words[1][:4] == ["DS", "best", "2", "0.8500"]
    assert words[2][:6] == ["LD,DS", "last", "and", "best", "3", "0.8000"]
    assert words[2][6:] == ["0.8000", "0.8000", "0.0000", "1.0000"]
    assert len(lines) == 3


def test_the_report_draws_each_figure_over_the_rounds(runs, tmp_path):
    text = write("fairness", runs, tmp_path)
    assert text == summary.text(runs)
    assert (tmp_path / "fairness.png").read_bytes().startswith(b"\x89PNG")
    figure = fairness_page.fairness_plot(runs, title="title")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [measure.title for measure in summary.SPREAD.values()]
    worst = figure.axes[1].get_lines()
    assert [line.get_label() for line in worst] == ["DS", "LD≻DS"]
    assert worst[0].get_xydata().tolist() == [[1, 0.1], [2, 0.5], [3, 0.6]]
    assert worst[1].get_xydata().tolist() == [[1, 0.0], [2, 0.1], [3, 0.8]]


def test_of_many_runs_each_has_a_panel_beside_the_baseline(run_of):
    """By hand: of one client with one right of ten each round, all figures are it."""
    labels = ("DS", "LD", "MD", "LD,DS,MD", "LD,DS,MD (backtracking)")
    runs = [
        run_of(label, [[place], [2 * place + 1]], [10])
        for place, label in enumerate(labels)
    ]
    figure = fairness_page.fairness_plot(runs, title="title")
    assert [axes.get_title() for axes in figure.axes] == [
        *("LD", "MD", "LD≻DS≻MD", "LD≻DS≻MD\nbacktracking")
    ]
    for place, axes in enumerate(figure.axes, 1):
        base, *curves = [list(line.get_ydata()) for line in axes.get_lines()]
        assert base == [0, 0]
        # Points from DS, which has 0 and 1 right; two figures.
        assert curves == 2 * [pytest.approx([10 * place, 20 * place])]
        low, high = axes.get_ylim()
        assert -5 < low < 0 and 80 < high < 85
    assert "points from DS" in figure.get_supylabel()
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["10th percentile", "mean of worst tenth", "DS"]
    alone = fairness_page.fairness_plot([*runs[1:], runs[1]], title="title")
    (first, _), *_ = (axes.get_lines() for axes in alone.axes)
    assert list(first.get_ydata()) == [0.1, 0.3]  # Without DS as they are.
    assert alone.get_supylabel() == "accuracy"


def test_over_seeds_a_run_has_its_mean_and_its_spread_but_not_of_one(run_of):
    """Last rounds of .5, .7 and .9; the numbers of the file are in the kept ones."""
    by_seed = {
        seed: [run_of("DS", [[0, 0], last], [10, 10])]
        for seed, last in ((7, [4, 6]), (8, [6, 8]), (9, [9, 9]))
    }
    for (run,) in by_seed.values():
        run.rounds["clients"], run.rounds["excluded"] = 5, [0, 2]
    report = summary.seeds_report(by_seed)
    title, head, ds, out = report.text.splitlines()
    assert out.startswith("DS: 6 of 30 trainings were left out, ")
    assert "over 3 seeds" in title and "last accuracy" in head
    assert ds.split()[:4] == ["DS", "0.7000", "±", "0.2000"]
    assert report.pages["seeds"].blocks[-1].grid[1][1] == "0.700 (0.500 to 0.900)"
    text = summary.seeds_report({7: by_seed[7]}).text
    assert text.splitlines()[2].split()[:3] == ["DS", "0.5000", "0.5000"]


def test_over_five_seeds_a_cell_has_the_mean_its_interval_and_the_range(run_of):
    """Of 50, 60, 70, 80, 90: the deviation is 15.81 and t is 2.7764, so 19.63.

    Of both devices one counts as half: 60 % is reached in rounds 2 and 1 and so on,
    90 % under one seed alone.
    """
    settings = {"targets": [60, 90]}
    by_seed = {
        seed: [run_of("DS", [[first] * 2, [last] * 2], [10, 10], settings=settings)]
        for seed, (first, last) in enumerate([(6, 5), (0, 6), (0, 7), (7, 8), (6, 9)])
    }
    report = summary.seeds_report(by_seed)
    rows = report.tables["seeds"].set_index("quantity")
    found = rows.loc["last_accuracy", ["mean", "interval", "lowest", "highest"]]
    assert found.tolist() == pytest.approx([0.7, 0.19632, 0.5, 0.9], abs=1e-5)
    assert rows.loc["rounds_to_90", "seeds"] == 1
    assert rows.loc["rounds_to_90", ["mean", "interval"]].isna().all()
    _, _, accuracy, heading, rounds = report.pages["seeds"].blocks
    assert accuracy.grid[1][:2] == ["DS", "0.700 ± 0.196 (0.500 to 0.900)"]
    assert "half of the devices" in heading.text
    # 1, 2, 2, 1, 1: the deviation is 0.5477, so 0.680.
    assert rounds.grid == [
        ["", "60 %", "90 %"],
        ["DS", *("1.4 ± 0.7 (1 to 2)", "1 of 5 seeds (2 to 2)")],
    ]
