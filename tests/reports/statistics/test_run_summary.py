"""The figures of how accuracy is spread over clients, by SciPy and by hand."""

import heapq
import math
import statistics

import numpy as np
import pytest
from scipy import stats

from tff_pmc.reports.statistics import run_summary


@pytest.fixture(params=[1, 3, 10, 11, 100])
def federation(request):
    """Correct counts of two rounds, and the sizes, of which some are 0."""
    random = np.random.default_rng(request.param)
    sizes = random.integers(1, 30, request.param)
    correct = random.integers(0, sizes + 1, (2, request.param))
    return np.insert(correct, 1, 0, axis=1), np.insert(sizes, 1, 0)


def test_the_figures_equal_those_of_other_libraries(federation):
    correct, sizes = federation
    spread = run_summary.spread_statistics(correct, sizes)
    assert set(spread) == set(run_summary.SPREAD)
    for number, counts in enumerate(correct):
        alone = [int(c) / int(n) for c, n in zip(counts, sizes) if n]
        worst = heapq.nsmallest(math.ceil(len(alone) / 10), alone)
        expected = {
            "p10": stats.scoreatpercentile(alone, 10),
            "worst_tenth": statistics.fmean(worst),
            "standard_deviation": statistics.pstdev(alone),
            # 1 / (1 + V^2), V the coefficient of variation.
            "jain_index": 1 / (1 + stats.variation(alone) ** 2) if any(alone) else 1.0,
        }
        for name, value in expected.items():
            assert spread[name][number] == pytest.approx(value, abs=1e-12), name


def test_if_nothing_is_correct_all_clients_are_equal():
    spread = run_summary.spread_statistics(
        np.zeros((1, 4), int), np.array([5, 5, 5, 5])
    )
    assert [float(values[0]) for values in spread.values()] == [0, 0, 0, 1]
