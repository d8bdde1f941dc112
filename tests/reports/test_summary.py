"""The last and the best round of runs: rows, table, file and plot, by hand."""

import pandas as pd
import pytest
from reported import write

from tff_pmc.reports import fairness_page, summary

# Three rounds of four devices, of which the third has no test examples.
EXAMPLES = [10, 10, 0, 20]
FALLING = [[1, 1, 0, 2], [9, 5, 0, 20], [9, 6, 0, 18]]
RISING = [[0, 0, 0, 0], [1, 1, 0, 2], [8, 8, 0, 16]]
SETTINGS = {
    "targets": [70, 95],
    "experiment": "mine",
    "local_epochs": 5,
    "batch_size": 0,
    "learning_rate": 0.1,
}


@pytest.fixture
def runs(run_of, tmp_path):
    data = {"name": "m", "clients": 4}
    return [
        run_of(label, correct, EXAMPLES, settings=SETTINGS, data=data, path=label)
        for label, correct in (("DS", FALLING), ("LD,DS", RISING))
    ]


def test_a_run_has_its_last_and_its_best_round(runs):
    found = summary.rounds(runs[0])
    assert found["last"]["round"] == 3 and found["best"]["round"] == 2
    assert found["last"]["accuracy"] == 33 / 40
    assert found["best"]["accuracy"] == 34 / 40
    assert found["best"]["worst_tenth"] == 0.5  # Of 0.9, 0.5 and 1.
    assert found["last"]["worst_tenth"] == 0.6
    assert found["last"]["p10"] == pytest.approx(0.6 + 0.2 * 0.3)
    # 0.9, 0.6, 0.9 around 0.8: the root of (0.01 + 0.04 + 0.01) / 3.
    assert found["last"]["standard_deviation"] == pytest.approx(0.02**0.5)
    assert found["last"]["jain_index"] == pytest.approx(2.4**2 / 3 / 1.98)


def test_of_equally_good_rounds_the_first_is_the_best(run_of):
    run = run_of("DS", [[1], [2], [2]], [4])
    assert summary.rounds(run)["best"]["round"] == 2


def test_the_table_says_both_rounds_or_that_they_are_one(runs):
    title, head, *lines, note = summary.text(runs).splitlines()
    assert "chosen on the same examples" in note
    assert title.endswith("(3)")  # Clients with test examples.
    assert head.split()[0] == "round" and "mean of worst tenth" in head
    words = [line.split() for line in lines]
    assert words[0][:4] == ["DS", "last", "3", "0.8250"]
    assert words[1][:4] == ["DS", "best", "2", "0.8500"]
    assert words[2][:6] == ["LD,DS", "last", "and", "best", "3", "0.8000"]
    assert words[2][6:] == ["0.8000", "0.8000", "0.0000", "1.0000"]
    assert len(lines) == 3


def test_the_file_has_them_below_the_rounds(runs, tmp_path):
    write("rounds_to_target", runs, tmp_path)
    csv = pd.read_csv(tmp_path / "results.csv", dtype=str, keep_default_na=False)
    rounds, own = csv[csv["devices"] != "all"], csv[csv["devices"] == "all"]
    assert csv.index[csv["devices"] == "all"].min() == len(rounds)
    assert set(rounds["quantity"]) == {"rounds", "gain"}
    assert set(rounds["target_accuracy_pct"]) == {"70", "95"}
    assert set(own["target_accuracy_pct"]) == {""}
    names = ["round", "accuracy", "p10", "worst_tenth", "standard_deviation"]
    expected = [f"{w}_{n}" for w in ("last", "best") for n in [*names, "jain_index"]]
    assert list(own["quantity"]) == 2 * expected
    value = own.set_index(["experiment", "quantity"])["value"].astype(float)
    assert value["DS", "best_accuracy"] == 0.85
    assert value["LD,DS", "last_round"] == 3
    assert value["DS", "last_standard_deviation"] == 0.141421


def test_the_report_draws_each_figure_over_the_rounds(runs, tmp_path):
    text = write("fairness", runs, tmp_path)
    assert text == summary.text(runs)
    assert (tmp_path / "fairness.png").read_bytes().startswith(b"\x89PNG")
    figure = fairness_page.fairness_plot(runs, title="title")
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == [
        "10th percentile",
        "mean of worst tenth",
        "standard deviation",
        "Jain's index",
    ]
    worst = figure.axes[1].get_lines()
    assert [line.get_label() for line in worst] == ["DS", "LD,DS"]
    assert worst[0].get_xydata().tolist() == [[1, 0.1], [2, 0.5], [3, 0.6]]
    assert worst[1].get_xydata().tolist() == [[1, 0.0], [2, 0.1], [3, 0.8]]


def test_of_many_runs_each_has_a_panel_beside_the_baseline(run_of):
    """By hand: of one client with a tenth right more each round, all figures are it."""
    labels = ("DS", "LD", "MD", "LD,DS,MD", "LD,DS,MD (backtracking)")
    runs = [
        run_of(label, [[place], [place + 1]], [10])
        for place, label in enumerate(labels)
    ]
    figure = fairness_page.fairness_plot(runs, title="title")
    assert [axes.get_title() for axes in figure.axes] == [
        *("LD", "MD", "LD≻DS≻MD", "LD≻DS≻MD\nbacktracking")
    ]
    for place, axes in enumerate(figure.axes, 1):
        curves = [line.get_ydata().tolist() for line in axes.get_lines()]
        own = [place / 10, (place + 1) / 10]
        assert curves == [[0, 0.1], own, [0, 0.1], own]  # Two figures of each.
        low, high = axes.get_ylim()
        assert low == 0 and 0.5 < high < 0.6
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == ["10th percentile", "mean of worst tenth", "DS"]


def test_runs_of_the_published_code_are_drawn_without_our_settings(run_of, tmp_path):
    run = run_of("DS", FALLING, EXAMPLES, settings={})
    write("fairness", [run], tmp_path)
    assert (tmp_path / "fairness.png").exists()
