"""Section 4.2's sentence on runs worked by hand."""

import dataclasses

import pandas as pd
import pytest
from reported import write

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import pmc_variance

VARIATION = {"DS": 0.1, "LD": 0.3, "MD": 0.2, "LD,DS": 9.9, "average[1]:DS": 9.9}


def weights(values=VARIATION):
    rows = [
        {"round": number, "ordering": name, "coefficient_of_variation": value}
        for number in (1, 2)
        for name, value in values.items()
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def runs(run_of):
    """Right answers of 100 at best: DS 50, LD 90, MD 70, and two that begin with LD."""
    found = {"DS": 50, "LD": 90, "MD": 70, "LD,DS,MD": 80, "MD,DS,LD": 60}
    settings = {"targets": [50, 95], "experiment": "mnist_iid", "model": "cnn"}
    settings.update(client_optimizer="sgd", learning_rate=0.1, local_epochs=5)
    settings.update(batch_size=0, rounds=2, batch_seed=0)
    made = [
        run_of(label, [[10], [best]], [100], settings=settings)
        for label, best in found.items()
    ]
    return [dataclasses.replace(made[0], weights=weights()), *made[1:]]


def test_the_variation_is_the_mean_over_the_runs_that_have_it(runs):
    more = weights({"DS": 0.3, "LD": 0.3, "MD": 0.2})
    both = [*runs[:1], dataclasses.replace(runs[1], weights=more)]
    found = pmc_variance.first_variation(both)
    assert found == pytest.approx({"DS": 0.2, "LD": 0.3, "MD": 0.2})


def test_without_weights_or_three_criteria_it_is_left_out(tmp_path, runs):
    text = write("pmc_variance", runs[1:], tmp_path)
    assert "left out: no run has its weights.csv" in text
    assert "three first criteria" in write("pmc_variance", runs[:2], tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RecordError):
        pmc_variance.first_variation([])
