"""The rule of claims on single measures, and whose runs are compared."""

import numpy as np
import pytest
from claim_runs import folder, kept, run
from small_results import results_of_seed

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import judging
from tff_pmc.reports.papers.claim_measures import LAST_ROUND, compare
from tff_pmc.reports.papers.judging import Difference, Differences, judge
from tff_pmc.reports.papers.paper_runs import Runs, kept_runs

# Student's t for five: 2.776; of 1, 2, 3, 4, 5 the half interval is 1.96.
FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)
ZERO = (0.0,) * 5
YES, NO, OPEN, SHORT = judging.VERDICTS[:4]
BEYOND = "the interval excludes the claim"
EQUAL = "the weights are equal in every round"
PART = {"columns_reached": "1 of 2 columns"}


def claimed(values, baseline_values, sign="more", *limits, **fields):
    """A difference, and the range that a paper claims for it."""
    differences = Differences([Difference("it", values, baseline_values)])
    (difference,) = getattr(differences, f"is_{sign}")(*limits)
    return difference._replace(**fields)


def around(mean, sign="more", *limits, **fields):
    """A difference whose interval is a mean ± 1.96."""
    return claimed([mean - 3 + value for value in FIVE], ZERO, sign, *limits, **fields)


@pytest.mark.parametrize(
    ("difference", "word", "why"),
    [
        (around(3), YES, ""),
        (around(-3), NO, BEYOND),
        (around(1.5), OPEN, "interval allows both"),
        # The printed size: within, missed by a clear sign, by an interval with 0.
        (around(3, printed=(1.0, 2.0)), YES, ""),
        (around(3, printed=(8.0, 8.0)), YES, "the same sign, another size"),
        (around(0.3, "less", printed=(-8.1, -8.1)), NO, "not the paper's number"),
        (around(1.5, printed=(3.4, 9.0)), OPEN, "interval allows both"),
        (around(3, "at_least", -1, printed=(0.3, 0.3)), YES, "the same sign"),
        (around(1.5, "none", 3, printed=(-9.0, -9.0)), OPEN, "allows both"),
        # The columns that are left have not what all of them have.
        (around(-3, printed=(-0.5, -0.5), **PART), SHORT, "not even the paper's table"),
        (around(0, "none", 3, printed=(4.0, 4.0), **PART), SHORT, "table shows it"),
        (around(1.5, **PART), SHORT, "do not decide it"),
        # A sign is decided by a part of the columns, too.
        (around(3, **PART), YES, ""),
        (around(-3, **PART), NO, BEYOND),
        (around(0.3, "less", printed=(-8.1, -8.1), **PART), NO, "not the paper's"),
        # The late columns may change a size, whatever the early ones have.
        (around(9, "none", 3, **PART), SHORT, "do not decide it"),
        (around(0, "none", 3, **PART), SHORT, "do not decide it"),
        (around(-3, printed=(-0.5, -0.5)), NO, BEYOND),
        # Equal weights are one algorithm, however long it ran.
        (around(3, equal=True), NO, f"{EQUAL}, so that any difference"),
        (around(9, "none", 1, equal=True), YES, EQUAL),
        (claimed((), (), "less", equal=True, missing="no column"), NO, EQUAL),
        (claimed((), (), "less", missing="no column"), SHORT, "no column"),
        (claimed((1, 2), (0, 0)), SHORT, "2 seeds; below five nothing is decided"),
        # A limit belongs to its tolerance, and 0 to neither sign.
        (claimed([2.0] * 5, ZERO, "none", 2.0), YES, ""),
        (claimed(ZERO, ZERO), OPEN, "the interval allows both"),
        (claimed([1.0] * 5, ZERO, "between", 1, 6), YES, ""),
        (claimed([1.0] * 5, ZERO, "at_most", 1), YES, ""),
        (claimed([1.1] * 5, ZERO, "at_most", 1), NO, BEYOND),
        # The size that the words give is of all columns, not of a part.
        (around(3, "more", (8, 9)), YES, "the same sign, another size"),
    ],
)  # fmt: skip
def test_the_verdict_on_one_difference(difference, word, why):
    judgment = judge([difference])
    assert judgment.verdict == word
    assert why in judgment.why if why else not judgment.why


def test_a_size_in_words_covers_all_columns():
    whole = around(3, printed=(2.0, 2.0))
    part = whole._replace(**PART)
    sizes = [each.printed for each in Differences([whole, part]).is_less(-8)]
    assert sizes == [(-8, -8), (2.0, 2.0)]
    assert Differences([whole]) + [part] == (whole, part)


def test_the_differences_that_decide_are_named_unless_all_do():
    names = "a, b", "c", "d"
    differences = [around(mean, name=name) for mean, name in zip((-3, 3, -9), names)]
    judgment = judge(differences)
    assert judgment[1:4] == (NO, BEYOND, "a, b; d")
    assert judgment.ours.startswith("a, b -3.0 ± 2.0") and "; c +3.0" in judgment.ours
    assert not judge(differences[:1]).decided_by
    assert not judge(differences[::2]).decided_by
    parts = [around(0, "none", 3, equal=equal) for equal in (True, False, True)]
    assert judge(parts).why == f"in 2 of 3 numbers {EQUAL}"
    assert judge(parts[::2]).why == EQUAL


# The deviation is 1.581: with six seeds the interval is 2.571 * 1.581 / sqrt(6) = 1.66,
# with seven 2.447 * 1.581 / sqrt(7) = 1.46, with ten 1.13, eleven 1.06, twelve 1.00.
@pytest.mark.parametrize(
    ("measures", "seeds"),
    [
        ([around(3)], "5"),
        ([around(1.5)], "7"),  # 0 is 1.5 away
        ([around(1.1)], "11"),
        ([around(1.5, printed=(3.2, 9.0))], "6"),  # and the printed size 1.7
        ([around(1.1, printed=(-9.0, 0.5))], "11"),
        ([around(1.5, "none", 3, printed=(9.0, 9.0))], "7"),
        ([around(0.1, "between", -1.6, 1.2)], "11"),
        ([around(3, equal=True)], "1"),
        # One part refutes it, all have to hold.
        ([around(1.1), around(3)], "11"),
        ([around(1.5), around(1.1)], "11"),
        ([around(-3), around(-3, equal=True), around(1.1)], "1"),
        # Nothing is known of what was not measured, or measured once, or is the limit.
        ([around(3), claimed((), (), "less", missing="no column")], ""),
        ([claimed([1.0], [0.0])], ""),
        ([claimed(ZERO, ZERO)], ""),
        # Fewer than five are too few, but more of a part would not decide.
        ([claimed((1.0, 2.0, 3.0), ZERO[:3])], "5"),
        ([claimed((1.0, 2.0, 3.0), ZERO[:3], **PART)], ""),
        ([around(1.5, **PART)], ""),
    ],
)  # fmt: skip
def test_how_many_seeds_would_decide(measures, seeds):
    assert judge(measures).seeds == seeds


def frame(*runs):
    """Kept runs, each alone in its folder."""
    return kept_runs([folder(each) for each in runs]).assign(experiment="x")


RELU = {"model": "mnist_cnn", "conv_activation": "relu"}
LINEAR = {"model": "mnist_cnn", "conv_activation": "none"}


@pytest.mark.parametrize(
    ("row", "least", "why", "of_data"),
    [
        ({"data_source": "INCOMPLETE: a"}, 0, "not on the paper's data: I", True),
        ({"data_options": {"image_fraction": 0.05}}, 0, "on 0.05 of the images", True),
        ({}, 4, "the kept runs have 3 rounds, and the claim takes 4", False),
        ({}, 3, "", False),
        (RELU, 0, "kept runs are with ReLU after the convol", False),
        (LINEAR, 0, "", False),
        # AdaFed's source has ReLU.
        ({**RELU, "model": "keras_mnist_cnn"}, 0, "", False),
    ],
)
def test_runs_unlike_the_papers_decide_nothing(row, least, why, of_data):
    runs = {"runs": frame(run("DS", length=3, **row)), "least_rounds": least}
    judgment = judge([around(-3, **runs)])
    assert judgment.verdict == (SHORT if why else NO) and why in judgment.why
    assert judgment.seeds == ("" if why else "5")  # More seeds would not help.
    # A difference of complete runs refutes the claim, whatever the others are.
    complete = {"runs": frame(run("DS", length=4)), "least_rounds": least}
    judgment = judge([around(9, **runs), around(-3, **complete, name="complete")])
    assert judgment.verdict == NO and judgment.decided_by == "complete"
    # Equal weights on other data prove nothing; in few rounds they do.
    equal = judge([around(3, equal=True, **runs)])
    assert equal.verdict == (SHORT if of_data else NO)


@pytest.mark.parametrize(
    ("count_shown", "words"),
    [("clients", "7 or 9 clients"), ("epochs", "3 or 5 epochs")],
)
def test_the_number_of_clients_or_epochs_is_shown(count_shown, words):
    runs = frame(run("DS", length=3), run("LD", length=5, data_clients=9))
    judgment = judge([around(3, runs=runs, count_shown=count_shown)])
    assert judgment.ours == f"it +3.0 ± 2.0 ({words})"
    assert judgment.shown == f"it: +3.0 ± 2.0 ({words})"


def test_the_page_has_the_deciding_numbers_and_how_many_more_there_are():
    def shown(*means):
        return judge(
            [around(mean, name=f"a,{k}") for k, mean in enumerate(means)]
        ).shown

    assert shown(3, 4, 5) == "a,0: +3.0 ± 2.0; a,1: +4.0 ± 2.0; a,2: +5.0 ± 2.0"
    assert shown(3, 4, 5, 6) == "a,0: +3.0 ± 2.0; a,1: +4.0 ± 2.0; 2 more"
    assert shown(3, -4, 5) == "a,1: -4.0 ± 2.0; 2 more"
    noisy = claimed([4.0, 5.0, 6.0, 7.0, 9.0], FIVE)
    judgment = judge([noisy, claimed((), (), missing="x")])
    assert "(noise floor" in judgment.ours and "(noise" not in judgment.shown
    assert judgment.shown == "it: +3.2 ± 0.6"  # The unmeasured one has no number.


@pytest.mark.parametrize(
    ("mean", "printed", "words"),
    [
        (3, (1.6, 1.6), "it: 3.0 ± 2.0 rounds sooner (paper: 1.6)"),
        (-3, (1.6, 1.6), "it: 3.0 ± 2.0 rounds later (paper: 1.6 sooner)"),
        (-3, (-12, -5), "it: 3.0 ± 2.0 rounds later (paper: 5.0 to 12.0)"),
        (0.01, (-1.1, -1.1), "it: 0.0 ± 2.0 rounds (paper: 1.1 later)"),
        (-3, (0.0, 0.0), "it: 3.0 ± 2.0 rounds later (paper: 0.0)"),
    ],
)
def test_rounds_saved_have_a_direction_on_the_page(mean, printed, words):
    assert judge([around(mean, printed=printed, is_rounds_saved=True)]).shown == words


def e(label, seed=0, **row):
    """A run of an experiment of which no paper says anything."""
    return run(label, seed, **{"experiment": "quickstart", "length": 1, **row})


def selected_folders(folders, labels, least=0, **options):
    """Seed -> the numbers of the folders whose runs are compared."""
    runs = Runs.from_kept("quickstart", kept(*folders))
    rows = runs.select_comparable(labels.split(), least, **options)
    return rows.groupby("seed")["folder"].agg(set).to_dict()


PART_OF_IMAGES = {"data_options": {"image_fraction": 0.5}}


@pytest.mark.parametrize(
    ("folders", "labels", "least", "selected"),
    [
        # Longer runs count, and of others, those that stand with more.
        ([[e("DS"), e("LD")], [e("DS", length=2), e("LD", length=2)]], "DS LD", 0, [1]),
        ([[e("DS")], [e("DS"), e("LD")]], "DS", 0, [1]),
        ([[e("DS"), e("LD")], [e("DS")]], "DS", 0, [0]),
        # More of the data set comes before longer runs.
        ([[e("DS")], [e("DS", length=2, **PART_OF_IMAGES)]], "DS", 0, [0]),
        ([[e("DS")], [e("DS", length=2, **PART_OF_IMAGES)]], "DS", 2, [0]),
        # Those of a command with two seeds are shorter, and belong together.
        ([[e("DS", length=2)], [e("DS"), e("DS", 1)]], "DS", 0, [1, 1]),
        # So many rounds come before more seeds.
        ([[e("DS", length=5)], [e("DS"), e("DS", 1)]], "DS", 4, [0, 1]),
        # Five seeds decide: longer runs then come before a sixth, which is dropped.
        ([[e("DS", k, length=5) for k in range(5)], [e("DS", k) for k in range(6)]],
         "DS", 0, 5 * [0]),
        ([[e("DS", k, length=5) for k in range(4)], [e("DS", k) for k in range(6)]],
         "DS", 0, 6 * [1]),
        # Another reading of the network counts if there is no other.
        ([[e("DS", **LINEAR)], [e("DS", length=9, **RELU)]], "DS", 0, [0]),
        ([[e("DS", **LINEAR)], [e("DS", **RELU), e("LD", **RELU)]], "DS LD", 0, [1]),
        # A run that ended early shows nothing of rounds, nor does its seed.
        ([[e("DS", rounds=3, length=3), e("DS", 1, rounds=3, length=2)]], "DS", 0, [0]),
        # Another method is not a run of the paper's; a setting may not be on record.
        ([[e("DS", normalization="max")], [e("DS")]], "DS", 0, [1]),
        ([[e("DS", length=2, protocol="x")], [e("DS")]], "DS", 0, [1]),
    ],
)  # fmt: skip
def test_which_folder_of_a_seed_is_compared(folders, labels, least, selected):
    folder_by_seed = {seed: {number} for seed, number in enumerate(selected)}
    assert selected_folders(folders, labels, least) == folder_by_seed


def test_a_run_may_end_early_once_all_targets_are_reached():
    ended = {"ended_early": "ended after round 4: all (--until=targets)"}
    patient = {"ended_early": "ended after round 4: no better (--patience=2)"}
    longest, other = [e("DS", length=9, rounds=9)], [e("DS", rounds=9, **patient)]
    folders = [longest, [e("DS", length=4, rounds=9, **ended)], other]
    for allowed in (False, True):
        selected = selected_folders(folders, "DS", allow_early_end=allowed)
        assert selected == {0: {int(allowed)}}
    with pytest.raises(RecordError, match="^not run: DS$"):
        selected_folders([other], "DS", allow_early_end=True)


@pytest.mark.parametrize(
    ("recorded", "requested", "reached"),
    [
        *(("at_least", "", True), ("at_least", "at_least", True)),
        *(("above", "", True), ("above", "at_least", True), ("above", "above", True)),
        ("at_least", "above", False),
    ],
)
def test_targets_reached_at_least_are_not_known_to_be_exceeded(
    recorded, requested, reached
):
    runs = results_of_seed(
        {"DS": [[70] * 10]},
        [100] * 10,
        runs={"ended_early": "ended after round 1: all (--until=targets)"},
        reach=recorded,
    )
    rows = kept_runs([runs], requested)
    assert rows["reached_targets"].tolist() == [reached]
    assert rows["reach"].tolist() == [requested or recorded]


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ([[e("DS")], [e("MD")]], "^not run: LD$"),
        ([[e("MD")]], "^not run: DS and LD$"),
        ([], "^not run: DS and LD$"),
        ([[e("DS")], [e("LD")]], "^no folder of runs has all of DS and LD$"),
        ([[e("DS"), e("LD", 1)]], "^no folder of runs has all of DS and LD$"),
    ],
)
def test_only_runs_of_one_folder_and_seed_are_compared(folders, message):
    with pytest.raises(RecordError, match=message):
        selected_folders(folders, "DS LD")


def test_values_unknown_under_some_seed_decide_nothing():
    runs = [e(label, seed) for seed in range(5) for label in ("DS", "LD")]

    def last_round(results):
        accuracy = results.rounds.groupby(["seed", "label"])["accuracy"].last()
        return accuracy.where(accuracy.index.get_level_values("seed") < 4, np.nan)

    runs = Runs.from_kept("quickstart", kept(runs))
    differences = compare(runs, "LD", last_round).is_none(1)
    assert judge(differences)[:3] == ("", SHORT, "it is not known under every seed")


def test_runs_of_two_experiments_are_compared_under_the_seeds_of_both():
    accuracies = {0: 0.1, 1: 0.5, 2: 0.6}, {1: 0.2, 2: 0.4, 3: 0.9}
    experiments = [
        Runs.from_kept(
            "quickstart",
            kept([e("DS", seed, accuracy=[x]) for seed, x in each.items()]),
        )
        for each in accuracies
    ]
    (difference,) = compare(experiments, "DS", LAST_ROUND, None)
    assert [*difference.values] == pytest.approx([50, 60])
    assert [*difference.baseline_values] == pytest.approx([20, 40])
