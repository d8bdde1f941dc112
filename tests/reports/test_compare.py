"""Two runs, or two folders of runs, side by side.

The expected tables are worked out by hand.
"""

import math

import pytest
from folders import CLIENTS, MNIST_LINES

from tff_pmc.reports import compare, read_folder


def test_two_experiments_row_by_row(tmp_path, write_theirs, write_ours):
    """Theirs: 50 % at 2 of 4 examples. Ours: LD,DS,MD with MD over the layers, DS."""
    write_theirs(tmp_path / "theirs" / "1")
    md = ["LD", "DS", "MD_layers"]
    counts = [[0, 0, 1], [2, 1, 1], [2, 2, 2]]
    write_ours(tmp_path / "ours" / "1", CLIENTS, counts, priority=md)
    write_ours(tmp_path / "ours" / "2", CLIENTS, [[4, 0, 0]], priority=["DS"])
    (tmp_path / "ours" / "results.csv").write_text("a file beside the runs")
    table = compare.compare(str(tmp_path / "theirs"), str(tmp_path / "ours"), [50, 95])
    keys = ["experiment", "quantity", "target_accuracy_pct", "devices", "round"]
    assert list(table.columns) == [*keys, "a", "b", "difference", "reach"]
    cells = table.dropna(subset="devices").to_dict("records")
    by_cell = {tuple(one[key] for key in keys[:1] + keys[2:4]): one for one in cells}

    def rounds(*cell):
        return [by_cell[cell][name] for name in ("a", "b", "difference")]

    # Theirs has one device at 50 % in round 1 and three in round 2.
    assert rounds("LD,DS,MD", 50, "30%") == [1, 2, 1]
    assert rounds("LD,DS,MD", 50, "60%") == [2, 3, 1]
    reached, missing, difference = rounds("LD,DS,MD", 95, "30%")
    assert reached == 2 and math.isnan(missing) and math.isnan(difference)
    missing, reached, _ = rounds("DS", 50, "10%")
    assert math.isnan(missing) and reached == 1
    accuracy = table[table["quantity"] == "accuracy"]
    assert accuracy["round"].tolist() == [1, 2, 3, 1]
    assert accuracy["a"].tolist()[:2] == pytest.approx([3 / 12, 9 / 12])
    assert accuracy["difference"].tolist()[:2] == pytest.approx([-2 / 12, -5 / 12])
    assert accuracy["difference"].isna().tolist() == [False, False, True, True]
    text = compare.comparison_text(table)
    lines = [line.split() for line in text.splitlines()]
    assert lines[2][:4] == ["50", "%", "LD,DS,MD", "A"]
    assert lines[4] == ["B-A", *["+1"] * 9]
    last = "LD,DS,MD 2 0.750 0.333 -0.417 -0.292 0.417 in round 2"
    assert lines[-2:] == [last.split(), "DS only in B".split()]


def test_folders_that_cannot_be_compared(tmp_path, write_theirs, fails):
    (tmp_path / "empty").mkdir()
    fails(lambda: read_folder.read_runs(str(tmp_path / "empty")), "empty is no run")
    for name in ("1", "2"):
        write_theirs(tmp_path / "twice" / name)
    both = str(tmp_path / "twice")
    fails(lambda: compare.compare(both, both), "twice/1 and", "both runs of LD,DS,MD")


def test_published_runs_come_in_the_order_of_their_indices(tmp_path, write_theirs):
    for name, index in (("a", 8), ("b", 0), ("c", 5)):
        lines = [*MNIST_LINES[:-1], f"Permutation: {index}"]
        write_theirs(tmp_path / name, lines)
    (tmp_path / "notes").mkdir()
    runs = read_folder.read_runs(str(tmp_path))
    assert [run.label for run in runs] == ["DS", "LD,DS,MD", "MD,LD,DS"]
    assert [run.path[-1] for run in runs] == ["b", "c", "a"]


def test_the_curves_of_both_sides_are_in_one_panel(tmp_path, write_ours):
    for side, accuracies in (("a", [[1], [2]]), ("b", [[3], [4], [2]])):
        write_ours(tmp_path / side / "1", [(0, 1, 2, 4)], accuracies, priority=["LD"])
    write_ours(tmp_path / "b" / "2", [(0, 1, 2, 4)], [[1]], priority=["DS"])
    table = compare.compare(str(tmp_path / "a"), str(tmp_path / "b"), [50])
    figure = compare.comparison_plot(table, "theirs_$1$", "ours")
    (panel,) = figure.axes  # DS is on one side only.
    drawn = [line.get_ydata() for line in panel.get_lines()]
    assert drawn[0][:2].tolist() == [0.25, 0.5] and math.isnan(drawn[0][2])
    assert drawn[1].tolist() == [0.75, 1, 0.5]
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == [r"theirs_\$1\$", "ours"]
    alone = table[table["experiment"] == "DS"]
    assert compare.comparison_plot(alone, "a", "b") is None
