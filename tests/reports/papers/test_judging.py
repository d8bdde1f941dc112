"""The rule of claims on single measures, and whose runs are compared."""

import dataclasses

import numpy as np
import pytest

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers import judging, own_reading
from tff_pmc.reports.papers.judging import Measure, judged

# Student's t for five: 2.776; of 1, 2, 3, 4, 5 the half interval is 1.96.
FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)
ZERO = (0.0,) * 5
YES, NO, OPEN, SHORT = judging.VERDICTS[:4]
BEYOND = "it lies elsewhere"
EQUAL = "the weights are equal in every round"
PART = "1 of 2 columns"
BOTH = "2 seeds; below five nothing is decided"


def of(mean, sign="more", **keys):
    """A measure with the interval 1.96 around a mean."""
    return Measure("it", [mean - 3 + value for value in FIVE], ZERO, sign, **keys)


@pytest.mark.parametrize(
    ("measure", "word", "why"),
    [
        (of(3), YES, ""),
        (of(-3), NO, BEYOND),
        (of(1.5), OPEN, "interval allows both"),
        # The printed size: within, missed by a clear sign, by an interval with 0.
        (of(3, printed=(1.0, 2.0)), YES, ""),
        (of(3, printed=(8.0, 8.0)), YES, "in sign, not in size"),
        (of(0.3, "less", printed=(-8.1, -8.1)), NO, "not the printed size"),
        (of(1.5, printed=(3.4, 9.0)), OPEN, "interval allows both"),
        (of(3, "not less", tolerance=1, printed=(0.3, 0.3)), YES, "in sign, not in si"),
        (of(1.5, "none", tolerance=3, printed=(-9.0, -9.0)), OPEN, "allows both"),
        # The columns that are left have not what all of them have.
        (of(-3, printed=(-0.5, -0.5), part=PART), SHORT, "does not show it"),
        (of(0, "none", tolerance=3, printed=(4.0, 4.0), part=PART), SHORT, "show it"),
        (of(1.5, part=PART), SHORT, "these columns leave it open"),
        (of(-3, printed=(-0.5, -0.5)), NO, BEYOND),
        # Equal weights are one algorithm, however long it ran.
        (of(3, equal=True), NO, f"{EQUAL}: a difference is noise"),
        (of(9, "none", tolerance=1, equal=True), YES, EQUAL),
        (Measure("it", (), (), "less", equal=True, lacks="no column"), NO, EQUAL),
        (Measure("it", (), (), "less", lacks="no column"), SHORT, "no column"),
        (Measure("it", (1, 2), (0, 0), "more"), SHORT, BOTH),
        (Measure("it", [np.nan] * 5, ZERO, "more"), SHORT, "not known under every se"),
        # A limit belongs to its tolerance, and 0 to neither sign.
        (Measure("it", [2.0] * 5, ZERO, "none", 2.0), YES, ""),
        (Measure("it", ZERO, ZERO, "more"), OPEN, "the interval allows both"),
        (Measure("it", [1.0] * 5, ZERO, "within", within=(1, 6)), YES, ""),
    ],
)  # fmt: skip
def test_what_one_measure_says(measure, word, why):
    _, found, reason, *_ = judged([measure])
    assert found == word and (why in reason if why else not reason)


def test_the_measures_that_decide_are_named_unless_all_do():
    names = "a, b", "c", "d"
    found = [one._replace(name=n) for one, n in zip((of(-3), of(3), of(-9)), names)]
    answer = judged(found)
    assert answer[1:3] == (NO, BEYOND) and answer.decisive == ["a, b", "d"]
    assert answer.number.startswith("a, b -3.0 ± 2.0") and "; c +3.0" in answer.number
    assert not judged(found[:1]).decisive and not judged(found[::2]).decisive
    parts = [of(0, "none", tolerance=3, equal=equal) for equal in (True, False, True)]
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
        ([of(1.5, "none", tolerance=3, printed=(9.0, 9.0))], 7),
        ([of(0.1, "within", within=(-1.6, 1.2))], 11),
        ([of(3, equal=True)], 1),
        # One part refutes it, all have to hold.
        ([of(1.1), of(3)], 11),
        ([of(1.5), of(1.1)], 11),
        ([of(-3), of(-3, equal=True), of(1.1)], 1),
        # Nothing is known of what was not measured, or measured once, or is the limit.
        ([of(3), Measure("it", (), (), "less", lacks="no column")], 0),
        ([Measure("it", [1.0], [0.0], "more")], 0),
        ([Measure("it", ZERO, ZERO, "more")], 0),
    ],
)  # fmt: skip
def test_how_many_seeds_would_decide(measures, seeds):
    assert judged(measures).seeds == seeds


@pytest.mark.parametrize(
    ("data", "least", "why"),
    [
        ({"origin": {"source": "INCOMPLETE: a part"}}, 0, "not on the paper's data: I"),
        ({"options": {"image_fraction": 0.05}}, 0, "on 0.05 of the images"),
        ({}, 4, "after 3 rounds, fewer than 4"),
        ({}, 3, ""),
    ],
)
def test_runs_of_less_than_the_papers_decide_nothing(run_of, data, least, why):
    run = run_of("DS", [[1]] * 3, [1], data={"name": "mnist", **data})
    _, word, reason, *_ = judged([of(-3)], [run], least_rounds=least)
    assert word == (SHORT if why else NO) and why in reason
    # A part that has whole runs of its own refutes the claim, whatever others have.
    whole = run_of("DS", [[1]] * 4, [1], data={"name": "mnist"})
    own = of(-3, runs=[whole])._replace(name="whole")
    _, word, *_, decisive, _ = judged([of(9), own], [run, whole], least_rounds=least)
    assert word == NO and decisive == ["whole"]
    # Equal weights on other data are no proof; in few rounds they are one.
    _, word, *_ = judged([of(3, equal=True)], [run], least_rounds=least)
    assert word == (SHORT if data else NO)


def test_only_runs_of_one_folder_are_held_against_each_other(run_of):
    def by_seed(runs, *labels):
        (found,) = judging.by_seed(runs, labels).values()
        return found

    ds, md = run_of("DS", [[1]], [1], path="a/DS"), run_of("MD", [[1]], [1])
    ld = run_of("LD", [[1]], [1], path="b/LD")
    for runs, message in (
        ([ds, md], "^not run: LD$"),
        ([md], "^not run: DS and LD$"),
        ([ds, ld], "^no folder of runs has all of DS and LD$"),
    ):
        with pytest.raises(RecordError, match=message):
            by_seed(runs, "DS", "LD")
    near = dataclasses.replace(ld, path="a/LD")
    longer = [run_of(name, [[1], [1]], [1], path=f"c/{name}") for name in ("DS", "LD")]
    assert by_seed([ds, near, *longer], "DS", "LD")["DS"] is longer[0]
    part = {"name": "mnist", "options": {"image_fraction": 0.5}}
    smaller = [dataclasses.replace(run, info={"data": part}) for run in longer]
    assert by_seed([*smaller, ds, near], "DS", "LD")["DS"] is ds
    # Those of a command with two seeds are shorter, and belong together.
    seeds = [
        run_of("DS", [[1]], [1], path=f"two/seed_{k}/DS", settings={"batch_seed": k})
        for k in (0, 1)
    ]
    assert judging.by_seed([longer[0], *seeds], ["DS"])[0]["DS"] is seeds[0]
    # Of two as long, that with more runs beside it, whatever the folders' names are.
    alone = dataclasses.replace(longer[0], path="b/DS")
    assert judging.by_seed([alone, *longer], ["DS"])[0]["DS"] is longer[0]


def test_a_seed_under_which_a_run_ended_early_is_none(run_of):
    def run(label, seed, rounds):
        settings, path = {"batch_seed": seed, "rounds": 3}, f"a/seed_{seed}/{label}"
        return run_of(label, [[1]] * rounds, [1], path=path, settings=settings)

    seeds = [[run("DS", seed, 3), run("MD", seed, 3)] for seed in (0, 1)]
    diverged = [run("DS", 2, 2), run("MD", 2, 3)]
    found = judging.by_seed([*seeds[0], *seeds[1], *diverged], ["DS", "MD"])
    assert list(found) == [0, 1]
    assert list(judging.by_seed(diverged, ["MD"])) == [2]


def test_another_reading_of_the_network_counts_where_there_is_no_other(run_of):
    def run(label, folder, activation, model="mnist_cnn", rounds=3):
        settings = {"model": model, "conv_activation": activation}
        path = f"{folder}/{label}"
        return run_of(label, [[1]] * rounds, [1], path=path, settings=settings)

    linear = run("DS", "a", "none", rounds=1)  # It counts although it is shorter.
    relu = [run(label, "b", "relu") for label in ("DS", "LD")]
    assert judging.by_seed([*relu, linear], ["DS"])[0]["DS"] is linear
    found = judging.by_seed([*relu, linear], ["DS", "LD"])[0]
    assert found == {"DS": relu[0], "LD": relu[1]}
    for runs, word in (([linear], NO), (relu, SHORT)):
        assert judged([of(-3)], runs)[1] == word
    assert judged([of(3, equal=True)], relu)[1] == NO
    # AdaFed's source has ReLU.
    assert not own_reading.other_reading(run("DS", "a", "relu", "keras_mnist_cnn"))
