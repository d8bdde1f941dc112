"""Which folders a run may resume."""

import pytest

from tff_pmc.record import files
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.resume_check import check_resumable


def run_of(**settings):
    return {
        "format": files.FORMAT,
        "settings": {"training": {"rounds": 3, "learning_rate": 0.1}, **settings},
        "data": {"clients": 4},
    }


def rounds(number):
    return run_of(training={"rounds": number, "learning_rate": 0.1})


def begun(*file):
    return run_of(training={"rounds": 3, "initial_weights": [*file]})


def of_data(**data):
    return {**run_of(), "data": {"clients": 4, **data}}


def test_the_same_run_has_not_grown():
    assert not check_resumable("here", run_of(seeds=[0, 1]), run_of(seeds=[0, 1]))
    assert check_resumable("here", begun("/a/w.npz", "9f"), begun("/b/w.npz", "9f"))
    # Against what runs are held is of their tables, and is written anew.
    assert check_resumable("here", run_of(baseline="LD"), run_of())
    # An earlier version did not record it.
    assert check_resumable("here", of_data(), of_data(examples_sha256="9f"))


@pytest.mark.parametrize(
    "before, now",
    [
        (rounds(2), rounds(3)),
        (run_of(seeds=[0, 1]), run_of(seeds=[0, 1, 2])),
        (run_of(seeds=[2, 0]), run_of(seeds=[0, 1, 2])),
        (run_of(orderings=["LD"]), run_of(orderings=["DS", "LD"])),
        (run_of(learning_rates=[0.1]), run_of(learning_rates=[0.1, 0.2])),
    ],
)
def test_more_rounds_seeds_or_rows_are_the_same_run(before, now):
    assert check_resumable("here", before, now)
    with pytest.raises(
        RecordError, match="here cannot be resumed, because its settings differ"
    ):
        check_resumable("here", now, before)


@pytest.mark.parametrize(
    "before, now, words",
    [
        (run_of(seeds=[0, 1]), run_of(seeds=[0, 2]), r"seeds: \[0, 1\] there"),
        (run_of(), run_of(seeds=[0, 1]), "seeds: None there"),
        (run_of(seeds=[0, 1]), run_of(), r"seeds: \[0, 1\] there, None here"),
        (run_of(targets=[70]), run_of(targets=[70, 80]), "targets"),
        (begun("/w.npz", "9f"), begun("/w.npz", "2c"), "'9f'.* there, .*'2c'.* here"),
        (run_of(), begun("/w.npz", "9f"), "initial_weights: None there"),
        (rounds("2"), rounds(3), "rounds: '2' there, 3 here"),
        (run_of(training={"rounds": 3, "learning_rate": 0.05}), run_of(), "0.05"),
        (of_data(examples_sha256="9f"), of_data(examples_sha256="2c"),
         "its settings now load other examples .*'9f' there, '2c' here.*a plug-in"),
        # What the examples follow from is named alone.
        (of_data(options={"seed": 0}, examples_sha256="9f"),
         of_data(options={"seed": 1}, examples_sha256="2c"),
         r"settings differ \(options: {'seed': 0} there, {'seed': 1} here\): use"),
    ],
)  # fmt: skip
def test_any_other_difference_is_another_run(before, now, words):
    with pytest.raises(RecordError, match=words):
        check_resumable("here", before, now)
