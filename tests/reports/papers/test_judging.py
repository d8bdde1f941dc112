"""How claims are judged: the rule, by hand, and the paper's own table fed back."""

import dataclasses

import pytest

from tff_pmc.reports.papers import da_judges, judging, pmc_judges
from tff_pmc.reports.papers.judging import LESS, MORE, NONE, Measure
from tff_pmc.reports.record_error import RecordError

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
    assert judging.judged([good, open_, bad])[1:] == ("not reproduced", "by bad")
    assert judging.judged([good, open_])[1:] == ("undecidable", "by open")


def test_the_number_has_its_interval_and_noise_floor():
    number, _, why = judging.judged([Measure("it", FIVE, (2.0, 0, 0, 0, 0), MORE)])
    assert number == "it +2.6 ± 2.9 (noise floor 1.3)"
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
        "DS,MD,LD -0.4 ± 0.0 (noise floor 0.0)",
        "not reproduced",
    )


def test_runs_on_other_data_decide_nothing(table_4):
    judge = pmc_judges.Saved(("LD", pmc_judges.cells(70), MORE, ""))
    runs = table_4(5, origin={"source": "INCOMPLETE: a part"})
    _, verdict, why = judge({"mnist_noniid": runs})
    assert verdict == "undecidable" and "INCOMPLETE: a part" in why


def test_what_is_missing_is_named(table_4):
    runs = [run for run in table_4(2) if run.label != "LD"]
    judge = pmc_judges.Saved(("LD", pmc_judges.cells(70), MORE, ""))
    with pytest.raises(RecordError, match="no run of LD is kept"):
        judge({"mnist_noniid": runs})
    # At 80 % none of these runs arrives.
    judge = pmc_judges.Saved(("MD", pmc_judges.cells(80), MORE, ""))
    with pytest.raises(RecordError, match="before 10 % of the devices reach 80 %"):
        judge({"mnist_noniid": runs})


def test_only_runs_of_one_folder_are_held_against_each_other(run_of):
    ds = run_of("DS", [[1]], [1], path="a/DS")
    ld = run_of("LD", [[1]], [1], path="b/LD")
    with pytest.raises(RecordError, match="beside the others"):
        judging.by_seed([ds, ld], ["DS", "LD"])
    longer = [run_of(name, [[1], [1]], [1], path=f"c/{name}") for name in ("DS", "LD")]
    near = dataclasses.replace(ld, path="a/LD")
    (found,) = judging.by_seed([ds, near, *longer], ["DS", "LD"])
    assert found["DS"] is longer[0]


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
