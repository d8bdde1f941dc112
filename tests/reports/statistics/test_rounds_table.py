"""The cells of tables of rounds, and their range over seeds, by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from small_results import results_of_seed

from tff_pmc.reports.statistics.rounds_table import rounds_cells, seed_range

NEVER = math.nan
# 20, 60 and 90 % of four devices are one, three and all.
DS = [[9, 0, 0, 0], [9, 9, 9, 0], [9, 9, 9, 0]]
LD = [[0, 0, 0, 0], [9, 9, 0, 0], [9, 9, 9, 9]]
COLUMNS = {"low": (20,), "mean": (20, 60), "late": (60, 90)}


def test_a_column_averages_shares_and_a_gain_over_an_unreached_target_is_a_bound():
    runs = results_of_seed({"DS": DS, "LD": LD}, [10] * 4)
    cells = rounds_cells(runs, [90], COLUMNS, {"LD": "DS"}, averages={"sum": sum})
    rows = [tuple(cell) for cell in cells.drop(columns="target").to_numpy()]
    assert [cell[:3] for cell in rows[:3]] == [
        ("DS", "rounds", column) for column in COLUMNS
    ]
    assert rows[3:] == [
        *(("LD", "rounds", "low", 2, ""), ("LD", "rounds", "mean", 2.5, "")),
        *(("LD", "rounds", "late", 3, ""), ("LD", "gain", "low", -1, "")),
        *(("LD", "gain", "mean", -1, ""), ("LD", "gain", "late", 0, "at least")),
        ("LD", "gain", "sum", -2, ""),
    ]
    np.testing.assert_array_equal(cells["value"][:3], [1, 1.5, NEVER])


def test_without_runs_or_targets_there_are_no_cells():
    runs = results_of_seed({"DS": DS}, [10] * 4)
    assert (
        rounds_cells(runs, []).empty and rounds_cells(runs.only(label=[]), [90]).empty
    )


@pytest.mark.parametrize(
    ("values", "is_rounds", "expected"),
    [
        ([1, 3, 2], True, [2, 1, 3]),
        ([1, 3, NEVER], True, [3, 1, math.inf]),
        ([1, 5, NEVER], True, [NEVER, 1, math.inf]),  # It may arrive in round 5.
        # Were it there in round 5, the median would be 4; but if sooner, less.
        ([2, 3, 5, NEVER], True, [NEVER, 2, math.inf]),
        ([NEVER, NEVER, 9], True, [NEVER, NEVER, math.inf]),
        ([1, 3, NEVER], False, [NEVER] * 3),
    ],
)
def test_a_run_that_misses_the_target_is_later_than_its_last_round(
    values, is_rounds, expected
):
    """Runs of four rounds, or more, under some seeds."""
    cells, lengths = pd.DataFrame([values]), pd.Series(4, range(len(values)))
    ranges = seed_range(cells, lengths, pd.Series([is_rounds]))
    np.testing.assert_array_equal(ranges.to_numpy()[0], expected)
