"""The page of results: made by its command, and of what the kept records say."""

import dataclasses
import pathlib

import pandas as pd
import pytest

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import claims_page, results_page
from tff_pmc.reports.papers.headlines import NUMBERS, Headline, numbers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_committed_page_is_what_the_command_makes():
    committed = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    assert committed == results_page.page(claims_page.RESULTS), (
        "run: python -m tff_pmc.reports.results_page > results/README.md"
    )


@pytest.fixture
def headline():
    """A number: the accuracy of the run A in its last round."""

    def measure(run):
        return float(run.accuracy[-1]) or None

    said = ("PMC", "Table 9", "mine", "an accuracy", ".5")
    return Headline(*said, measure, "A", form="{:.2f}")


def of_seeds(run_of, *values, label="A"):
    return [
        run_of(label, [[value]], [100], settings={"batch_seed": seed})
        for seed, value in enumerate(values)
    ]


def test_the_longest_run_of_a_seed_counts_and_is_named(run_of, headline):
    short, long = (*of_seeds(run_of, 40), *of_seeds(run_of, 75))
    rounds = pd.concat([long.rounds] * 2)
    long = dataclasses.replace(long, rounds=rounds, path="longer/A")
    for runs in ([short, long], [long, short]):
        text, used = numbers(headline, runs)
        assert text == "0.75" and all(run is long for run in used) and used


def test_a_number_is_of_runs_with_its_settings_alone(run_of, headline):
    settings = {"batch_seed": 0, "batch_size": 50}
    other = run_of("A", [[75]], [100], settings=settings)
    own = headline._replace(settings={"batch_size": 50})
    assert numbers(own, [*of_seeds(run_of, 40), other]) == ("0.75", [other])
    assert numbers(own, of_seeds(run_of, 40)) == ("", [])


def test_what_lacks_a_record_is_not_run(run_of, headline):
    def measure(run):
        raise RecordError("not kept")

    own = headline._replace(measure=measure)
    assert numbers(own, of_seeds(run_of, 40))[0] == ""


def test_a_lead_is_over_the_last_rounds_that_both_have(run_of):
    """The base has two rounds more, in which it is far ahead."""
    run = run_of("A", [[10], [50], [60]], [100])
    base = run_of("B", [[10], [20], [30], [90], [90]], [100])
    lead = NUMBERS["lead at the end"](run, base, column="accuracy")
    assert lead == pytest.approx(0.2)
