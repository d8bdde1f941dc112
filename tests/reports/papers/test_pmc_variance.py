"""What section 4.2 needs, and its numbers by NumPy."""

import numpy as np
import pandas as pd
import pytest
from reported import write
from small_results import results_of_seed

from tff_pmc.record.results import Results
from tff_pmc.reports.papers import pmc_variance

LABELS = ("DS", "LD", "MD", "LD,DS,MD", "MD,LD,DS (backtracking)")
RAW = {"DS": [[1, 3], [2, 2]], "LD": [[1, 1], [1, 1]], "MD": [[1, 9], [4, 1]]}
"""Criterion -> its values of two clients in each of two rounds."""


def make(labels, cohort=True):
    """Runs of two rounds; the best accuracies are 0.1, 0.2, ... of ten devices."""
    correct = {
        label: [[1] * place + [0] * (10 - place)] * 2
        for place, label in enumerate(labels, start=1)
    }
    settings = {"criteria": tuple(RAW), "targets": (70,)}
    runs = results_of_seed(correct, [1] * 10, **settings)
    rows = [
        {
            "label": label,
            "round": number + 1,
            "client": client,
            "excluded": 0,
            "weight": 1,
        }
        | {code: values[number][client] for code, values in RAW.items()}
        for label in labels
        for number in range(2)
        for client in range(2)
    ]
    # An excluded client has no weight.
    rows += [{**rows[0], "client": 2, "excluded": 1, "DS": 1000}]
    table = pd.DataFrame(rows).assign(seed=0) if cohort else None
    tables = {"rounds": runs.rounds, "clients": runs.clients, "cohort": table}
    return Results(runs.runs, tables.get)


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        (make(LABELS, cohort=False), "no run has its cohort.csv"),
        (make(LABELS[:2]), "three first criteria"),
    ],
)
def test_the_report_is_omitted_without_cohorts_or_three_criteria(tmp_path, runs, why):
    assert f"omitted: {why}" in write("pmc_variance", runs, tmp_path).replace(
        "it needs runs of orderings with ", ""
    )
    assert list(tmp_path.iterdir()) == []


def test_the_variation_is_that_of_the_first_criterion_over_all_cohorts(tmp_path):
    runs = make(LABELS)
    table = pmc_variance.orderings(runs)
    expected = {
        code: np.mean([np.std(cohort) / np.mean(cohort) for cohort in values])
        for code, values in RAW.items()
    }
    assert table["first"].to_dict() == {k: k[:2] for k in LABELS[:4]}
    for label, row in table.iterrows():
        assert row[pmc_variance.VARIATION] == pytest.approx(expected[label[:2]])
    assert table[pmc_variance.BEST].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    # Ranks of the variation 3, 1.5, 4, 1.5 and of the accuracy 1, 2, 3, 4.
    rho = np.corrcoef([3, 1.5, 4, 1.5], [1, 2, 3, 4])[0, 1]
    correlations = pmc_variance.correlations(table)
    assert correlations == {pmc_variance.BEST: pytest.approx(rho)}
    text = write("pmc_variance", runs, tmp_path)
    assert f"Rank correlation with best accuracy: {rho:+.2f}." in text
    assert [*pd.read_csv(tmp_path / "variance.csv").iloc[:, 0]] == [*LABELS[:4]]


def test_gains_cover_the_targets_that_ds_reaches():
    correct = {
        "DS": [[0], [7], [8]],
        "LD": [[8], [8], [8]],
        "MD": [[0], [0], [0]],
    }
    runs = results_of_seed(correct, [10], criteria=tuple(RAW), targets=(70, 90))
    gains = pmc_variance._gains(runs)
    assert gains.to_dict("list") == {"gain at 70 %": [0, 1, -1]}  # 90 % is not there.
