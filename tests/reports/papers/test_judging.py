"""The rule of claims, against its own words in NumPy; and whose runs are compared."""

import dataclasses

import numpy as np
import pytest

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports.papers import judging
from tff_pmc.reports.papers.judging import Measure
from tff_pmc.reports.papers.quantities import mean_rounds

# Student's t for five: 2.776; of 1, 2, 3, 4, 5 the half interval is 1.96.
FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)
ZERO = (0.0,) * 5


def by_seed(runs, labels):
    return judging.by_seed(runs, labels).values()


@pytest.mark.parametrize("sign", judging.SIGNS[:-1])
def test_the_interval_of_five_seeds_decides(sign, says_of_five):
    rng, found = np.random.default_rng(1), set()
    for _ in range(300):
        own, base = rng.normal(size=(2, 5)) + [[rng.normal(0, 3)], [0]]
        tolerance = 0 if sign in ("more", "less") else rng.choice([0.5, 2, 4])
        _, verdict, _ = judging.judged([Measure("it", own, base, sign, tolerance)])
        assert verdict == says_of_five(own - base, sign, tolerance), (own, base)
        found.add(verdict)
    assert found == set(judging.VERDICTS)


def test_limits_belong_to_a_tolerance_and_zero_to_neither_sign():
    assert judging.verdict(1.5, 0.5, "none", 2.0) == "reproduced"
    assert judging.verdict(3.0, 1.0, "none", 2.0) == "undecidable"
    for mean, word in ((3, "reproduced"), (6, "undecidable"), (8, "not reproduced")):
        assert judging.verdict(mean, 1.0, "within", within=(2, 6)) == word
    for sign in ("more", "less"):
        assert judging.verdict(0.5, 0.5, sign) == "undecidable"
        assert judging.verdict(float("nan"), 0.5, sign) == "undecidable"


def test_every_measure_has_to_hold():
    good = Measure("good", FIVE, ZERO, "more")
    bad = Measure("bad", FIVE, ZERO, "less")
    open_ = Measure("open", [value - 2 for value in FIVE], ZERO, "more")
    every = "every 95 % interval lies where the claim puts it"
    for measures, answer in (
        ([good, good], ("reproduced", every)),
        ([good, open_, bad], ("not reproduced", "contradicted by bad")),
        ([good, open_], ("undecidable", "left open by open")),
    ):
        assert judging.judged(measures)[1:] == answer


def test_the_number_has_its_interval_and_noise_floor_and_needs_five_seeds():
    number, *_ = judging.judged([Measure("it", FIVE, (2.0, 0, 0, 0, 0), "more")])
    assert number == "it +2.6 ± 2.9 (noise floor 0.6)"
    number, *answer = judging.judged([Measure("it", [2.5], [1.0], "more", digits=2)])
    assert number == "it +1.50"
    assert answer == ["undecidable", "one seed; below five nothing is decided"]
    answer = judging.judged([Measure("it", FIVE[:4], ZERO[:4], "more")])
    assert answer[1:] == ("undecidable", "4 seeds; below five nothing is decided")


@pytest.mark.parametrize(
    ("data", "least", "why"),
    [
        ({"origin": {"source": "INCOMPLETE: a part"}}, 0, "not on the paper's data: I"),
        ({"name": "drawn_x", "origin": {"source": "S"}}, 0, "paper's data: S"),
        ({"options": {"image_fraction": 0.05}}, 0, "on 0.05 of the images"),
        ({}, 4, "after 3 rounds, fewer than 4"),
        ({}, 3, ""),
    ],
)
def test_runs_of_less_than_the_papers_data_decide_nothing(run_of, data, least, why):
    run = run_of("DS", [[1]] * 3, [1], data={"name": "mnist", **data})
    measure = Measure("it", FIVE, ZERO, "more")
    found = judging.judged([measure], [run], least_rounds=least)
    assert found[1] == ("undecidable" if why else "reproduced")
    assert why in found[2]


def test_what_is_missing_is_named(run_of):
    runs = [run_of("DS", [[0]], [1]), run_of("MD", [[1]], [1])]
    with pytest.raises(RecordError, match="^LD was not run$"):
        judging.by_seed(runs, ["DS", "LD"])
    with pytest.raises(RecordError, match="^MD; LD,DS,MD and LD were not run$"):
        judging.by_seed(runs[:1], ["DS", "MD", "LD,DS,MD", "LD"])
    cells = [(70, 10), (70, 20)]
    assert mean_rounds(runs[0], cells) == 1.0  # Its last round.
    with pytest.raises(TooShortError, match="of DS ends in round 1, before 10 % of th"):
        mean_rounds(runs[0], cells, name="DS")


def test_only_runs_of_one_folder_are_held_against_each_other(run_of):
    ds = run_of("DS", [[1]], [1], path="a/DS")
    ld = run_of("LD", [[1]], [1], path="b/LD")
    with pytest.raises(RecordError, match="^no folder of runs has all of DS and LD$"):
        judging.by_seed([ds, ld], ["DS", "LD"])
    near = dataclasses.replace(ld, path="a/LD")
    longer = [run_of(name, [[1], [1]], [1], path=f"c/{name}") for name in ("DS", "LD")]
    (found,) = by_seed([ds, near, *longer], ["DS", "LD"])
    assert found["DS"] is longer[0]
    part = {"name": "mnist", "options": {"image_fraction": 0.5}}
    smaller = [dataclasses.replace(run, info={"data": part}) for run in longer]
    (found,) = by_seed([*smaller, ds, near], ["DS", "LD"])
    assert found["DS"] is ds


def test_another_reading_of_the_network_counts_where_there_is_no_other(run_of):
    """ReLU after PMC's convolutions: its runs are shown and decide nothing."""

    def run(label, folder, activation, rounds=1):
        made = run_of(label, [[1]] * rounds, [1], path=f"{folder}/{label}")
        network = {"model": "mnist_cnn", "conv_activation": activation}
        settings = {**made.settings, **network}
        return dataclasses.replace(made, info={**made.info, "settings": settings})

    linear = run("DS", "a", "none")
    relu = [run(label, "b", "relu", rounds=3) for label in ("DS", "LD")]
    (found,) = by_seed([*relu, linear], ["DS"])
    assert found["DS"] is linear  # Although the others are longer.
    (found,) = by_seed([*relu, linear], ["DS", "LD"])
    assert found == {"DS": relu[0], "LD": relu[1]}
    measure = Measure("it", FIVE, ZERO, "more")
    for runs, verdict in (([linear], "reproduced"), (relu, "undecidable")):
        _, found, why = judging.judged([measure], runs)
        assert found == verdict
        assert ("ReLU after the convolutions" in why) == (runs is relu)
    # AdaFed's source has ReLU.
    keras = {**relu[0].settings, "model": "keras_mnist_cnn"}
    adafed = dataclasses.replace(linear, info={"settings": keras})
    assert not judging.other_reading(adafed)
