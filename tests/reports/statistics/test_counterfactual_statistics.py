"""One-step effects: their intervals by moving blocks, and Holm's rule."""

import numpy as np
import pandas as pd
import pytest
from small_results import results_of_seed

from tff_pmc import scores
from tff_pmc.reports.statistics import counterfactual_statistics
from tff_pmc.reports.tables import counterfactual_effects


def judged(differences, in_force="DS", cohort=None, **settings):
    """A run in which DS has 500 of 1,000 right, and others these differences more."""
    rows = []
    for number, values in enumerate(zip(*differences.values()), 1):
        for trial, (label, extra) in enumerate(zip(differences, values), 1):
            row = {"round": number, "kind": "counterfactual", "trial": trial}
            row |= {"ordering": label, "rate": 1.0, "kept": int(label == in_force)}
            row |= {"correct": 500 + extra, "examples": 1000, "jain_index": 0.9}
            rows.append({**row, "worst_tenth": 0.2 + extra / 1000})
    trial = {**rows[0], "kind": "trial", "correct": 0}  # Of a search: no part of it.
    tables = {"candidates": pd.DataFrame([trial, *rows])}
    tables.update({} if cohort is None else {"cohort": cohort})
    return results_of_seed({in_force: [[1]]}, [2], tables=tables, **settings)


def effects(differences):
    """The effects if DS is current."""
    size = len(next(iter(differences.values())))
    return counterfactual_statistics.effects(judged({"DS": [0] * size, **differences}))


def test_means_early_and_late_are_in_points():
    table = effects({"LD": [10, 10, 10, 20, 20]})
    (row,) = table.to_dict("records")
    assert (row["weighting"], row["baseline"], row["rounds"]) == ("LD", "DS", 5)
    for measure in ("accuracy", "worst_tenth"):
        figures = [row[f"{measure}_{part}"] for part in ("mean", "early", "late")]
        np.testing.assert_allclose(figures, [1.4, 1.0, 2.0])
        assert np.isnan(row[f"{measure}_interval"])  # Too few rounds for one.


def test_the_interval_of_independent_rounds_is_students():
    """Long series: blocks or not, the mean varies as sd / sqrt(n)."""
    values = np.random.default_rng(5).normal(3, 20, 600).round()
    table = effects({"LD": values})
    expected = 1.96 * values.std() / 10 / np.sqrt(600)
    assert table["accuracy_interval"][0] == pytest.approx(expected, rel=0.3)


def test_autocorrelated_rounds_widen_the_interval():
    """Each value held for eight rounds: eight times fewer of them say something."""
    values = np.random.default_rng(6).normal(0, 20, 75).round().repeat(8)
    table = effects({"LD": values})
    of_independent = 1.96 * values.std() / 10 / np.sqrt(600)
    assert table["accuracy_interval"][0] > 1.8 * of_independent


def test_effects_that_differ_are_named_and_zero_effects_have_p_one():
    noise = np.random.default_rng(8).normal(0, 10, (2, 40)).round()
    differences = {"LD": noise[0], "MD": 60 + noise[1], "LD,DS": np.zeros(40)}
    table = effects(differences)
    p = table.set_index("weighting")["accuracy_p"]
    assert p["MD"] < 0.001 and p["LD"] > 0.05 and p["LD,DS"] == 1
    words = counterfactual_effects.summary_sentence(table)
    assert words.startswith("1 of 3 differ from DS") and "MD (+6." in words
    alike = effects({"LD": noise[0]})
    reach = abs(alike["accuracy_mean"][0]) + alike["accuracy_interval"][0]
    assert (
        f"by more than {reach:.2f} points"
        in counterfactual_effects.summary_sentence(alike)
    )


def test_holms_rule_by_hand():
    """The smallest of m times m, the next times m - 1, and never below one before."""
    p_values = counterfactual_statistics.holm(np.array([0.04, 0.01, 0.5, 0.015]))
    np.testing.assert_allclose(p_values, [0.08, 0.04, 0.5, 0.045])
    assert counterfactual_statistics.holm(np.array([0.9, 0.8])).max() <= 1


def test_without_ds_the_current_weighting_is_the_baseline():
    run = judged({"LD": [10, 20], "MD": [0, 0]}, in_force="MD")
    table = counterfactual_statistics.effects(run)
    assert table["weighting"].tolist() == ["LD"] and table["baseline"][0] == "MD"
    np.testing.assert_allclose(table["accuracy_mean"], [1.5])


def test_the_weight_moved_is_relative_to_the_current_weights():
    """DS alone gives 1/4 and 3/4, LD half each; in the second round all are equal."""
    rows = [(1, "a", 1.0, 2.0, 0, 0.25), (1, "b", 3.0, 2.0, 0, 0.75)]
    rows += [(1, "c", 9.0, 9.0, 1, 0.0), (2, "a", 4.0, 2.0, 0, 0.5)]
    rows += [(2, "b", 4.0, 2.0, 0, 0.5)]
    columns = ["round", "client", "DS", "LD", "excluded", "weight"]
    names = ("DS", "LD", "average[0.5,0.5]:DS,LD", "Choquet[0.4,0.3]:DS,LD")
    run = judged(
        {name: [0, 0] for name in names},
        cohort=pd.DataFrame(rows, columns=columns),
        criteria=("DS", "LD"),
    )
    report = counterfactual_effects.report(run)
    moved = report.tables["counterfactuals"]["total_variation"]
    np.testing.assert_allclose(moved, [0.125, 0.0625, np.nan])
    assert "2 judged rounds are too few" in report.text
    assert [*report.figures] == ["counterfactuals"]


@pytest.mark.parametrize(
    "score",
    [
        scores.prioritized(("LD", "DS"), ("DS", "LD", "MD")),
        scores.weighted_average((1 / 3, 1 / 3, 1 / 3), ("DS", "LD", "MD")),
        scores.owa("most", ("DS", "LD", "MD")),
        scores.owa((0.5, 0.3, 0.2), ("DS", "LD", "MD")),
        scores.product(("DS", "LD", "MD"), members=("DS", "MD")),
    ],
)
def test_a_score_is_found_by_its_label(score):
    criteria = np.random.default_rng(3).random((20, 3))
    rebuilt = counterfactual_statistics.score_from_label(
        score.label, ("DS", "LD", "MD")
    )
    np.testing.assert_allclose(rebuilt(criteria), score(criteria), rtol=1e-3)
    assert counterfactual_statistics.score_from_label(score.label, ("DS", "CB")) is None


def test_runs_without_counterfactuals_and_several_seeds_have_no_report():
    assert not counterfactual_effects.report(results_of_seed({"DS": [[1]]}, [2])).tables
