"""What tables take from the records of the runs they are made of."""

import numpy as np
import pandas as pd
import pytest

from leaf_data import DataError
from tff_pmc.reports import own_settings, read


def run(name="mnist", **settings):
    return of(name, {"settings": settings})


def published(name):
    """The published code's: without settings of ours."""
    return of(name, {"params": {}})


def of(name, info):
    table, counts = pd.DataFrame(), np.ones((1, 1), int)
    return read.Run(
        "DS", {"data": {"name": name}, **info}, table, table, counts, counts
    )


@pytest.mark.parametrize(
    ("runs", "above"),
    [
        ([run(reach="above"), run(reach="above")], True),
        ([run(reach="at_least")], False),
        (
            [run(), run(reach="at_least")],
            False,
        ),  # The first: before there was a choice.
        ([run(reach="above"), published("mnist")], True),
        ([published("mnist")], False),
    ],
)
def test_the_rule_is_that_of_the_runs(runs, above):
    assert own_settings.strictly_above(dict(enumerate(runs))) is above


def test_runs_by_different_rules_are_refused_in_one_line():
    runs = {"a/DS": run(reach="above"), "a/LD": run()}
    with pytest.raises(DataError) as error:
        own_settings.strictly_above(runs)
    expected = "a/DS has reach above and a/LD has at_least: choose by --reach"
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("runs", "targets"),
    [
        ([run("celeba", targets=[60, 65]), run("celeba", targets=[60, 65])], (60, 65)),
        ([run("drawn_faces", targets=[60]), published("celeba")], (60,)),
        ([published("celeba"), published("celeba")], (70, 80, 85)),
        ([run("celeba")], (70, 80, 85)),
        ([published("mnist"), published("celeba")], (70, 80, 90, 95)),
        ([published("mnist")], (70, 80, 90, 95)),
    ],
)
def test_the_targets_are_those_of_the_runs(runs, targets):
    assert own_settings.targets(dict(enumerate(runs))) == targets


def test_runs_with_other_targets_are_refused_in_one_line():
    runs = {"a": run(targets=[70, 80]), "b": run(targets=[75])}
    with pytest.raises(DataError) as error:
        own_settings.targets(runs)
    expected = "a has targets 70,80 and b has 75: choose by --experiment"
    assert str(error.value) == expected
