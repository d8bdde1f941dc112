"""The page of results: made by its command, and of what the kept records say."""

import pathlib

import pandas as pd
import pytest

from tff_pmc.reports import claims_page, results_page
from tff_pmc.reports.papers.headlines import NUMBERS, Headline, numbers

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_committed_page_is_what_the_command_makes():
    committed = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    assert committed == results_page.page(claims_page.RESULTS), (
        "run: python -m tff_pmc.reports.results_page > results/README.md"
    )


def test_hours_are_those_of_training_and_testing():
    kept = ROOT / "results" / "reproduced" / "adafed_2"
    tables = [pd.read_csv(path) for path in kept.rglob("timing.csv")]
    hours = sum(table[["train", "test"]].to_numpy().sum() for table in tables) / 3600
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if "- [adafed_2]" in line]
    assert len(tables) == 15 and f", {hours:.2g} hours. " in line


def test_a_number_is_of_runs_with_its_settings_alone(run_of):
    """The accuracy of A in its last round, of the runs with batches of 50."""
    said = ("PMC", "Table 9", "mine", "an accuracy", ".5")
    settings = {"batch_seed": 0, "batch_size": 50}
    keys = {"form": "{:.2f}", "settings": {"batch_size": 50}}
    own = Headline(*said, lambda run: float(run.accuracy[-1]), "A", **keys)
    plain = run_of("A", [[40]], [100], settings={**settings, "batch_size": 20})
    other = run_of("A", [[75]], [100], settings=settings)
    assert numbers(own, [plain, other]) == ("0.75", [other])
    assert numbers(own, [plain]) == ("", [])


def test_a_lead_is_over_the_last_rounds_that_both_have(run_of):
    """The base has two rounds more, in which it is far ahead."""
    run = run_of("A", [[10], [50], [60]], [100])
    base = run_of("B", [[10], [20], [30], [90], [90]], [100])
    lead = NUMBERS["lead at the end"](run, base, column="accuracy")
    assert lead == pytest.approx(0.2)
