"""The table of rounds and gains, and its file, on numbers worked by hand."""

import pandas as pd
from reported import write

# Three rounds of four devices with 10 test examples each.
CORRECT = [[7, 6, 2, 0], [6, 7, 8, 1], [9, 9, 9, 7]]
EXAMPLES = [10] * 4


def test_the_file_and_the_text_are_by_the_targets_and_the_rule_of_the_runs(
    run_of, tmp_path
):
    """7 of 10 is not above 70 %: the first device is there in round 2, with 8."""
    for reach, first in (("at_least", 1), ("above", 2)):
        settings = {"targets": [70, 95], "reach": reach}
        run = run_of("DS", CORRECT, EXAMPLES, settings=settings)
        text = write("rounds_to_target", [run], tmp_path)
        csv = pd.read_csv(tmp_path / "results.csv")
        assert csv["target_accuracy_pct"].dropna().unique().tolist() == [70, 95]
        assert csv["value"][0] == first
        assert text.splitlines()[2].split()[3] == str(first)
    # A rule that is given counts.
    write("rounds_to_target", [run], tmp_path, reach="at_least")
    assert pd.read_csv(tmp_path / "results.csv")["value"][0] == 1


def test_where_no_target_was_reached_a_sentence_says_so(run_of, tmp_path):
    settings = {"targets": [95, 100]}
    labels = ("DS", "LD")
    runs = [run_of(one, CORRECT, EXAMPLES, settings=settings) for one in labels]
    assert write("rounds_to_target", runs, tmp_path) == (
        "Rounds until a share of the devices reaches the target accuracy:\n"
        "10 % of the devices reached none of 95, 100 % in any run."
    )
    csv = pd.read_csv(tmp_path / "results.csv")  # The file has them all the same.
    assert (csv["quantity"] == "gain").sum() == 2 * 10


def test_gains_are_over_the_run_of_ds_with_the_same_words(run_of, tmp_path):
    """Such as the selection, or the server's optimizer."""
    labels = ("DS", "DS, server adam", "LD, server adam", "LD (backtracking)")
    runs = [
        run_of(one, correct, EXAMPLES, settings={"targets": [90]})
        for one, correct in zip(labels, (CORRECT[2:], CORRECT, CORRECT[1:], CORRECT))
    ]
    write("rounds_to_target", runs, tmp_path)
    csv = pd.read_csv(tmp_path / "results.csv")
    csv = csv[(csv["quantity"] == "gain") & (csv["devices"] == "10%")]
    found = dict(zip(csv["experiment"], csv["value"]))
    # In rounds 1, 3, 2 and 3.
    assert found == {
        "DS, server adam": -2,
        "LD, server adam": 1,
        "LD (backtracking)": -2,
    }


def test_runs_without_targets_have_no_table_of_rounds(run_of, tmp_path):
    run = run_of("DS", CORRECT, EXAMPLES)
    assert write("rounds_to_target", [run], tmp_path) == ""
    assert set(pd.read_csv(tmp_path / "results.csv")["devices"]) == {"all"}
