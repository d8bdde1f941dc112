"""DA's Table 1 from small runs whose rounds are counted by hand."""

import math

import pandas as pd
import pytest
from reported import write
from small_results import results_of_seed

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import join_results
from tff_pmc.reports.papers import da_table1

# Of 20 test examples 15 are 75 % and 16 are 80 %. Ten devices: the columns 20, 30,
# 40, 50, 70 and 75 % are reached with 2, 3, 4, 5, 7 and 8 of them.
MISS, REACHES_75, REACHES_80 = 14, 15, 16
# (devices that reach 75 %, devices that reach 80 %) in rounds 1 to 6.
ROUNDS = [(2, 0), (3, 2), (3, 3), (5, 4), (7, 6), (8, 7)]
COLUMNS = ["20%", "30%", "Low mean", "40%", "50%", "Mid mean"]
COLUMNS += ["70%", "75%", "High mean"]
AT_75 = [1, 2, 1.5, 4, 4, 4, 5, 6, 5.5]
AT_80 = [2, 3, 2.5, 4, 5, 4.5, 6, None, None]
ORDERINGS = ["DS,LD,MD", "DS,MD,LD", "LD,DS,MD", "LD,MD,DS", "MD,DS,LD", "MD,LD,DS"]


def counts(late=0, untested=0, reached=ROUNDS):
    """Correct counts of a run, with rounds before in which no device is there."""
    return [
        [REACHES_80] * at_80
        + [REACHES_75] * (at_75 - at_80)
        + [MISS] * (10 - at_75)
        + [0] * untested
        for at_75, at_80 in [(0, 0)] * late + reached
    ]


def make(runs, untested=0):
    """Runs from label -> correct counts, or -> rounds that they are late."""
    correct = {
        label: counts(run, untested) if isinstance(run, int) else run
        for label, run in runs.items()
    }
    return results_of_seed(correct, [20] * 10 + [0] * untested)


def adjusted(label, policy="backtracking"):
    return f"{label} ({policy})"


def rounds_late(final=(3, 1, 4, 1, 5, 9)):
    """Label -> rounds late: Ind 0, 1, 2, MCA 0 to 5, Final as given."""
    late = {name: n for n, name in enumerate(("DS", "MD", "LD"))}
    late.update({name: n for n, name in enumerate(ORDERINGS)})
    return {**late, **dict(zip(map(adjusted, ORDERINGS), final))}


def cells(table, target, study, row, column="value"):
    """The nine cells of a row; None where not reached."""
    rows = table[
        (table["target_accuracy_pct"] == target)
        & (table["study"] == study)
        & (table["row"] == row)
    ]
    assert list(rows["column"]) in ([], COLUMNS)
    return [None if math.isnan(value) else value for value in rows[column]]


def later(values, rounds):
    return [None if value is None else value + rounds for value in values]


def test_a_mean_is_not_reached_where_one_of_the_six_is_not():
    runs = {name: 0 for name in ORDERINGS[:5]}
    table = da_table1.tidy_rows(
        make({**runs, ORDERINGS[5]: counts(reached=ROUNDS[:5])})
    )
    # Five rounds: 75 % of the devices are not there yet at 75 %, nor 70 % at 80 %.
    assert cells(table, 75, "MCA", "Mean") == [*AT_75[:7], None, None]
    assert cells(table, 80, "MCA", "Mean") == [*AT_80[:6], None, None, None]


def test_best_is_the_most_cells_then_the_fewest_rounds_then_the_first(tmp_path):
    runs = make(rounds_late())
    best = cells(da_table1.tidy_rows(runs), 75, "Final", "Best")
    assert best == later(AT_75, 1)
    text = write("da_table1", runs, tmp_path)
    assert "ours Ds≻Md≻Ld, the paper's Md≻Ds≻Ld" in text  # Ld≻Md≻Ds equals it.
    assert "Label diversity probably have each other's names" in text
    late = {adjusted(name): 30 for name in ORDERINGS[1:]}
    fast = {adjusted(ORDERINGS[0]): counts(reached=ROUNDS[:5])}
    table = da_table1.tidy_rows(make({**fast, **late}))
    assert cells(table, 75, "Final", "Best") == later(AT_75, 30)


def test_each_row_has_its_run_and_the_published_number(tmp_path):
    """The rounds of `AT_75` and `AT_80`, each this number later."""
    write("da_table1", make(rounds_late()), tmp_path)
    table = pd.read_csv(tmp_path / "table1.csv").rename(columns={"ours": "value"})
    mean = (0 + 1 + 2 + 3 + 4 + 5) / 6
    for target, values in ((75, AT_75), (80, AT_80)):
        late = {"Dataset size (base)": 0, "Model divergence": 1, "Label diversity": 2}
        for row, rounds in late.items():
            assert cells(table, target, "Ind", row) == later(values, rounds)
        assert cells(table, target, "MCA", "Ld≻Ds≻Md") == later(values, 2)
        mean_cells = cells(table, target, "MCA", "Mean")
        assert mean_cells == pytest.approx(later(values, mean))
        mean_cells = cells(table, target, "Final", "Mean")
        assert mean_cells == pytest.approx(later(values, 23 / 6))
    for row in ("Best", "Md≻Ds≻Ld"):
        part = table[(table["study"] == "Final") & (table["row"] == row)]
        published = part["printed"].head(3).tolist()
        assert published == ["12", "19", "15.5"]


def test_devices_without_test_examples_count_and_never_reach(tmp_path):
    """Of twelve devices 20 % are 3, 30 % 4, 40 % 5, 50 % 6, 70 % 9, 75 % 9."""
    run = make({"DS": 0}, untested=2)
    row = cells(da_table1.tidy_rows(run), 75, "Ind", "Dataset size (base)")
    assert row == [2, 4, 3, 4, 5, 4.5, None, None, None]
    text = write("da_table1", run, tmp_path)
    assert "Clients without test examples: 2." in text
    assert "each other's names" not in text  # Neither of these rows is there.


def test_runs_without_a_table_raise_a_named_error_or_give_an_empty_one(tmp_path):
    joined = join_results([make({"DS": 0}), make({"LD": 0}, untested=1)])
    with pytest.raises(RecordError, match="DS and LD were tested on different clients"):
        write("da_table1", joined, tmp_path)
    assert write("da_table1", make({"DS,MD": 0}), tmp_path) == ""
    assert not (tmp_path / "table1.md").exists()
