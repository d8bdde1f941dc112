"""Constants that stand in two places, because one must not import the other.

Settings are read before pandas and the data sets are imported, so they cannot take
theirs from the reports or the loaders: here the two are held against each other.
"""

import pytest

from leaf_data import celeba, celeba_clients, femnist
from tff_pmc.experiments import choices, named, systems
from tff_pmc.reports import da_table1, pmc_paper, read, reference_code


@pytest.mark.parametrize("experiment", pmc_paper.PAPER)
def test_pmcs_experiments_have_the_targets_and_orderings_of_its_tables(experiment):
    settings, paper = named.EXPERIMENTS[experiment], pmc_paper.PAPER[experiment]
    assert settings.targets == paper.targets
    assert settings.criteria == reference_code.CRITERIA[paper.data_set]
    assert settings.dataset == paper.data_set


def test_das_experiment_has_the_targets_of_its_table():
    assert named.EXPERIMENTS["femnist"].targets == da_table1.TARGETS


def test_experiments_begin_with_the_baseline_of_the_reports():
    for name, settings in named.EXPERIMENTS.items():
        if name not in systems.SYSTEMS:
            assert settings.label == read.BASELINE


def test_the_words_of_flags_are_those_of_the_loaders():
    assert choices.CHOICES["client_rule"] == celeba_clients.RULES
    assert choices.CHOICES["celeba_source"] == celeba.SOURCES
    assert choices.CHOICES["missing_images"] == celeba.MISSING_IMAGES
    assert choices.CHOICES["femnist_source"] == femnist.SOURCES
