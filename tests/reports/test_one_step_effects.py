"""One-step effects: their intervals by moving blocks, and Holm's rule."""

import numpy as np
import pandas as pd
import pytest

from tff_pmc.record.row_checks import check_weightings
from tff_pmc.reports import one_step_effects


def record(differences, *, rates=None):
    """A record in which DS has 500 of 1,000 right, and others so many more."""
    rows = []
    for number, values in enumerate(zip(*differences.values()), 1):
        for label, more in zip(["DS", *differences], [0, *values]):
            row = {"round": number, "weighting": label, "rate": 1.0}
            row |= {"in_force": int(label == "DS"), "correct": 500 + more}
            row |= {"examples": 1000, "worst_tenth": 0.2 + more / 1000}
            rows.append({**row, "jain_index": 0.9, "total_variation": 0.1})
    return pd.DataFrame(rows)


def test_means_early_and_late_are_in_points():
    table = one_step_effects.effects(record({"LD": [10, 10, 10, 20, 20]}))
    (row,) = table.to_dict("records")
    assert (row["weighting"], row["baseline"], row["rounds"]) == ("LD", "DS", 5)
    for measure in ("accuracy", "worst_tenth"):
        figures = [row[f"{measure}_{part}"] for part in ("mean", "early", "late")]
        np.testing.assert_allclose(figures, [1.4, 1.0, 2.0])
        assert np.isnan(row[f"{measure}_interval"])  # Too few rounds for one.


def test_the_interval_of_independent_rounds_is_students():
    """Long series: blocks or not, the mean varies as sd / sqrt(n)."""
    values = np.random.default_rng(5).normal(3, 20, 600).round()
    table = one_step_effects.effects(record({"LD": values}))
    expected = 1.96 * values.std() / 10 / np.sqrt(600)
    assert table["accuracy_interval"][0] == pytest.approx(expected, rel=0.3)


def test_rounds_that_follow_on_one_another_widen_the_interval():
    """Each value held for eight rounds: eight times fewer of them say something."""
    values = np.random.default_rng(6).normal(0, 20, 75).round().repeat(8)
    table = one_step_effects.effects(record({"LD": values}))
    of_independent = 1.96 * values.std() / 10 / np.sqrt(600)
    assert table["accuracy_interval"][0] > 1.8 * of_independent


def test_what_differs_is_said_and_what_is_alike_has_no_p_below_one():
    noise = np.random.default_rng(8).normal(0, 10, (2, 40)).round()
    found = {"LD": noise[0], "MD": 60 + noise[1], "LD,DS": np.zeros(40)}
    table = one_step_effects.effects(record(found))
    p = table.set_index("weighting")["accuracy_p"]
    assert p["MD"] < 0.001 and p["LD"] > 0.05 and p["LD,DS"] == 1
    words = one_step_effects.headline(table)
    assert words.startswith("1 of 3 differ from DS") and "MD (+6." in words
    alike = one_step_effects.effects(record({"LD": noise[0]}))
    reach = abs(alike["accuracy_mean"][0]) + alike["accuracy_interval"][0]
    assert f"by more than {reach:.2f} points" in one_step_effects.headline(alike)


def test_holms_rule_by_hand():
    """The smallest of m times m, the next times m - 1, and never below one before."""
    found = one_step_effects.holm(np.array([0.04, 0.01, 0.5, 0.015]))
    np.testing.assert_allclose(found, [0.08, 0.04, 0.5, 0.045])
    assert one_step_effects.holm(np.array([0.9, 0.8])).max() <= 1


def test_without_ds_the_weighting_in_force_is_the_baseline():
    whole = record({"LD": [10, 20], "MD": [0, 0]})
    part = whole[whole["weighting"] != "DS"].copy()
    part.loc[part["weighting"] == "MD", "in_force"] = 1
    table = one_step_effects.effects(part)
    assert table["weighting"].tolist() == ["LD"] and table["baseline"][0] == "MD"
    np.testing.assert_allclose(table["accuracy_mean"], [1.5])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda table: table.iloc[:0], "no rows"),
        (lambda table: table.assign(in_force=1), "round 1 has not one weighting that"),
        (lambda table: table.assign(in_force=0), "round 1 has not one weighting that"),
        (lambda table: table.assign(correct=1001), "1001 correct of 1000"),
        (lambda table: table.assign(correct=0, examples=0), "'DS' has no examples"),
        (lambda table: table.assign(rate=np.nan), "'DS' has no examples, or no rate"),
        (lambda table: table.assign(weighting="LD"), "round 1 has 'LD' twice"),
    ],
)
def test_a_record_that_no_run_can_have_written_is_refused(change, words):
    whole = record({"LD": [10, 20]})
    check_weightings(whole)
    with pytest.raises(ValueError, match=words):
        check_weightings(change(whole))
