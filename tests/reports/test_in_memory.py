"""Runs of arrays in memory: they are drawn as runs of a folder are."""

import numpy as np
import pandas as pd
import pytest

from tff_pmc.reports import in_memory
from tff_pmc.reports.accuracy_plot import accuracy_plot
from tff_pmc.reports.fairness_page import fairness_plot
from tff_pmc.reports.plots import title_of

CORRECT = [[3, 1, 0], [4, 2, 0]]
EXAMPLES = [5, 10, 0]  # The last client has none.


def points_of(axes):
    return [line.get_xydata().tolist() for line in axes.get_lines() if len(line._x)]


def test_the_accuracy_is_that_of_all_clients_in_a_band_over_those_with_examples():
    run = in_memory.run_of_arrays("LD,DS", CORRECT, EXAMPLES)
    (axes,) = accuracy_plot([run], title=title_of([run])).axes
    assert points_of(axes) == [[[1, 4 / 15], [2, 6 / 15]]]
    # Between 0.1 and 0.6, then 0.2 and 0.8, a tenth from either end.
    (band,) = axes.collections
    corners = {tuple(v.round(6)) for v in band.get_paths()[0].vertices}
    assert corners == {(1, 0.15), (1, 0.55), (2, 0.26), (2, 0.74)}
    first = fairness_plot([run]).axes[0]
    assert points_of(first) == [[[1, pytest.approx(0.15)], [2, pytest.approx(0.26)]]]


@pytest.mark.parametrize(
    ("correct", "examples", "words"),
    [
        ([3, 1], [5, 10], "and examples [clients]; got [2] and [2]"),
        (np.zeros((0, 2), int), [5, 10], "got [0, 2] and [2]"),
        ([[3, 1]], [5], "got [1, 2] and [1]"),
        ([[0.3, 0.1]], [5, 10], "must be integers, got float64 and int64"),
        ([[6, 1]], [5, 10], "from 0 to all of its test examples right"),
        ([[-1, 1]], [5, 10], "from 0 to all of its test examples right"),
        ([[0, 0]], [0, 0], "a client must have some"),
        (CORRECT, EXAMPLES, "candidates lack the column 'kept'"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(correct, examples, words, fails):
    tests = {"candidates": pd.DataFrame(columns=["round", "ordering", "accuracy"])}
    fails(lambda: in_memory.run_of_arrays("DS", correct, examples, **tests), words)
