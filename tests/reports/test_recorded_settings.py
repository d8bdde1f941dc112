"""Settings that reports take from the records of the runs they are made of."""

import pytest

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import reference_code, rounds_to_target


@pytest.fixture
def runs(run_of):
    """A function that makes runs from their settings; None: the published code's."""

    def make(*settings):
        info = [
            {"params": {}} if own is None else {"settings": own} for own in settings
        ]
        found = [run_of("DS", [[1]], [1], f"run_{k}", **i) for k, i in enumerate(info)]
        for run, own in zip(found, settings):
            if own is None:
                del run.info["settings"]
        return found

    return make


@pytest.mark.parametrize(
    ("settings", "above"),
    [
        ([{"reach": "above"}, {"reach": "above"}], True),
        ([{"reach": "at_least"}], False),
        ([{"rounds": 1}, {"reach": "at_least"}], False),
        ([{"record": {"reach": "above"}}, {"reach": "above"}], True),
        ([{"reach": "above"}, None], True),
        ([None], False),
    ],
)
def test_the_rule_is_that_of_the_runs(runs, settings, above):
    assert rounds_to_target.strictly_above(runs(*settings)) is above
    for reach in ("", "at_least", "above"):
        for run in rounds_to_target.by_one_rule(runs(*settings), reach):
            assert run.strictly_above is (reach == "above" if reach else above)


def test_runs_by_different_rules_are_refused_in_one_line(runs):
    with pytest.raises(RecordError) as error:
        rounds_to_target.strictly_above(runs({"reach": "above"}, {}))
    expected = "run_0 has reach above and run_1 has at_least: choose by --reach"
    assert str(error.value) == expected


@pytest.mark.parametrize(
    ("settings", "targets"),
    [
        ([{"targets": [60, 65]}, {"targets": [60, 65]}], (60, 65)),
        ([{"targets": [60]}, None], (60,)),
        ([{"record": {"targets": [60]}}, {"targets": [60]}], (60,)),
        ([{"rounds": 1}, None], ()),
    ],
)
def test_the_targets_are_those_of_the_runs(runs, settings, targets):
    assert rounds_to_target.targets_of(runs(*settings)) == targets


@pytest.mark.parametrize(
    ("names", "targets"),
    [
        (["celeba", "celeba"], (70, 80, 85)),
        (["mnist", "celeba"], (70, 80, 90, 95)),
        (["mnist"], (70, 80, 90, 95)),
    ],
)
def test_without_any_they_are_those_of_the_published_tables(run_of, names, targets):
    runs = [run_of("DS", [[1]], [1], data={"name": name}) for name in names]
    assert reference_code.targets(runs) == targets


def test_runs_with_other_targets_are_refused_in_one_line(runs):
    with pytest.raises(RecordError) as error:
        rounds_to_target.targets_of(runs({"targets": [70, 80]}, {"targets": [75]}))
    expected = "run_0 has targets 70,80 and run_1 has 75: choose by --experiment"
    assert str(error.value) == expected
