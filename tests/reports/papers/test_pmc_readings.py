"""The table of readings of PMC's network: its intervals, and what it counts."""

import numpy as np
import pytest

from tff_pmc import project_files
from tff_pmc.reports.kept import kept_runs
from tff_pmc.reports.papers import pmc_readings

SETTINGS = dict(experiment="mnist_noniid", normalization="sum", learning_rate=0.1)
SETTINGS.update(cohort_rounding="up", reach="at_least", batch_seed=0)
SETTINGS.update(conv_activation="none", initializer="glorot_uniform")


@pytest.fixture
def run(run_of):
    """A function that makes a run; of ten examples seven are right from a round on."""

    def make(arrives, label="DS", rounds=pmc_readings.ROUNDS, **changes):
        right = 7 * (np.arange(1, rounds + 1) >= arrives)
        correct = np.repeat(right[:, None], 10, axis=1)
        return run_of(label, correct, [10] * 10, settings={**SETTINGS, **changes})

    return make


@pytest.mark.parametrize(
    ("values", "interval"),
    [
        # By hand: mean 3, s = sqrt(2.5), t(.975, 4) = 2.776445, sqrt(6/5).
        ([1, 2, 3, 4, 5], (3 - 4.808944, 3 + 4.808944)),
        ([7, 7, 7], (7, 7)),
        ([7, 8], (np.nan, np.nan)),
        ([7, np.inf, 8], (np.nan, np.nan)),
    ],
)
def test_a_prediction_interval_is_that_of_one_more_value(values, interval):
    found = pmc_readings.prediction_interval(values)
    assert found == pytest.approx(interval, rel=1e-6, nan_ok=True)


def test_each_cell_has_the_rounds_of_the_seeds_beside_the_printed_one(run):
    """Table 4 prints 9 9 9 10 10 10 10 10 10 at 70 %."""
    found = pmc_readings.readings(
        [
            run(11, batch_seed=1),
            run(10, batch_seed=3),
            run(9),
            run(9, label="LD"),
            run(3, batch_seed=2, rounds=29),
            run(3, batch_seed=2, learning_rate=0.2),
            run(8, conv_activation="relu"),
            run(35, conv_activation="relu", batch_seed=1, rounds=40),
        ]
    )
    assert {key: list(own) for key, own in found.items()} == {
        ("none", "glorot_uniform"): [0, 1, 3],
        ("relu", "glorot_uniform"): [0, 1],
    }
    table = pmc_readings.cells(found)
    assert len(table) == 2 * 3 * 9
    linear, relu = (table[table["conv_activation"] == a] for a in ("none", "relu"))
    assert set(linear["rounds"]) == {"9 11 10", "- - -"}
    assert linear["inside"].sum() == 9  # 10 -+ 5 has all of 70 %.
    assert set(relu["rounds"]) == {"8 -", "- -"}  # Later than the rounds that count.
    assert not relu["inside"].any()
    at_70 = linear[linear["target_accuracy_pct"] == 70]
    assert at_70["printed"].tolist() == [9, 9, 9, 10, 10, 10, 10, 10, 10]


def test_the_kept_page_is_what_the_kept_runs_give():
    """Of four kept folders, so that remaking one of them does not make it."""
    results = project_files.folder("results") / "reproduced"
    report = pmc_readings.report(kept_runs(str(results)))
    (page,) = report.pages.values()
    kept = (results / "mnist_table4" / "readings.md").read_text(encoding="utf-8")
    assert kept == page.markdown()
