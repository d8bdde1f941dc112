"""The numbers on the page of kept results."""

import math
import pathlib

import pandas as pd
import pytest
from papers.claim_runs import kept, run

from tff_pmc.reports import results_page
from tff_pmc.reports.papers.claim_measures import round_of_half
from tff_pmc.reports.papers.claim_registry import Headline
from tff_pmc.reports.papers.claims.adafed_claims import lead_at_the_end

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_hours_are_those_of_training_and_testing():
    path = ROOT / "results" / "reproduced" / "adafed_2" / "timing.csv.gz"
    hours = pd.read_csv(path)[["train", "test"]].to_numpy().sum() / 3600
    text = (ROOT / "results" / "README.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if "- [adafed_2]" in line]
    assert f", {hours:.2g} hours. " in line


def last(results):
    return results.rounds.groupby(["seed", "label"])["accuracy"].last()


def our_number(*folders, label="A", measure=last, **options):
    """The number of A, or of another, and the runs that it is of."""
    arguments = "PMC", "Table 9", "an accuracy", ".5", "quickstart", label, measure
    options = {"form": "{:.2f}", **options}
    return results_page.our_value(Headline(*arguments, **options), kept(*folders))


def runs(label, *lasts):
    return [
        run(label, seed, [0.1, last], experiment="quickstart")
        for seed, last in enumerate(lasts)
    ]


WHAT = "2 rounds, 7 clients"
SEVERAL = f"0.20 (0.10 to 0.90, 3 seeds) ({WHAT})"


@pytest.mark.parametrize(
    ("folders", "options", "text"),
    [
        ([runs("A", 0.75)], {}, f"0.75 ({WHAT})"),
        ([runs("A", 0.1, 0.9, 0.2)], {}, SEVERAL),
        ([runs("B", 0.75)], {}, "not run"),
        ([], {}, "not run"),
        # What is not reached counts as later than all others.
        (
            [runs("A", 3, math.inf, 5)],
            {"form": "{:.0f}"},
            f"5 (3 to not reached, 3 seeds) ({WHAT})",
        ),
        ([runs("A", math.inf)], {}, f"not reached ({WHAT})"),
        # A lead, and only where both have it.
        (
            [[*runs("A", 0.5, 0.5), *runs("B", 0.3)]],
            {"base": "B", "form": "{:+.1f}"},
            f"+0.2 ({WHAT})",
        ),
        ([runs("A", 0.1)], {"measure": round_of_half(70)}, "not run"),
    ],
)
def test_hours_of_several_seeds_are_their_median(folders, options, text):
    assert our_number(*folders, **options) == text


def test_a_lead_is_over_the_last_common_rounds():
    """FedAvg has two rounds more, in which it is far ahead."""
    lines = {"A": [0.1, 0.5, 0.6], "FedAvg": [0.1, 0.2, 0.3, 0.9, 0.9]}
    lead_runs = [
        run(label, 0, accuracies, experiment="quickstart")
        for label, accuracies in lines.items()
    ]
    options = {"measure": lead_at_the_end, "needs": ["FedAvg"], "form": "{:+.2f}"}
    assert our_number(lead_runs, **options) == "+0.20 (3 to 5 rounds, 7 clients)"
