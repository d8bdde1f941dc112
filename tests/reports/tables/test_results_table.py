"""The table of rounds and gains, and its file, on numbers worked by hand."""

import math

import pytest
from small_results import results_of_seed, written

from tff_pmc.record.results import join_results
from tff_pmc.reports.tables import results_table

# Three rounds of four devices with 10 test examples each.
CORRECT = [[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]]
TEN = [10] * 4


@pytest.mark.parametrize(("reach", "first"), [("at_least", 1), ("above", 2)])
def test_the_file_and_the_text_follow_the_targets_and_the_rule_of_the_runs(
    tmp_path, reach, first
):
    """7 of 10 is not above 70 %: the first device is there in round 2, with 8."""
    results = results_of_seed({"DS": CORRECT}, TEN, targets=(70, 95), reach=reach)
    text, csv = written(results_table.report(results), tmp_path, "results")
    assert csv["target_accuracy_pct"].dropna().unique().tolist() == [70, 95]
    assert csv["value"][0] == first
    assert text.splitlines()[2].split()[4] == str(first)
    page = (tmp_path / "results.md").read_text()
    assert "cnn, sgd with rate 0.1, E = 5, B = all, 3 rounds" in page


def test_where_no_target_was_reached_a_sentence_says_so(tmp_path):
    results = results_of_seed({"DS": CORRECT, "LD": CORRECT}, TEN, targets=(95, 100))
    text, csv = written(results_table.report(results), tmp_path, "results")
    assert text == (
        "Rounds until a share of the devices reaches the target accuracy:\n"
        "10 % of the devices reached none of 95, 100 % in any run."
    )
    assert (
        csv["quantity"] == "gain"
    ).sum() == 2 * 10  # The file has them all the same.


def test_where_neither_run_reached_a_target_there_is_no_average(tmp_path):
    """At 60 % both have all devices in round 3; at 95 % none has any."""
    runs = results_of_seed({"DS": CORRECT, "LD": CORRECT}, TEN, targets=(60, 95))
    text, csv = written(results_table.report(runs), tmp_path, "results")
    gains = csv[(csv["quantity"] == "gain") & (csv["devices"] == "Avg.")]
    averages = gains.set_index("target_accuracy_pct")["value"]
    assert averages[60] == 0 and math.isnan(averages[95])
    page = (tmp_path / "results.md").read_text("utf-8")
    for shown in (page, text):
        assert "0.00" in shown.split("Rounds saved")[1]
    assert f"| 95 % | LD |{' — |' * 10}" in page


def test_the_average_counts_an_unreached_target_with_the_last_round(tmp_path):
    """DS has all devices in round 1; LD three of four, which are 10 to 70 % of them."""
    runs = results_of_seed(
        {"DS": 3 * [[9] * 4], "LD": 3 * [[9, 9, 9, 0]]}, TEN, targets=(90,)
    )
    _, csv = written(results_table.report(runs), tmp_path, "results")
    gains = csv[csv["quantity"] == "gain"].set_index("devices")["value"]
    assert gains["70%"] == 0 and gains[["80%", "90%"]].isna().all()
    assert gains["Avg."] == round(2 * (1 - 3) / 9, 2)
    shorter = results_of_seed({"LD": 2 * [[9, 9, 9, 0]]}, TEN, targets=(90,))
    runs = join_results([runs.only(label="DS"), shorter])
    _, csv = written(results_table.report(runs), tmp_path / "2", "results")
    gains = csv[csv["quantity"] == "gain"].set_index("devices")["value"]
    assert gains["70%"] == 0 and math.isnan(gains["Avg."])  # It may arrive in round 3.


def test_gains_are_over_the_run_of_ds_with_the_same_settings(tmp_path):
    """Such as the selection, or the server's optimizer."""
    counts = {
        "DS": CORRECT[2:],
        "DS, server adam": CORRECT,
        "LD, server adam": CORRECT[1:],
        "LD (backtracking)": CORRECT,
    }
    _, csv = written(
        results_table.report(results_of_seed(counts, TEN, targets=(90,))),
        tmp_path,
        "results",
    )
    csv = csv[(csv["quantity"] == "gain") & (csv["devices"] == "10%")]
    # In rounds 1, 3, 2 and 3.
    assert dict(zip(csv["experiment"], csv["value"])) == {
        "DS, server adam": -2,
        "LD, server adam": 1,
        "LD (backtracking)": -2,
    }


def test_runs_without_targets_have_no_table_of_rounds(tmp_path):
    results = results_of_seed({"DS": CORRECT}, TEN)
    text, csv = written(results_table.report(results), tmp_path, "results")
    assert text == "" and set(csv["devices"]) == {"all"}
