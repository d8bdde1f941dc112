"""The rule of claims on single measures, and whose runs are compared."""

import math

import numpy as np
import pytest
from claim_runs import folder, kept, run

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import judging
from tff_pmc.reports.papers.evidence import Measured, Run
from tff_pmc.reports.papers.judging import Difference, Differences, judged

# Student's t for five: 2.776; of 1, 2, 3, 4, 5 the half interval is 1.96.
FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)
ZERO = (0.0,) * 5
YES, NO, OPEN, SHORT = judging.VERDICTS[:4]
BEYOND = "it lies elsewhere"
EQUAL = "the weights are equal in every round"
PART = "1 of 2 columns"
BOTH = "2 seeds; below five nothing is decided"


def given(own, base, sign="more", *limits, **keys):
    """A difference, and where a paper puts it."""
    (found,) = getattr(Differences([Difference("it", own, base)]), f"is_{sign}")(
        *limits
    )
    return found._replace(**keys)


def of(mean, sign="more", *limits, **keys):
    """A difference with the interval 1.96 around a mean."""
    return given([mean - 3 + value for value in FIVE], ZERO, sign, *limits, **keys)


@pytest.mark.parametrize(
    ("difference", "word", "why"),
    [
        (of(3), YES, ""),
        (of(-3), NO, BEYOND),
        (of(1.5), OPEN, "interval allows both"),
        # The printed size: within, missed by a clear sign, by an interval with 0.
        (of(3, printed=(1.0, 2.0)), YES, ""),
        (of(3, printed=(8.0, 8.0)), YES, "in sign, not in size"),
        (of(0.3, "less", printed=(-8.1, -8.1)), NO, "not the printed size"),
        (of(1.5, printed=(3.4, 9.0)), OPEN, "interval allows both"),
        (of(3, "at_least", -1, printed=(0.3, 0.3)), YES, "in sign, not in si"),
        (of(1.5, "none", 3, printed=(-9.0, -9.0)), OPEN, "allows both"),
        # The columns that are left have not what all of them have.
        (of(-3, printed=(-0.5, -0.5), part=PART), SHORT, "does not show it"),
        (of(0, "none", 3, printed=(4.0, 4.0), part=PART), SHORT, "show it"),
        (of(1.5, part=PART), SHORT, "these columns leave it open"),
        (of(-3, printed=(-0.5, -0.5)), NO, BEYOND),
        # Equal weights are one algorithm, however long it ran.
        (of(3, equal=True), NO, f"{EQUAL}: a difference is noise"),
        (of(9, "none", 1, equal=True), YES, EQUAL),
        (given((), (), "less", equal=True, lacks="no column"), NO, EQUAL),
        (given((), (), "less", lacks="no column"), SHORT, "no column"),
        (given((1, 2), (0, 0)), SHORT, BOTH),
        (given([np.nan] * 5, ZERO), SHORT, "not known under every se"),
        # A limit belongs to its tolerance, and 0 to neither sign.
        (given([2.0] * 5, ZERO, "none", 2.0), YES, ""),
        (given(ZERO, ZERO), OPEN, "the interval allows both"),
        (given([1.0] * 5, ZERO, "between", 1, 6), YES, ""),
        (given([1.0] * 5, ZERO, "at_most", 1), YES, ""),
        (given([1.1] * 5, ZERO, "at_most", 1), NO, BEYOND),
        # The size that the words give is of all columns, not of a part.
        (of(3, "more", (8, 9)), YES, "in sign, not in size"),
    ],
)  # fmt: skip
def test_what_one_difference_says(difference, word, why):
    _, found, reason, *_ = judged([difference])
    assert found == word and (why in reason if why else not reason)


def test_a_size_in_words_is_of_all_columns():
    whole = of(3, printed=(2.0, 2.0))
    part = whole._replace(part=PART)
    sizes = [one.printed for one in Differences([whole, part]).is_less(-8)]
    assert sizes == [(-8, -8), (2.0, 2.0)]
    assert Differences([whole]) + [part] == (whole, part)


def test_the_differences_that_decide_are_named_unless_all_do():
    names = "a, b", "c", "d"
    found = [one._replace(name=n) for one, n in zip((of(-3), of(3), of(-9)), names)]
    answer = judged(found)
    assert answer[1:3] == (NO, BEYOND) and answer.decisive == ["a, b", "d"]
    assert answer.number.startswith("a, b -3.0 ± 2.0") and "; c +3.0" in answer.number
    assert not judged(found[:1]).decisive and not judged(found[::2]).decisive
    parts = [of(0, "none", 3, equal=equal) for equal in (True, False, True)]
    assert judged(parts).why == f"2 of 3: {EQUAL}" and judged(parts[::2]).why == EQUAL


# The deviation is 1.581: with six seeds the interval is 2.571 * 1.581 / sqrt(6) = 1.66,
# with seven 2.447 * 1.581 / sqrt(7) = 1.46, with ten 1.13, eleven 1.06, twelve 1.00.
@pytest.mark.parametrize(
    ("measures", "seeds"),
    [
        ([of(3)], 5),
        ([of(1.5)], 7),  # 0 is 1.5 away
        ([of(1.1)], 11),
        ([of(1.5, printed=(3.2, 9.0))], 6),  # and the printed size 1.7
        ([of(1.1, printed=(-9.0, 0.5))], 11),
        ([of(1.5, "none", 3, printed=(9.0, 9.0))], 7),
        ([of(0.1, "between", -1.6, 1.2)], 11),
        ([of(3, equal=True)], 1),
        # One part refutes it, all have to hold.
        ([of(1.1), of(3)], 11),
        ([of(1.5), of(1.1)], 11),
        ([of(-3), of(-3, equal=True), of(1.1)], 1),
        # Nothing is known of what was not measured, or measured once, or is the limit.
        ([of(3), given((), (), "less", lacks="no column")], 0),
        ([given([1.0], [0.0])], 0),
        ([given(ZERO, ZERO)], 0),
    ],
)  # fmt: skip
def test_how_many_seeds_would_decide(measures, seeds):
    assert judged(measures).seeds == seeds


def one_run(*args, **row):
    """A run, alone in its folder."""
    made = run(*args, **row)
    return Run(Measured(folder(made)), made["row"])


@pytest.mark.parametrize(
    ("data", "least", "why"),
    [
        ({"data_source": "INCOMPLETE: a part"}, 0, "not on the paper's data: I"),
        ({"data_options": {"image_fraction": 0.05}}, 0, "on 0.05 of the images"),
        ({}, 4, "after 3 rounds, fewer than 4"),
        ({}, 3, ""),
    ],
)
def test_runs_of_less_than_the_papers_decide_nothing(data, least, why):
    runs = {"runs": [one_run("DS", rounds=3, **data)], "least_rounds": least}
    _, word, reason, *_ = judged([of(-3, **runs)])
    assert word == (SHORT if why else NO) and why in reason
    # A part that has whole runs of its own refutes the claim, whatever others have.
    whole = of(-3, runs=[one_run("DS", rounds=4)], least_rounds=least, name="whole")
    answer = judged([of(9, **runs), whole])
    assert answer.verdict == NO and answer.decisive == ["whole"]
    # Equal weights on other data are no proof; in few rounds they are one.
    _, word, *_ = judged([of(3, equal=True, **runs)])
    assert word == (SHORT if data else NO)


def test_the_number_of_clients_or_epochs_is_shown():
    runs = [one_run("DS", rounds=3), one_run("LD", rounds=5, data_clients=9)]
    for shows, words in (("clients", "7 or 9 clients"), ("epochs", "3 or 5 epochs")):
        number = judged([of(3, runs=runs, shows=shows)]).number
        assert number == f"it +3.0 ± 2.0 ({words})"


def test_the_page_has_the_deciding_numbers_and_how_many_more_there_are():
    def short(*means):
        return judged([of(mean, name=f"a,{k}") for k, mean in enumerate(means)]).short

    assert short(3, 4, 5) == "a,0 +3.0 ± 2.0; a,1 +4.0 ± 2.0; a,2 +5.0 ± 2.0"
    assert short(3, 4, 5, 6) == "a,0 +3.0 ± 2.0; a,1 +4.0 ± 2.0; 2 more"
    assert short(3, -4, 5) == "a,1 -4.0 ± 2.0; 2 more"
    noisy = given([4.0, 5.0, 6.0, 7.0, 9.0], FIVE)
    answer = judged([noisy, given((), (), lacks="x")])
    assert "(noise floor" in answer.number and "(noise" not in answer.short
    assert answer.short == "it +3.2 ± 0.6"  # What lacks runs decides, without a number.


def chosen(folders, *labels, least=0):
    """Seed -> the numbers of the folders whose runs count."""
    for number, runs in enumerate(folders):
        for one in runs:
            one["row"]["note"] = number
    by_seed = kept(*folders).of("e", {}).by_seed(labels, least)
    return {
        seed: {one.setting("note") for one in of_seed.values()}
        for seed, of_seed in by_seed.items()
    }


def e(label, seed=0, **row):
    """A run of the experiment e."""
    return run(label, seed, **{"experiment": "e", "rounds": 1, **row})


HALF = {"data_options": {"image_fraction": 0.5}}
RELU = {"model": "mnist_cnn", "conv_activation": "relu"}
LINEAR = {"model": "mnist_cnn", "conv_activation": "none"}


@pytest.mark.parametrize(
    ("folders", "labels", "found"),
    [
        # Longer runs count, and of others, those that stand with more.
        ([[e("DS"), e("LD")], [e("DS", rounds=2), e("LD", rounds=2)]], "DS LD", {0: 1}),
        ([[e("DS")], [e("DS"), e("LD")]], "DS", {0: 1}),
        ([[e("DS"), e("LD")], [e("DS")]], "DS", {0: 0}),
        # More of the data set comes before longer runs.
        ([[e("DS")], [e("DS", rounds=2, **HALF)]], "DS", {0: 0}),
        ([[e("DS")], [e("DS", rounds=2, **HALF)]], "DS 2", {0: 0}),
        # Those of a command with two seeds are shorter, and belong together.
        ([[e("DS", rounds=2)], [e("DS"), e("DS", 1)]], "DS", {0: 1, 1: 1}),
        # So many rounds come before more seeds.
        ([[e("DS", rounds=5)], [e("DS"), e("DS", 1)]], "DS 4", {0: 0, 1: 1}),
        # Another reading of the network counts where there is no other.
        ([[e("DS", **LINEAR)], [e("DS", rounds=9, **RELU)]], "DS", {0: 0}),
        ([[e("DS", **LINEAR)], [e("DS", **RELU), e("LD", **RELU)]], "DS LD", {0: 1}),
    ],
)  # fmt: skip
def test_which_folder_counts_of_a_seed(folders, labels, found):
    labels, least = [x for x in labels.split() if not x.isdigit()], labels.split()[-1]
    least = int(least) if least.isdigit() else 0
    places = {seed: {place} for seed, place in found.items()}
    assert chosen(folders, *labels, least=least) == places


@pytest.mark.parametrize(
    ("folders", "message"),
    [
        ([[e("DS")], [e("MD")]], "^not run: LD$"),
        ([[e("MD")]], "^not run: DS and LD$"),
        ([[e("DS")], [e("LD")]], "^no folder of runs has all of DS and LD$"),
        ([[e("DS"), e("LD", 1)]], "^no folder of runs has all of DS and LD$"),
    ],
)
def test_only_runs_of_one_folder_and_seed_are_compared(folders, message):
    with pytest.raises(RecordError, match=message):
        chosen(folders, "DS", "LD")


def test_a_seed_under_which_a_run_ended_early_is_none():
    def of_seed(seed, *rounds):
        runs = zip(("DS", "MD"), rounds)
        return [run(x, seed, rounds=n, experiment="e", planned=3) for x, n in runs]

    runs = [*of_seed(0, 3, 3), *of_seed(1, 3, 3), *of_seed(2, 2, 3)]
    for one in runs:
        one["row"]["rounds"] = one["row"].pop("planned")
    assert [*chosen([runs], "DS", "MD")] == [0, 1]
    assert [*chosen([runs], "MD")] == [0, 1, 2]


def test_another_reading_decides_nothing_and_another_method_is_no_run():
    for settings, word in ((LINEAR, NO), (RELU, SHORT)):
        assert judged([of(-3, runs=[one_run("DS", **settings)])]).verdict == word
    relu = one_run("DS", **RELU)
    assert judged([of(3, equal=True, runs=[relu])]).verdict == NO
    # AdaFed's source has ReLU.
    assert not one_run("DS", **{**RELU, "model": "keras_mnist_cnn"}).other_reading
    others = [{"normalization": "max"}, {"protocol": "x"}, {"dataset": "digits5k"}]
    runs = [e("DS", k, **own) for k, own in enumerate([*others, {"dataset": "mnist"}])]
    # A run that does not record a setting may have it.
    found = kept(runs, [e("DS", 9)]).of("e", {"dataset": "mnist"}).runs
    assert [one.seed for one in found] == [3, 9]
    assert math.isclose(found[0].image_fraction, 1)
