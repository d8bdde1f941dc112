"""PMC's Tables 2, 4 and 6: what the paper printed, fed back, and cases by hand."""

import math
import pathlib

import numpy as np
import pandas as pd
import pytest
from reported import write
from small_results import of_seeds, results_of_seed

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import join_results
from tff_pmc.reports import REPORTS, output
from tff_pmc.reports.papers import pmc_paper, pmc_tables

ROOT = pathlib.Path(__file__).resolve().parents[3]
NEVER = np.nan


@pytest.mark.parametrize(
    ("base", "ordering", "expected"),
    [
        # The share of 20 % is there when two devices are: LD in round 2, by its third.
        # 30 % of DS is never there, nor of LD.
        (
            [2, 3, *7 * [NEVER]],
            [1, NEVER, 2, *6 * [NEVER]],
            {"10%": (1, ""), "20%": (1, ""), "30%": (NEVER, "")}
            | {"Avg.": (2 / 9, ""), "Avg. (text)": (1, "")},
        ),
        (
            [1, NEVER, 2, *6 * [NEVER]],
            [3, *8 * [NEVER]],
            {"10%": (-2, ""), "20%": (-2, "at most")},
        ),
        (
            [3, *8 * [NEVER]],
            [1, NEVER, 2, *6 * [NEVER]],
            {"10%": (2, ""), "20%": (2, "at least")},
        ),
        (9 * [NEVER], 9 * [NEVER], {"Avg.": (NEVER, ""), "Avg. (text)": (NEVER, "")}),
    ],
)
def test_an_unreached_target_is_a_bound_and_two_are_a_dash(
    runs_from_arrivals, base, ordering, expected
):
    """Gains of four rounds, in which 70 % is reached by the devices one by one."""
    runs = runs_from_arrivals({"DS": base, "LD": ordering}, 70, 4)
    rows = pmc_tables.rounds_and_gains(runs, (70,)).query("quantity == 'gain'")
    gain_by_column = dict(zip(rows["devices"], zip(rows["value"], rows["bound"])))
    for column, (gain, bound) in expected.items():
        assert gain_by_column[column] == (pytest.approx(gain, nan_ok=True), bound), (
            column
        )


def swapped(label):
    return label.replace("IS", "?").replace("CB", "IS").replace("?", "CB")


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (str, "differs by 0.0 rounds on average"),
        (swapped, "by 0.0 from the one with IS and CB exchanged"),
    ],
)
def test_the_label_note_measures_both_readings(published_as_runs, labels, sentence):
    ours = pmc_tables.rounds_and_gains(published_as_runs(6, 80, 100, labels), (80,))
    (note,) = pmc_paper.exchanged_labels_note(ours, pmc_paper.published_rows(6))
    assert sentence in note and note.count("0.0") == 1


def test_the_table_marks_differences_bounds_and_misprints(tmp_path, celeba_runs):
    extra = results_of_seed(
        {"DS,CB": [[0] * 9]}, [100] * 9
    )  # No row: of other clients and rounds.
    text = write("pmc_table6", join_results([celeba_runs, extra]), tmp_path)
    cells = pd.read_csv(tmp_path / "table6.csv")
    where = "experiment == 'CB≻DS≻IS' and target_accuracy_pct == 70"
    cell = cells.query(f"{where} and devices == '50%'").iloc[0]
    # DS in round 3, CB,DS,IS in none of 5; the paper prints 6.
    assert (cell["ours"], cell["printed"], cell["published"]) == (-2, "6", 6)
    assert (cell["difference"], cell["bound"]) == (-8, "at most")
    assert cell["impossible"] == 1 and cells["impossible"].sum() == 2
    markdown = (tmp_path / "table6.md").read_text(encoding="utf-8")
    for shown in (text, markdown):
        for part in ("≤-2", "6†", "-8", "8.62", "8.6, 11.5 and 13", "exchanged"):
            assert part in shown
    assert "No run, so no row: IS; DS,CB,IS; DS,IS,CB; IS,DS,CB; " in text
    assert "Runs without a row in this table: DS,CB." in text
    assert "| DS (baseline) | rounds, ours | 3 |" in markdown


NAMES = ("pmc_table6", "pmc_table7", "pmc_figure3")


@pytest.mark.parametrize("report", NAMES)
@pytest.mark.parametrize(
    ("correct", "sizes", "words"),
    [
        (np.zeros((5, 10), int), [100] * 9 + [99], "DS and IS were tested on diff"),
        (np.zeros((6, 10), int), [100] * 10, "CB,DS,IS has 5 rounds and IS has 6"),
    ],
)
def test_runs_that_cannot_be_compared_are_rejected(
    report, tmp_path, celeba_runs, correct, sizes, words
):
    joined = join_results([celeba_runs, results_of_seed({"IS": correct}, sizes)])
    with pytest.raises(RecordError, match=words) as error:
        write(report, joined, tmp_path)
    assert "\n" not in str(error.value) and list(tmp_path.iterdir()) == []


def test_a_run_that_reached_all_targets_may_be_shorter(tmp_path):
    """DS is at 100 % in round 2 and ends; LD needs a third round for nine devices."""
    short = results_of_seed({"DS": [[0] * 10, [100] * 10]}, [100] * 10)
    long = results_of_seed(
        {"LD": [[0] * 10, [100] * 8 + [0] * 2, [100] * 10]}, [100] * 10
    )
    joined = join_results([short, long])
    write("pmc_table4", joined, tmp_path)
    cells = pd.read_csv(tmp_path / "table4.csv").query("target_accuracy_pct == 95")
    table = cells.pivot(index="quantity", columns="devices", values="ours")
    assert table.loc["rounds", ["80%", "90%"]].tolist() == [2, 2]
    assert table.loc["gain", ["80%", "90%"]].tolist() == [0, -1]


@pytest.mark.parametrize("run_rule", ["at_least", "above"])
def test_over_seeds_ds_is_counted_by_the_runs_rule_and_by_the_other(run_rule, tmp_path):
    """All devices are at 70 % in round 1 or 2, and above it in round 3."""
    first = [[70] * 10, [70] * 10, [100] * 10]
    second = [[0] * 10, *first[1:]]
    runs = of_seeds({0: {"DS": first}, 1: {"DS": second}}, [100] * 10, reach=run_rule)
    page = REPORTS["pmc_table4_seeds"](runs)
    output.write(page, str(tmp_path))
    cells = pd.read_csv(tmp_path / "table4_seeds.csv")
    cells = cells.query("target_accuracy_pct == 70 and devices == '50%'")
    cells = cells.query("experiment == 'DS (baseline)'").set_index("reach")
    other = {"at_least": "above", "above": "at_least"}[run_rule]
    assert [*cells.index] == [run_rule, other]
    spread = {"at_least": [1.5, 1, 2], "above": [3, 3, 3]}
    for rule, numbers in spread.items():
        assert [*cells.loc[rule, ["median", "lowest", "highest"]]] == numbers
    solid, dashed = page.figures["table4_seeds"].axes[0].lines[:2]
    assert (solid.get_linestyle(), dashed.get_linestyle()) == ("-", "--")
    drawn = [line.get_ydata()[4] for line in (solid, dashed)]
    assert drawn == [spread[run_rule][0], spread[other][0]]


@pytest.mark.parametrize(
    ("arrive", "lowest", "median"),
    [
        ([2, 3], 2, 3),
        ([2, 4], 2, math.nan),
        ([2, 3, 5], 2, math.nan),  # It would be 4, or, if the first arrived then, 3.5.
        ([4, 5], math.nan, math.nan),
    ],
)
def test_over_seeds_rounds_after_the_end_of_a_run_are_unknown(
    arrive, lowest, median, tmp_path
):
    """The run of seed 0 ends in round 3, and might have arrived in the next."""
    runs = {n: [*(n - 1) * [[0] * 10], [100] * 10] for n in arrive}
    runs = {number: {"DS": correct} for number, correct in runs.items()}
    runs = of_seeds({0: {"DS": 3 * [[0] * 10]}, **runs}, [100] * 10)
    output.write(REPORTS["pmc_table4_seeds"](runs), str(tmp_path))
    cells = pd.read_csv(tmp_path / "table4_seeds.csv").query("reach == 'at_least'")
    assert np.isinf(cells["highest"]).all()
    for name, number in (("lowest", lowest), ("median", median)):
        np.testing.assert_array_equal(cells[name], number)


@pytest.mark.parametrize("report", [*NAMES, "pmc_variance", "da_table1"])
def test_a_printed_row_is_one_run_and_several_seeds_have_none(
    report, tmp_path, runs_from_arrivals
):
    seeds = [runs_from_arrivals({"DS": 9 * [3]}, 85, 5, seed=seed) for seed in (0, 1)]
    assert write(report, join_results(seeds), tmp_path) == ""
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("rounds", "source", "measured"),
    [(100, "", True), (100, "INCOMPLETE: a part", False), (81, "", False)],
)
def test_the_label_question_is_not_put_to_runs_that_cannot_answer_it(
    tmp_path, published_as_runs, rounds, source, measured
):
    """Of the paper's length, and on the whole data, or not."""
    runs = published_as_runs(
        6, 80, rounds, runs={"data_name": "celeba", "data_source": source}
    )
    text = write("pmc_table6", runs, tmp_path)
    assert "IS and CB are probably exchanged here" in text
    assert ("A gain of ours differs by" in text) == measured
    other_length = "Ours end in round 81, the paper's in round 100" in text
    assert other_length == (rounds == 81)
    # MNIST's tables have no run that did not arrive in its 1,000 rounds.
    assert "Ours end" not in write("pmc_table2", runs.only(label="DS"), tmp_path)


@pytest.mark.parametrize(
    ("number", "experiment"), [(2, "mnist_iid"), (4, "mnist_noniid"), (6, "celeba")]
)
def test_a_flag_file_runs_what_the_tables_need(number, experiment, pmc_lines):
    path = ROOT / "experiments" / f"pmc_table{number}.flags"
    flags = [line for line in path.read_text().split("\n") if line[:1] == "-"]
    assert {f"--experiment={experiment}", "--priority=all", "--predictions"} < {*flags}
    assert pmc_paper.PAPER[experiment].rounds_table == number
    (rounds,) = [int(f.split("=")[1]) for f in flags if f.startswith("--rounds=")]
    # Long enough for the latest round of the published table.
    cells = pmc_lines(number)
    latest = max(
        np.nanmax(
            [cells["DS (baseline)", target][s] - gains[s] for s in gains if s in base]
        )
        for (name, target), gains in cells.items()
        for base in [cells["DS (baseline)", target]]
        if name != "DS (baseline)"
    )
    assert 80 < latest <= rounds
