"""The page of results: made by its command, and of what the kept records say."""

import pathlib

import pandas as pd
import pytest
from papers.claim_runs import kept, read_once, run

from tff_pmc.reports import claims_page, results_page
from tff_pmc.reports.papers.catalog import Headline, Numbers, number_of
from tff_pmc.reports.papers.claims.adafed_claims import lead_at_the_end
from tff_pmc.reports.papers.comparisons import Number, round_of_half

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_committed_page_is_what_the_command_makes(monkeypatch):
    read_once(monkeypatch, results_page)
    committed = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    assert committed == results_page.page(claims_page.RESULTS), (
        "run: python -m tff_pmc.reports.results_page > results/README.md"
    )


def test_hours_are_those_of_training_and_testing():
    path = ROOT / "results" / "reproduced" / "adafed_2" / "timing.csv.gz"
    hours = pd.read_csv(path)[["train", "test"]].to_numpy().sum() / 3600
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if "- [adafed_2]" in line]
    assert f", {hours:.2g} hours. " in line


def headline(numbers, form="{:.2f}"):
    return Headline("PMC", "Table 9", "an accuracy", ".5", numbers, form)


LAST = Number(lambda run, _: run.table("rounds")["accuracy"].iloc[-1])


@pytest.mark.parametrize(
    ("folders", "text"),
    [
        ([[run("A", 3, [0.1, 0.75], experiment="quickstart")]], "0.75"),
        (
            [[run("A", k, [0.1, k / 10], experiment="quickstart") for k in (1, 9, 2)]],
            "0.20 (0.10 to 0.90, 3 seeds)",
        ),
        ([[run("B", 3, [0.1, 0.75], experiment="quickstart")]], ""),
        ([], ""),
    ],
)
def test_of_several_seeds_it_is_the_median(folders, text):
    own = headline(lambda results: number_of(results.quickstart, "A", LAST))
    found, runs = results_page.numbers(own, kept(*folders))
    assert found == text and bool(runs) == bool(text)


def test_what_is_not_reached_counts_as_later_than_all_others():
    own = headline(lambda _: Numbers([3, float("inf"), 5], []), "{:.0f}")
    assert results_page.numbers(own, kept()) == ("5 (3 to not reached, 3 seeds)", [])
    never = headline(lambda _: Numbers([float("inf")], []))
    assert results_page.numbers(never, kept())[0] == "not reached"
    arrival = round_of_half(70)
    assert arrival.rounds == 0 and not arrival.also


def test_a_lead_is_over_the_last_rounds_that_both_have():
    """FedAvg has two rounds more, in which it is far ahead."""
    lines = {"A": [0.1, 0.5, 0.6], "FedAvg": [0.1, 0.2, 0.3, 0.9, 0.9]}
    runs = [run(label, 0, of, experiment="adafed_2") for label, of in lines.items()]
    (lead,), used = lead_at_the_end(kept(runs).adafed_2, "A", "accuracy")
    assert lead == pytest.approx(0.2) and [one.label for one in used] == [*lines]
