"""Constants that stand in two places, because one must not import the other.

Named experiments are read before pandas and the reports are imported, so they cannot
take theirs from the reports: here the two are held against each other.
"""

import pytest

from tff_pmc.experiments.experiment import EXPERIMENTS, settings
from tff_pmc.record import read
from tff_pmc.reports import REPORTS, SEED_REPORTS, reference_code
from tff_pmc.reports.papers import da_table1, pmc_paper


@pytest.mark.parametrize("experiment", pmc_paper.PAPER)
def test_pmcs_experiments_have_the_targets_and_orderings_of_its_tables(experiment):
    found, paper = settings(experiment), pmc_paper.PAPER[experiment]
    assert found.record.targets == paper.targets
    assert found.aggregation.criteria == reference_code.CRITERIA[paper.data_set]
    assert found.dataset == paper.data_set


def test_das_experiment_has_the_targets_of_its_table():
    assert settings("femnist").record.targets == da_table1.TARGETS


@pytest.mark.parametrize("name", list(EXPERIMENTS))
def test_experiments_name_reports_and_a_baseline_that_there_are(name):
    found = EXPERIMENTS[name]
    assert all(report in REPORTS for report in found.reports)
    assert all(report in SEED_REPORTS for report in found.seed_reports)
    if found.compares_systems:
        made = [settings(name, row.values) for row in found.rows]
        assert found.baseline in {one.system.name for one in made}
    else:
        assert settings(name).label == found.baseline == read.BASELINE
