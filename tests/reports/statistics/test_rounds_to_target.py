"""Rounds to target, on numbers worked by hand, and the rule that runs have for them."""

import math

import pandas as pd
import pytest
from small_results import join_results, results_of_seed, with_losses

from tff_pmc.reports import REPORTS
from tff_pmc.reports.statistics.rounds_to_target import (
    pmc_average,
    reach_rule,
    rounds_to_target,
    targets_of,
)
from tff_pmc.reports.tables import folder_comparison, summary

# Three rounds of four devices with 10 test examples each.
CORRECT, TEN, AT = [[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]], [10] * 4, "at_least"


@pytest.mark.parametrize(
    ("correct", "examples", "target", "reach", "reached"),
    [
        # 70 %: one device in round 1, two in round 2, all four in round 3.
        (CORRECT, TEN, 70, AT, {10: 1, 25: 1, 30: 2, 50: 2, 60: 3, 75: 3, 90: 3}),
        # With the published script's rule, above the target, one is in round 2.
        (CORRECT, TEN, 70, "above", {10: 2, 25: 2, 30: 3, 75: 3, 80: math.nan}),
        # ceil(2.8) = 3 of the 4 devices have 90 %, and ceil(3.2) = 4 have not.
        (CORRECT, TEN, 90, AT, {70: 3, 80: math.nan}),
        # 0.29 * 100 is 28.999999999999996.
        ([[29]], [100], 29, AT, {50: 1}),
        # A device without test examples never reaches a target.
        ([[0, 5]], [0, 5], 70, AT, {50: 1, 90: math.nan}),
    ],
)
def test_the_first_round_in_which_enough_devices_reach_the_target(
    correct, examples, target, reach, reached
):
    results = results_of_seed({"DS": correct}, examples, reach="of the runs")
    rows = rounds_to_target(results, [target], list(reached), reach)
    assert rows["devices"].tolist() == list(reached)
    assert rows["rounds"].tolist() == pytest.approx(list(reached.values()), nan_ok=True)


def test_runs_and_targets_are_rows_and_the_average_omits_dashes():
    results = results_of_seed({"DS": CORRECT, "LD": CORRECT[1:]}, TEN, targets=(70, 90))
    rows = rounds_to_target(results, [70, 90]).set_index(["label", "target", "devices"])
    assert len(rows) == 2 * 2 * 9
    gains = rows.loc["DS", "rounds"] - rows.loc["LD", "rounds"]
    # LD is at 70 % one round sooner, but for the first two shares; at 90 % three
    # quarters of the devices are.
    assert gains[70].tolist() == [0, 0, 1, 1, 1, 1, 1, 1, 1]
    assert pmc_average(gains[70]) == 7 / 9 and pmc_average(gains[90]) == 7 / 9


def runs(*settings):
    """A run a seed; None for settings that a run did not record."""
    return join_results(
        results_of_seed({"DS": [[1]]}, [1], seed=seed, **(changes or {}))
        for seed, changes in enumerate(settings)
    )


@pytest.mark.parametrize(
    ("setting_of", "settings", "expected"),
    [
        (reach_rule, [{"reach": "above"}, {"reach": "above"}], "above"),
        (reach_rule, [{"reach": "at_least"}], "at_least"),
        (reach_rule, [{"reach": "above"}, None], "above"),
        (reach_rule, [None], "at_least"),
        (targets_of, [{"targets": (60, 65)}, {"targets": (60, 65)}], (60, 65)),
        (targets_of, [{"targets": (60,)}, None], (60,)),
        (targets_of, [{"targets": (70, 80)}, {"targets": (75, 80)}], (70, 80, 75)),
        (targets_of, [None], ()),
    ],
)
def test_the_rule_and_the_targets_are_those_of_the_runs(setting_of, settings, expected):
    assert setting_of(runs(*settings)) == expected


def test_runs_with_two_rules_are_rejected_in_one_line(fails):
    two_rules = runs({"reach": "above"}, {"reach": "at_least"})
    words = "DS, seed 0, has above, DS, seed 1, has at_least"
    fails(lambda: reach_rule(two_rules), words)


def test_runs_with_losses_are_rejected(fails):
    results = with_losses({"DS": [[1]]}, [2])
    fails(lambda: rounds_to_target(results, [70]), "rounds to a target need accuracies")
    assert targets_of(results) == ()


@pytest.mark.parametrize("none", [0, 1])
@pytest.mark.parametrize(
    ("name", "seeds"),
    [
        *(("rounds_to_target", 1), ("pmc_table2", 1), ("pmc_variance", 1)),
        *(("da_table1", 1), ("summary", 2), ("ordering_effect", 2)),
        *(("spread_effect", 2), ("compare", 1)),
    ],
)
def test_tables_that_count_devices_say_how_many_have_no_tests(
    monkeypatch, name, seeds, none
):
    sizes = [10, 10, 10, 10 * (not none)]
    counts = [[9, 1, 1, 0], [9, 9, 1, 0], [9, 9, 9, 0]]
    settings = dict(experiment="mnist_iid", targets=(80,), criteria=("DS", "LD", "MD"))
    settings["partition"] = "iid"
    cohort = pd.DataFrame(
        [
            (seed, label, 1, client, 9.0, 2.0, 1.0, 0, 0.5)
            for seed in range(seeds)
            for label in ("DS", "LD", "MD")
            for client in ("a", "b")
        ],
        columns=[
            *("seed", "label", "round", "client", "DS", "LD", "MD", "excluded"),
            "weight",
        ],
    )
    labels = dict.fromkeys(("DS", "LD", "MD"), counts)
    results = join_results(
        results_of_seed(
            labels,
            # Whose clients differ: of the first of two seeds all have tests.
            sizes if seed == seeds - 1 else [10] * 4,
            seed=seed,
            runs={"title": [*labels], "data_name": "mnist"},
            tables={"cohort": cohort[cohort["seed"] == seed]},
            **settings,
        )
        for seed in range(seeds)
    )
    if name == "compare":
        monkeypatch.setattr(folder_comparison, "read_results", lambda path: results)
        whole = folder_comparison.comparison_text(folder_comparison.compare("a", "b"))
    else:
        report = REPORTS[name](results)
        pages = [page.markdown() for page in report.pages.values()]
        whole = "".join([report.text, *pages])
    assert "Data: mnist ()" not in whole  # It has no options.
    number = "0 or 1" if seeds > 1 else "1"
    words = f"Clients without test examples: {number}. They count among the devices"
    assert (words in whole) == bool(none)


@pytest.mark.parametrize(
    ("sizes", "words"), [([10, 10], "(2)"), ([10, 0], "(1 of 2, who have tests)")]
)
def test_the_spread_over_clients_covers_those_with_test_examples(sizes, words):
    results = results_of_seed({"DS": [[9, 0]]}, sizes)
    assert summary.text(results).splitlines()[0].endswith(f"over the clients {words}")
