"""The examples in docstrings, of the modules whose examples need no training."""

import doctest
import importlib

import pytest

MODULES = (
    "leaf_data.dataset",
    "tff_pmc.criteria.criterion",
    "tff_pmc.scores.choquet",
    "tff_pmc.scores.polynomial",
    "tff_pmc.scores.weights",
    "tff_pmc.search",
)


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed
