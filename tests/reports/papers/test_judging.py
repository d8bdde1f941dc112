"""How claims are judged: the rule, by hand, and the paper's own table fed back."""

import dataclasses

import pytest

from tff_pmc.reports.papers import (
    da_claims,
    da_judges,
    judging,
    pmc_claims,
    pmc_judges,
)
from tff_pmc.reports.papers.judging import LESS, MORE, NONE, Measure
from tff_pmc.reports.record_error import RecordError, TooShortError

# Student's t for five: 2.776; of 1, 2, 3, 4, 5 the half interval is 1.96.
FIVE = (1.0, 2.0, 3.0, 4.0, 5.0)
ZERO = (0.0,) * 5


@pytest.mark.parametrize(
    ("own", "says", "tolerance", "verdict"),
    [
        (FIVE, MORE, 0, "reproduced"),  # 3 ± 1.96 is above 0.
        (FIVE, LESS, 0, "not reproduced"),
        ([value - 2 for value in FIVE], MORE, 0, "undecidable"),  # 1 ± 1.96.
        ([value - 2 for value in FIVE], LESS, 0, "undecidable"),
        ([value - 6 for value in FIVE], LESS, 0, "reproduced"),
        (FIVE, NONE, 5, "reproduced"),  # 4.96 at most.
        (FIVE, NONE, 4, "undecidable"),
        (FIVE, NONE, 1, "not reproduced"),  # 1.04 at least.
        (FIVE[:4], MORE, 0, "undecidable"),  # Four seeds.
        (FIVE[:1], MORE, 0, "undecidable"),
    ],
)
def test_the_interval_of_five_seeds_decides(own, says, tolerance, verdict):
    measure = Measure("it", own, ZERO[: len(own)], says, tolerance)
    assert judging.judged([measure])[1] == verdict


def test_every_measure_has_to_hold():
    good = Measure("good", FIVE, ZERO, MORE)
    bad = Measure("bad", FIVE, ZERO, LESS)
    open_ = Measure("open", [value - 2 for value in FIVE], ZERO, MORE)
    assert judging.judged([good, good])[1] == "reproduced"
    judged = judging.judged([good, open_, bad])
    assert judged[1:] == ("not reproduced", "contradicted by bad")
    assert judging.judged([good, open_])[1:] == ("undecidable", "left open by open")


def test_the_number_has_its_interval_and_noise_floor():
    number, _, why = judging.judged([Measure("it", FIVE, (2.0, 0, 0, 0, 0), MORE)])
    assert number == "it +2.6 ± 2.9 (noise floor 0.6)"
    number, _, why = judging.judged([Measure("it", [2.5], [1.0], MORE)])
    assert number == "it +1.5" and why == "one seed; below five nothing is decided"


def seeded(run, seed, **data):
    info = {**run.info, "settings": {"batch_seed": seed}}
    info["data"] = {**run.info["data"], **data}
    return dataclasses.replace(run, info=info, path=f"runs/seed_{seed}/{run.label}")


@pytest.fixture
def table_4(published_as_runs):
    """A function that makes Table 4's runs at 70 %, the same under several seeds."""

    def make(seeds, **data):
        runs = published_as_runs(4, 70, 301)
        return [seeded(run, seed, **data) for seed in range(seeds) for run in runs]

    return make


def test_the_published_table_reproduces_what_the_text_says_of_it(table_4):
    judge = pmc_judges.Saved(
        ("LD", pmc_judges.cells(70), MORE, "at 70 %"),
        ("MD", pmc_judges.cells(70), MORE, "at 70 %"),
    )
    number, verdict, _ = judge({"mnist_noniid": table_4(5)})
    # The averages of Table 4: 1,56 and 1,89.
    assert number.startswith("LD at 70 % +1.6 ± 0.0") and "MD at 70 % +1.9" in number
    assert verdict == "reproduced"
    assert judge({"mnist_noniid": table_4(4)})[1] == "undecidable"
    # DS,MD,LD is later, by 0,44.
    later = pmc_judges.Saved(("DS,MD,LD", pmc_judges.cells(70), MORE, ""))
    assert later({"mnist_noniid": table_4(5)})[:2] == (
        "DS,MD,LD -0.4 ± 0.0",
        "not reproduced",
    )


@pytest.mark.parametrize(
    ("later", "number", "expected"),
    [(6, "+18.0 ± 0.0", "reproduced"), (5, "+0.0 ± 0.0", "undecidable")],
)
def test_cells_that_lose_rounds_are_counted(run_of, later, number, expected):
    """All have 85 % from round 3 on; DS has 95 % from round 5, one maybe later."""

    def run(label, at_95):
        levels = [0, 0] + [85] * (at_95 - 3) + [95] * (10 - at_95)
        return run_of(label, [[level] * 10 for level in levels], [100] * 10)

    runs = [
        seeded(run(label, later if label == "LD,DS,MD" else 5), seed)
        for seed in range(5)
        for label in ("DS", *pmc_judges.SIX)
    ]
    answer = pmc_judges.more_losses_at_higher_targets({"mnist_noniid": runs})
    assert number in answer[0] and answer[1] == expected


def test_accuracies_are_held_against_the_base_that_is_named(run_of):
    runs = [
        seeded(run_of(label, [[level]] * 4, [100]), seed)
        for seed in range(5)
        for label, level in (("DS", 60), ("CB", 80), ("DS,CB,IS", 70))
    ]
    answers = {
        base: pmc_judges.Accuracy(("DS,CB,IS",), MORE, judging.second_half, base=base)(
            {"celeba": runs}
        )
        for base in ("DS", "CB")
    }
    assert answers["DS"][0].startswith("DS,CB,IS points +10.0")
    assert answers["DS"][1] == "reproduced"
    assert answers["CB"][0].startswith("DS,CB,IS points -10.0")
    assert answers["CB"][1] == "not reproduced"


def test_runs_on_other_data_decide_nothing(table_4):
    judge = pmc_judges.Saved(("LD", pmc_judges.cells(70), MORE, ""))
    runs = table_4(5, origin={"source": "INCOMPLETE: a part"})
    _, verdict, why = judge({"mnist_noniid": runs})
    assert verdict == "undecidable" and "INCOMPLETE: a part" in why


def test_pmcs_and_das_claims_are_in_their_sections_order():
    for claims in (da_claims.CLAIMS, pmc_claims.CLAIMS):
        sections = [claim.place.split(",")[0] for claim in claims]
        assert sections == sorted(sections, key=_section)


def _section(place):
    """Its numbers; Table 7, of all of section 6, is with what 6.1 says of CelebA."""
    numbers = [int(part) for part in place.split()[1].split(".")]
    return numbers if len(numbers) > 1 else [*numbers, 1]


def test_what_is_missing_is_named(table_4):
    runs = [run for run in table_4(2) if run.label != "LD"]
    judge = pmc_judges.Saved(("LD", pmc_judges.cells(70), MORE, ""))
    with pytest.raises(RecordError, match="^LD was not run$"):
        judge({"mnist_noniid": runs})
    only_ds = [run for run in runs if run.label == "DS"]
    with pytest.raises(RecordError, match="^MD; LD,DS,MD and LD were not run$"):
        judging.by_seed(only_ds, ["DS", "MD", "LD,DS,MD", "LD"])
    # At 80 % none of these runs arrives.
    judge = pmc_judges.Saved(("MD", pmc_judges.cells(80), MORE, ""))
    with pytest.raises(RecordError, match="before 10 % of the devices reach 80 %"):
        judge({"mnist_noniid": runs})


def test_only_runs_of_one_folder_are_held_against_each_other(run_of):
    ds = run_of("DS", [[1]], [1], path="a/DS")
    ld = run_of("LD", [[1]], [1], path="b/LD")
    with pytest.raises(RecordError, match="^no folder of runs has all of DS and LD$"):
        judging.by_seed([ds, ld], ["DS", "LD"])
    longer = [run_of(name, [[1], [1]], [1], path=f"c/{name}") for name in ("DS", "LD")]
    near = dataclasses.replace(ld, path="a/LD")
    (found,) = judging.by_seed([ds, near, *longer], ["DS", "LD"])
    assert found["DS"] is longer[0]


def test_other_epochs_are_held_against_runs_of_their_length(from_rounds):
    """E = 1 arrives two rounds later; a run of other rounds is not its pair."""

    def run(epochs, start, rounds, seed):
        found = seeded(from_rounds("DS", range(start, start + 9), 75, rounds), seed)
        settings = {"batch_seed": seed, "local_epochs": epochs, "batch_size": 10}
        return dataclasses.replace(found, info={**found.info, "settings": settings})

    pairs = [run(*own, 20, seed) for seed in range(5) for own in ((5, 1), (1, 3))]
    longer = [run(5, 9, 30, seed) for seed in range(5)]
    answer = da_judges.epochs_and_batches({"femnist": [*pairs, *longer]})
    assert answer[:2] == ("Low at 75 %, over E = 1, B = 10 +2.0 ± 0.0", "reproduced")
    with pytest.raises(RecordError, match="the seed and the rounds of the one with E"):
        da_judges.epochs_and_batches({"femnist": [*longer, run(1, 3, 20, 0)]})
    late = [run(5, 30, 20, 0), run(1, 3, 20, 0)]
    with pytest.raises(TooShortError, match="of DS ends in round 20"):
        da_judges.epochs_and_batches({"femnist": late})


def test_the_best_of_some_orderings_is_held_against_the_best_other(from_rounds):
    """Ten devices one after another; only Md, Ds, Ld is sooner, by two rounds."""
    runs = [
        seeded(from_rounds(label, range(start, start + 9), 75, 20), seed)
        for seed in range(5)
        for label in da_judges.SIX
        for start in [1 if label == "MD,DS,LD" else 3]
    ]
    number, verdict, _ = da_judges.best_in_high({"femnist": runs})
    assert (number[:37], verdict) == (
        "High at 75 %, over the best other +2.",
        "reproduced",
    )
    assert da_judges.ds_first({"femnist": runs})[1] != "reproduced"


@pytest.mark.parametrize(("ds", "expected"), [(1, "reproduced"), (4, "not reproduced")])
def test_the_best_criterion_alone_depends_on_the_share(from_rounds, ds, expected):
    """LD is the first at the last three devices; at the six before DS may be."""
    arrivals = {
        "DS": [ds] * 6 + [18] * 3,
        "MD": [3] * 6 + [18] * 3,
        "LD": [3] * 6 + [9] * 3,
    }
    runs = [
        seeded(from_rounds(label, line, 80, 20), seed)
        for seed in range(5)
        for label, line in arrivals.items()
    ]
    number, verdict, _ = da_judges.best_alone({"femnist": runs})
    assert f"DS Low at 75 %, over the best other {3 - ds:+.1f}" in number
    assert "LD High at 75 %, over the best other +9.0" in number
    assert verdict == expected


@pytest.mark.parametrize(
    ("best", "expected"), [("MD,DS,LD", "reproduced"), ("DS,LD,MD", "not reproduced")]
)
def test_the_best_start_is_held_against_the_five_others(from_rounds, best, expected):
    runs = [
        seeded(from_rounds(label, [start] * 9, 80, 20), seed)
        for seed in range(5)
        for label in da_judges.STARTS
        for start in [3 if label.startswith(best) else 5]
    ]
    answer = da_judges.best_start({"femnist": runs})
    sign = "+" if expected == "reproduced" else "-"
    assert answer[0].startswith(f"Low at 75 %, over the best other {sign}2.0")
    assert answer[1] == expected


def test_no_accuracy_above_80_in_the_rounds_that_da_allows(from_rounds):
    """Nine of ten devices have it all: 71.1 % together, or 90 %."""

    def judged(level, rounds):
        runs = [
            seeded(from_rounds("DS", [1] * 9, level, rounds), seed) for seed in range(5)
        ]
        return da_judges.nothing_above({"femnist": runs})

    assert judged(79, 1000)[:2] == (
        "highest minus 80, points -8.9 ± 0.0",
        "reproduced",
    )
    assert judged(100, 1000)[1] == "not reproduced"
    with pytest.raises(RecordError, match="ends in round 40, not 1000"):
        judged(79, 40)


def test_no_round_tests_more_than_there_are_orderings(run_of):
    run = run_of("MD,DS,LD (backtracking)", [[1], [1]], [1])
    run = dataclasses.replace(
        run,
        adjustment="backtracking",
        rounds=run.rounds.assign(testing_rounds=[1, 6]),
        info={"settings": {"priority": ["MD", "DS", "LD"]}, "data": {}},
    )
    answer = da_judges.testing_rounds({"femnist": [run]})
    assert answer[:2] == ("6 at most, of 6 possible", "reproduced")
    more = dataclasses.replace(run, rounds=run.rounds.assign(testing_rounds=[1, 7]))
    assert da_judges.testing_rounds({"femnist": [more]})[1] == "not reproduced"
