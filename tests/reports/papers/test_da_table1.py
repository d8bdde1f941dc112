"""DA's Table 1 from small runs whose rounds are counted by hand."""

import math

import pytest
from reported import write

from tff_pmc.record.record_error import RecordError
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


@pytest.fixture
def make_run(run_of):
    """A function that makes a run; `late`: rounds with no device before."""

    def make(label, late=0, untested=0, counts=ROUNDS):
        rows = [
            [REACHES_80] * at_80 + [REACHES_75] * (at_75 - at_80)
            + [MISS] * (10 - at_75) + [0] * untested
            for at_75, at_80 in [(0, 0)] * late + counts
        ]  # fmt: skip
        sizes = [20] * 10 + [0] * untested
        return run_of(label, rows, sizes, data={"name": "toy writers"})

    return make


@pytest.fixture
def make_runs(make_run):
    """A function that makes several; late: label -> rounds."""
    return lambda late: [make_run(label, rounds) for label, rounds in late.items()]


def adjusted(label, policy="backtracking"):
    return f"{label} ({policy})"


def the_fifteen(final=(3, 1, 4, 1, 5, 9)):
    """Ind 0, 1, 2 rounds late, MCA 0 to 5, Final as said."""
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


def test_a_mean_is_not_reached_where_one_of_the_six_is_not(make_run, make_runs):
    runs = make_runs({name: 0 for name in ORDERINGS[:5]})
    runs.append(make_run(ORDERINGS[5], counts=ROUNDS[:5]))
    table = da_table1.tidy_rows(runs)
    # Five rounds: 75 % of the devices are not there yet at 75 %, nor 70 % at 80 %.
    assert cells(table, 75, "MCA", "Mean") == [*AT_75[:7], None, None]
    assert cells(table, 80, "MCA", "Mean") == [*AT_80[:6], None, None, None]


def test_best_is_the_most_cells_then_the_fewest_rounds_then_the_first(
    make_run, make_runs, tmp_path
):
    runs = make_runs(the_fifteen())
    best = cells(da_table1.tidy_rows(runs), 75, "Final", "Best")
    assert best == later(AT_75, 1)
    text = write("da_table1", runs, tmp_path)
    assert "ours Ds≻Md≻Ld, the paper's Md≻Ds≻Ld" in text  # Ld≻Md≻Ds equals it.
    late = make_runs({adjusted(name): 30 for name in ORDERINGS[1:]})
    fast = make_run(adjusted(ORDERINGS[0]), counts=ROUNDS[:5])
    table = da_table1.tidy_rows([fast, *late])
    assert cells(table, 75, "Final", "Best") == later(AT_75, 30)


def test_devices_without_test_examples_count_and_never_reach(make_run, tmp_path):
    """Of twelve devices 20 % are 3, 30 % 4, 40 % 5, 50 % 6, 70 % 9, 75 % 9."""
    run = make_run("DS", untested=2)
    row = cells(da_table1.tidy_rows([run]), 75, "Ind", "Dataset size (base)")
    assert row == [2, 4, 3, 4, 5, 4.5, None, None, None]
    text = write("da_table1", [run], tmp_path)
    assert "Clients without test examples: 2." in text


def test_what_makes_no_table_is_refused_by_name_or_empty(make_run, tmp_path):
    ds = make_run("DS")
    with pytest.raises(RecordError, match="both runs of DS"):
        write("da_table1", [ds, make_run("DS", late=1)], tmp_path)
    other = make_run("LD", untested=1)
    with pytest.raises(RecordError, match="DS and LD have other clients"):
        write("da_table1", [ds, other], tmp_path)
    assert write("da_table1", [make_run("DS,MD")], tmp_path) == ""
    assert write("da_table1", [], tmp_path) == ""
    assert not (tmp_path / "table1.md").exists()
