"""How far orderings' weights are from each other, by the formula and by hand."""

import math

import numpy as np
import pandas as pd
import pytest
from made import made

from tff_pmc import scores
from tff_pmc.reports.weight_distances import (
    COLUMNS,
    ordering_distances,
    pairwise_distances,
    recorded,
)

CODES = ("DS", "LD", "MD")
# The raw criteria, of the codes DS, LD and MD, of two cohorts of three clients.
COHORTS = [
    [[40, 1, 0.7], [10, 3, 0.6], [50, 2, 0.8]],
    [[5, 2, 0.9], [5, 1, 0.1], [20, 2, 0.4]],
]


def direct_weights(raw, order):
    """PMC eq. 5 and 6 client by client, in plain numbers; `order` names columns."""
    totals = [sum(column) for column in zip(*raw)]
    values = []
    for client in raw:
        score, product = 0.0, 1.0
        for column in order:
            product *= client[column] / totals[column]
            score += product
        values.append(score)
    return [value / sum(values) for value in values]


def moved(p, q):
    """The total variation of two sets of weights, in plain numbers."""
    return sum(abs(a - b) for a, b in zip(p, q)) / 2


# A client that was left out of the sums does not count, in uniform neither.
WITH_ONE_MORE = [[*COHORTS[0], [7, math.nan, 0.5]], COHORTS[1]]
ORDERS = [(0,), (1,), (0, 1, 2), (0, 2, 1), (1, 0, 2)]
NAMED = [tuple(CODES[i] for i in order) for order in ORDERS]


def test_distances_against_the_formula():
    table = ordering_distances(WITH_ONE_MORE, CODES, NAMED)
    pairs = pairwise_distances(WITH_ONE_MORE, CODES, NAMED)
    labels = [",".join(order) for order in NAMED]
    assert labels == [*table.index] == [*pairs.index] == [*pairs.columns]
    for order, label in zip(ORDERS, labels):
        expected, apart = np.zeros(4), np.zeros(len(ORDERS))
        for raw in COHORTS:
            own = direct_weights(raw, order)
            apart += [moved(own, direct_weights(raw, o)) for o in ORDERS]
            alike = [direct_weights(raw, o) for o in ORDERS if o[0] == order[0]]
            expected += [
                moved(own, [1 / 3] * 3),
                moved(own, direct_weights(raw, [0])),
                moved(own, direct_weights(raw, order[:1])),
                max(moved(p, q) for p in alike for q in alike),
            ]
        found = table.loc[label, list(COLUMNS)].tolist()
        assert found == pytest.approx((expected / 2).tolist())
        assert pairs.loc[label].tolist() == pytest.approx(apart / 2, abs=1e-12)
    assert table.loc["DS", "from_first"] == 0 < table.loc["DS", "among_first"]
    assert pairs.loc["DS", "LD,DS,MD"] > 0.01


@pytest.mark.parametrize(
    "settings",
    [
        {"criteria_ranges": (), "normalization": "max"},
        {"criteria_ranges": (("DS", 0, 4), ("LD", 1, 3)), "normalization": "range"},
    ],
    ids=["max", "range by code"],
)
def test_what_is_computed_is_what_the_runs_recorded(settings):
    rows = [[1, "a", 4, 1, 0], [1, "b", 2, 2, 1], [2, "a", 4, 1, 0], [2, "c", 1, 3, 0]]
    names = ["round", "client", "DS", "LD", "excluded"]
    tables = {"cohort": pd.DataFrame(rows, columns=names)}
    results = made(
        {"DS": [[1], [2]]}, [10], tables=tables, criteria=("LD", "DS"), **settings
    )
    labels = ["DS", "LD,DS (backtracking)", "LD,DS", "mean:DS,LD"]
    cohorts, criteria, orderings, normalization = recorded(results, labels)
    assert [c.tolist() for c in cohorts] == [[[1, 4]], [[1, 4], [3, 1]]]
    expected = scores.Normalization("max")
    if "max" not in str(settings):
        expected = scores.Normalization("range", ((1, 3), (0, 4)))
    assert criteria == ["LD", "DS"] and normalization == expected
    assert orderings == [("DS",), ("LD", "DS")]
    assert recorded(made({"DS": [[1]]}, [2]), labels)[:3] == ([], [], [])
