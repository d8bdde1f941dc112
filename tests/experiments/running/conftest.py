"""Runs of a model that is built at once; tests/project has runs that draw plots."""

import pytest
from cli import quick_runs


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_runs():
        yield
