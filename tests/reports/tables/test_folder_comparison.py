"""Two runs, or two folders of runs, compared; and our runs in the published form.

The expected tables are worked out by hand.
"""

import math

import pandas as pd
import pytest
from folders import write_ours
from published_code import CLIENTS, write_theirs
from small_results import of_seeds, written

from tff_pmc.record import kept_results
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import read_results
from tff_pmc.reports.figures.comparison_plot import comparison_plot
from tff_pmc.reports.tables import folder_comparison, reference_export


def test_two_folders_row_by_row(tmp_path):
    """Theirs: 50 % at 2 of 4 examples. Ours: LD,DS,MD with MD over the layers, DS."""
    write_theirs(tmp_path / "theirs" / "1")
    md = ["LD", "DS", "MD_layers"]
    counts = [[0, 0, 1], [2, 1, 1], [2, 2, 2]]
    write_ours(tmp_path / "ours" / "1", CLIENTS, counts, priority=md)
    write_ours(tmp_path / "ours" / "2", CLIENTS, [[4, 0, 0]], priority=["DS"])
    table = folder_comparison.compare(
        str(tmp_path / "theirs"), str(tmp_path / "ours"), [50, 95]
    )
    keys = ["experiment", "quantity", "target_accuracy_pct", "devices", "round"]
    assert list(table.columns) == [*keys, "a", "b", "difference", "reach"]
    cells = table.dropna(subset="devices").to_dict("records")
    by_cell = {tuple(row[key] for key in keys[:1] + keys[2:4]): row for row in cells}

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
    text = folder_comparison.comparison_text(table)
    lines = [line.split() for line in text.splitlines()]
    assert lines[2][:4] == ["50", "%", "LD,DS,MD", "A"]
    assert lines[4] == ["B-A", *["+1"] * 9]
    last = "LD,DS,MD 2 0.750 0.333 -0.417 -0.292 0.417 in round 2"
    assert lines[-2:] == [last.split(), "DS only in B".split()]


def test_two_single_runs_and_two_rules(tmp_path):
    """50 % is reached by 2 of 4 examples, and not above it."""
    counts = [[2, 2, 2], [3, 3, 3]]
    for name, order, reach in (("a", "DS", "at_least"), ("b", "LD", "above")):
        write_ours(tmp_path / name, CLIENTS, counts, priority=[order], reach=reach)
    folders = [str(tmp_path / name) for name in "ab"]
    with pytest.raises(RecordError, match="a has at_least; .* has abov"):
        folder_comparison.compare(*folders, [50])
    for reach, first in (("at_least", 1), ("above", 2)):
        table = folder_comparison.compare(*folders, [50], reach=reach)
        rows = table[table["quantity"] == "rounds"]
        assert {*rows["experiment"]} == {"DS / LD"} and {*rows["reach"]} == {reach}
        assert {*rows["a"], *rows["b"]} == {first}


@pytest.fixture
def two_folders(tmp_path):
    """Under seeds 0 to 5 and 1 to 6; right of 20 in the last of two rounds."""
    folders = []
    for name, last, first in (
        ("a", {"DS": 8, "LD": 10}, 0),
        ("b", {"LD": 11, "MD": 14}, 1),
    ):
        by_seed = {
            seed: {
                label: [[0, 0], [right // 2, right - right // 2 + (seed == 3)]]
                for label, right in last.items()
            }
            for seed in range(first, first + 6)
        }
        results = of_seeds(by_seed, [10, 10], targets=(40,))
        kept_results.keep_results(results, str(tmp_path / name))
        folders.append(str(tmp_path / name))
    return folders


@pytest.mark.parametrize(
    ("baseline", "words"),
    [
        (
            "",
            [
                "LD [B]: accuracy +5.0 points (+5.0 to +5.0) against LD [A] over five",
                "LD [A]: accuracy",
                "MD: accuracy +30.0 points (+30.0 to +30.0) against FedAvg (DS) over",
            ],
        ),
        (
            "ld",
            [
                "FedAvg (DS): accuracy -10.0 points (-10.0 to -10.0) against LD [A]",
                "LD [B]: accuracy +5.0 points (+5.0 to +5.0) against LD [A] over five",
                "MD: accuracy +20.0 points (+20.0 to +20.0) against LD [A] over five",
            ],
        ),
        ("MD", ["LD [A]: accuracy -20.0 points", "LD [B]: accuracy -15.0 points"]),
    ],
)
def test_rows_of_two_folders_with_several_seeds_are_paired_by_seed(
    two_folders, baseline, words, tmp_path
):
    """Each seed has the same differences, as seed 3 is alike in both."""
    report = folder_comparison.report(*two_folders, baseline=baseline, names=["a", "b"])
    text, table = written(report, tmp_path / "out", "effect")
    assert text.startswith("# Effects: A is a, B is b\n")
    for line in words:
        assert (line in text) == (line != "LD [A]: accuracy"), line
    assert set(table["seeds"]) <= {5, 6}
    page = (tmp_path / "out" / "effect.md").read_text("utf-8")
    assert ("| LD [B] minus LD [A] | +0.0500" in page) == (not baseline)


def test_rows_without_a_seed_in_common_cannot_be_paired(two_folders, tmp_path):
    results = read_results(two_folders[1]).only(seed=[6])
    kept_results.keep_results(results, str(tmp_path / "c"))
    with pytest.raises(RecordError, match="no seed in common: run both under the same"):
        folder_comparison.report(two_folders[0], str(tmp_path / "c"))
    words = "baseline CB is in neither folder: A has DS; LD, B has LD; MD"
    with pytest.raises(RecordError, match=words):
        folder_comparison.report(*two_folders, baseline="CB")


def test_the_curves_of_both_sides_are_in_one_panel(tmp_path):
    for side, accuracies in (("a", [[1], [2]]), ("b", [[3], [4], [2]])):
        write_ours(tmp_path / side / "1", [(0, 1, 2, 4)], accuracies, priority=["LD"])
    write_ours(tmp_path / "b" / "2", [(0, 1, 2, 4)], [[1]], priority=["DS"])
    table = folder_comparison.compare(str(tmp_path / "a"), str(tmp_path / "b"), [50])
    figure = comparison_plot(table, "theirs_$1$", "ours")
    (panel,) = figure.axes  # DS is on one side only.
    drawn = [line.get_ydata() for line in panel.get_lines()]
    assert drawn[0][:2].tolist() == [0.25, 0.5] and math.isnan(drawn[0][2])
    assert drawn[1].tolist() == [0.75, 1, 0.5]
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert texts == [r"theirs_\$1\$", "ours"]
    alone = table[table["experiment"] == "DS"]
    assert comparison_plot(alone, "a", "b") is None


def test_differing_data_are_named(tmp_path):
    write_ours(tmp_path / "a" / "1", CLIENTS, [[1, 2, 0]], priority=["DS"])
    celeba = [(0, 1), (0, 1)]
    write_ours(tmp_path / "b" / "1", celeba, [[2, 1]], "celeba", priority=["DS"])
    for other, is_said in (("a", False), ("b", True)):
        text = folder_comparison.report(str(tmp_path / "a"), str(tmp_path / other)).text
        words = "A and B are on different data: A has mnist, 3 clients, B has celeba, 2"
        assert (words in text) == is_said


def test_a_run_is_exported_in_the_published_form_and_read_back(tmp_path):
    counts = [[1, 2, 0], [4, 3, 2], [2, 2, 4]]
    ours = write_ours(tmp_path / "a" / "ours", CLIENTS, counts)
    out = tmp_path / "b" / "theirs"
    reference_export.write(str(ours), str(out))
    # What evaluation.py reads: the last line, and each client's answers.
    assert (out / "params.txt").read_bytes() == (
        b"Local dataset type: non-iid\r\nK (number of clients): 3\r\nPermutation: 5"
    )
    text = "y_pred,y_true\n7,7\n3,2\n3,1\n3,0\n"
    assert (out / "round_1" / "client_1.csv").read_text() == text
    results = read_results(str(out))
    assert results.labels == ["LD,DS,MD"]
    wide = results.clients.pivot(index="round", columns="client", values="correct")
    # Bert, Carl, Anna.
    assert wide.to_numpy().tolist() == [[2, 0, 1], [3, 2, 4], [2, 4, 2]]
    table = folder_comparison.compare(str(tmp_path / "a"), str(tmp_path / "b"))
    pd.testing.assert_series_equal(table["a"], table["b"], check_names=False)
    celeba = [(0, 1), (0, 1)]
    ours = write_ours(tmp_path / "c", celeba, [[2, 1]], "celeba", priority=["CB"])
    reference_export.write(str(ours), str(tmp_path / "d"))
    text = (tmp_path / "d" / "round_1" / "client_2.csv").read_text()
    assert text == "y_pred,y_true\n0.0,0\n3.0,1\n"


@pytest.mark.parametrize(
    ("data", "label", "expected"),
    [
        ("mnist", "MD_layers", 2),
        ("digits5k", "LD,MD_layers,DS", 7),
        ("celeba", "IS", 2),
        ("mnist", "DS", 0),
        ("mnist", "DS,LD", "DS,LD has no index"),
        ("celeba", "LD", "LD has no index"),
        ("mnist", "LD,DS,MD (backtracking)", "has no index"),
        ("femnist", "DS", "no data set femnist"),
    ],
)
def test_an_index_is_found_by_its_meaning_or_rejected(data, label, expected):
    run = pd.Series({"path": "runs/x", "data_name": data, "label": label})
    if isinstance(expected, int):
        assert reference_export.ordering_index(run) == expected
    else:
        with pytest.raises(RecordError, match=expected):
            reference_export.ordering_index(run)


def test_failed_exports_leave_nothing_behind(tmp_path):
    out = tmp_path / "new" / "out"
    ours = write_ours(tmp_path / "a", CLIENTS, [[1, 2, 0]], predictions=False)
    with pytest.raises(RecordError, match="labels.npz is missing.*--predictions"):
        reference_export.write(str(ours), str(out))
    write_ours(tmp_path / "two" / "1", CLIENTS, [[1, 2, 0]])
    write_ours(tmp_path / "two" / "2", CLIENTS, [[1, 2, 0]], priority=["DS"])
    with pytest.raises(RecordError, match="two holds several runs"):
        reference_export.write(str(tmp_path / "two"), str(out))
    assert not out.parent.exists()
    out.mkdir(parents=True)
    with pytest.raises(RecordError, match="already exists"):
        reference_export.write(str(tmp_path / "two" / "1"), str(out))
