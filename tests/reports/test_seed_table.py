"""The table over several seeds, against the standard library."""

import statistics

import pandas as pd
import pytest
from reported import write

from tff_pmc.reports import summary

EXAMPLES = [10, 10]
LAST = {"DS": [[4, 6], [6, 8], [9, 9]], "LD": [[5, 5], [5, 5], [5, 6]]}


@pytest.fixture
def by_seed(run_of):
    """Two runs of two rounds under three seeds; the first round is the best of none."""
    return {
        seed: [
            run_of(label, [[0, 0], counts[place]], EXAMPLES)
            for label, counts in LAST.items()
        ]
        for place, seed in enumerate((7, 8, 9))
    }


def test_the_mean_and_the_spread_are_over_the_seeds(by_seed, tmp_path):
    text = write("seed_table", by_seed, tmp_path, baseline="DS")
    table = pd.read_csv(tmp_path / "seeds.csv").set_index(["experiment", "quantity"])
    for label, counts in LAST.items():
        accuracies = [sum(one) / 20 for one in counts]
        row = table.loc[(label, "last_accuracy")]
        assert row["seeds"] == 3
        assert row["mean"] == pytest.approx(statistics.fmean(accuracies), abs=1e-6)
        spread = statistics.stdev(accuracies)
        assert row["standard_deviation"] == pytest.approx(spread, abs=1e-6)
        assert (row["lowest"], row["highest"]) == (min(accuracies), max(accuracies))
        apart = [statistics.pstdev(n / 10 for n in one) for one in counts]
        row = table.loc[(label, "best_standard_deviation")]
        assert row["mean"] == pytest.approx(statistics.fmean(apart), abs=1e-6)
    title, head, ds, ld = text.splitlines()
    assert "over 3 seeds" in title and "last accuracy" in head
    assert ds.split()[:4] == ["DS", "0.7000", "±", "0.2000"]
    assert ld.split()[:4] == ["LD", "0.5167", "±", "0.0289"]


def test_one_seed_has_no_spread(by_seed):
    text = summary.seeds_report({7: by_seed[7]}).text
    assert text.splitlines()[2].split()[:3] == ["DS", "0.5000", "0.5000"]
