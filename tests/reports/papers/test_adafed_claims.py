"""AdaFed's claims: verdicts on curves made to fulfil or to break them."""

import dataclasses

import pandas as pd
import pytest

from tff_pmc.reports import paired
from tff_pmc.reports.papers.adafed_claims import CLAIMS
from tff_pmc.reports.papers.claims_of_papers import VERDICTS

FEDAVG, ADAFED, WEIGHTS = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = "AdaFed, weights only, times samples"


@pytest.fixture(autouse=True)
def one_seed_is_enough(monkeypatch):
    """The rules of single claims are tested with a seed or two."""
    monkeypatch.setattr(paired, "MIN_SEEDS", 1)


@pytest.fixture
def make(system_run):
    """A function that makes a run of curves, padded to 20 rounds by their last."""

    def run(system, accuracy, f1=None, *, rounds=20, seed=0, path="", cohort=None):
        def padded(values):
            return [*values, *[values[-1]] * (rounds - len(values))][:rounds]

        made = system_run(system, padded(accuracy))
        made.settings["batch_seed"] = seed
        made.info["settings"]["batch_seed"] = seed
        table = made.rounds
        if f1 is not None:
            table = table.assign(macro_f1=padded(f1))
        return dataclasses.replace(made, rounds=table, path=path, cohort=cohort)

    return run


def verdict(words, **runs):
    """Judges the one claim that says these words."""
    (claim,) = [claim for claim in CLAIMS if words in claim.says]
    assert set(runs) <= set(claim.experiments)
    return claim.judge(runs)


def test_the_claims_are_in_the_papers_order_and_form():
    places = [claim.place for claim in CLAIMS]
    assert places == sorted(places, key=lambda place: place[:5])
    figures = {word for place in places for word in place.split() if word.isdigit()}
    assert figures == set("123456")
    for claim in CLAIMS:
        assert claim.paper == "AdaFed" and claim.says.endswith(".")
        assert isinstance(claim.experiments, tuple)
        number, found, why = claim.judge({})
        assert (number, found) == ("", "undecidable") and "there is no run" in why
        assert found in VERDICTS


def test_ahead_from_the_first_round(make):
    runs = [make(FEDAVG, [0.4]), make(TIMES, [0.5])]
    number, found, why = verdict("ahead of FedAvg from the first", adafed_1=runs)
    assert (number, found) == ("+10.00 points in round 1", "reproduced")
    assert why.endswith("It holds under 1 of 1 seeds.")
    runs = [make(FEDAVG, [0.5]), make(TIMES, [0.5])]
    assert verdict("ahead of FedAvg from", adafed_1=runs)[1] == "not reproduced"


@pytest.mark.parametrize(
    ("reached", "rounds", "number", "expected"),
    [
        (12, 20, "0.8000 in AdaFed's round 2, FedAvg's round 12", "reproduced"),
        (11, 20, "0.8000 in AdaFed's round 2, FedAvg's round 11", "not reproduced"),
        (30, 20, "0.8000 in AdaFed's round 2, none of FedAvg's 20", "reproduced"),
        (30, 3, "0.8000 in AdaFed's round 2, none of FedAvg's 3", "undecidable"),
        (3, 3, "0.8000 in AdaFed's round 2, FedAvg's round 3", "not reproduced"),
    ],
)
def test_the_second_round_against_the_twelfth(make, reached, rounds, number, expected):
    fedavg = make(FEDAVG, [0.5] * (reached - 1) + [0.8], rounds=rounds)
    runs = [fedavg, make(TIMES, [0.7, 0.8, 0.9], rounds=rounds)]
    found = verdict("reaches after twelve", adafed_1=runs)
    assert found[:2] == (number, expected)


def test_the_sixth_client_weighs_most(make):
    cohort = pd.DataFrame(
        {
            "round": [1, 1, 2, 2],
            "client": ["client_1", "client_6"] * 2,
            "ACC": [0.2, 0.6, 0.7, 0.6],
            "weight": [0.25, 0.75, 0.9, 0.1],
        }
    )
    run = make(TIMES, [0.5], cohort=cohort)
    found = verdict("The sixth client", adafed_1=[run])
    assert found[:2] == (
        "accuracy 0.600 in round 1, the others' at most 0.200; weight 0.750, the "
        "others' at most 0.250",
        "reproduced",
    )
    lighter = dataclasses.replace(run, cohort=cohort.assign(weight=0.5))
    assert verdict("The sixth client", adafed_1=[lighter])[1] == "not reproduced"
    turned = dataclasses.replace(run, cohort=cohort.assign(round=[2, 2, 1, 1]))
    assert verdict("The sixth client", adafed_1=[turned])[1] == "not reproduced"
    bare = make(TIMES, [0.5])
    assert verdict("The sixth client", adafed_1=[bare])[1] == "undecidable"


@pytest.mark.parametrize(
    ("weights", "adafed", "rounds", "expected"),
    [
        (0.83, 0.84, 20, "reproduced"),
        (0.81, 0.83, 20, "not reproduced"),
        (0.83, 0.88, 20, "not reproduced"),
        (0.83, 0.83, 19, "undecidable"),
    ],
)
def test_about_three_points_ahead(make, weights, adafed, rounds, expected):
    runs = [
        make(system, [value], rounds=rounds)
        for system, value in ((FEDAVG, 0.8), (WEIGHTS, weights), (ADAFED, adafed))
    ]
    number, found, why = verdict("about 3 %", adafed_2=runs)
    assert found == expected
    assert f"with the loss {100 * (adafed - 0.8):+.2f}" in number
    assert expected != "undecidable" or why == "19 of the 20 rounds were run"


def test_the_loss_converges_faster(make):
    fedavg = make(FEDAVG, [0.5, 0.8])
    fast, slow = [0.5, 0.9], [0.5, 0.5, 0.5, 0.9]
    runs = [fedavg, make(WEIGHTS, slow), make(ADAFED, fast)]
    assert verdict("converges faster", adafed_2=runs)[:2] == (
        "with the loss round 2, weights only round 4",
        "reproduced",
    )
    runs = [fedavg, make(WEIGHTS, fast), make(ADAFED, [0.5])]
    assert verdict("converges faster", adafed_2=runs)[:2] == (
        "with the loss never, weights only round 2",
        "not reproduced",
    )


def test_the_macro_f1_is_highest(make):
    runs = [
        make(FEDAVG, [1], [0.5]),
        make(WEIGHTS, [1], [0.6]),
        make(ADAFED, [1], [0.7]),
    ]
    assert verdict("macro F1 is above", adafed_2=runs)[:2] == (
        "0.7000, weights only 0.6000, FedAvg 0.5000",
        "reproduced",
    )
    runs[1] = make(WEIGHTS, [1], [0.8])
    assert verdict("macro F1 is above", adafed_2=runs)[1] == "not reproduced"
    runs[0] = make(FEDAVG, [1])
    assert verdict("macro F1 is above", adafed_2=runs)[1:] == (
        "undecidable",
        "the runs have no F1 on record",
    )


@pytest.fixture
def of_classes(make, tmp_path):
    """A function that makes a run with the same F1 of each class in two rounds."""

    def run(system, *f1):
        folder = tmp_path / f"{system}{f1}"
        folder.mkdir()
        lines = [f"{n},{c},{value}" for n in (1, 2) for c, value in enumerate(f1)]
        (folder / "class_f1.csv").write_text(
            "round,class,f1\n" + "\n".join([*lines, ""])
        )
        return make(system, [1], [0.5], path=str(folder))

    return run


def test_classes_with_few_images_gain_the_most(make, of_classes):
    def f1(rare):
        return (0.0, rare, 2 * rare, *[0.9] * 7)

    runs = [
        of_classes(system, *f1(rare))
        for system, rare in ((FEDAVG, 0.1), (WEIGHTS, 0.2), (ADAFED, 0.3))
    ]
    assert verdict("few images", adafed_2=runs)[:2] == (
        "0.3000, weights only 0.2000, FedAvg 0.1000",
        "reproduced",
    )
    runs[0] = of_classes(FEDAVG, *f1(0.4))
    assert verdict("few images", adafed_2=runs)[1] == "not reproduced"
    runs[0] = make(FEDAVG, [1])
    assert verdict("few images", adafed_2=runs)[1:] == (
        "undecidable",
        "the runs have no F1 on record",
    )


def test_the_classes_rise_more_evenly(of_classes):
    def run(system, spread):
        return of_classes(system, 0.5 - spread, 0.5 + spread)

    runs = [run(FEDAVG, 0.3), run(WEIGHTS, 0.2), run(ADAFED, 0.1)]
    assert verdict("more evenly", adafed_2=runs)[:2] == (
        "0.1000, weights only 0.2000, FedAvg 0.3000",
        "reproduced",
    )
    runs[2] = run(ADAFED, 0.25)
    assert verdict("more evenly", adafed_2=runs)[1] == "not reproduced"


def test_what_adversaries_change(make):
    def judged(words, system, accuracy, f1, **options):
        return verdict(
            words,
            adafed_2=[make(system, [0.9], [0.9], **options)],
            adafed_3=[make(system, [accuracy], [f1], **options)],
        )

    kept = judged("change AdaFed", ADAFED, 0.9001, 0.89)
    assert kept[:2] == ("+0.01 points of accuracy, -0.0100 of macro F1", "reproduced")
    assert judged("change AdaFed", ADAFED, 0.90, 0.86)[1] == "not reproduced"
    assert judged("change AdaFed", ADAFED, 0.91, 0.90)[1] == "not reproduced"
    dropped = judged("cost FedAvg", FEDAVG, 0.88, 0.8)
    assert dropped[:2] == (
        "-2.00 points of accuracy, -0.1000 of macro F1",
        "reproduced",
    )
    assert judged("cost FedAvg", FEDAVG, 0.88, 0.88)[1] == "not reproduced"
    assert judged("cost FedAvg", FEDAVG, 0.92, 0.8)[1] == "not reproduced"
    assert judged("cost FedAvg", FEDAVG, 0.88, 0.8, rounds=2)[1] == "undecidable"


def test_of_runs_of_different_lengths_the_common_rounds_count(make):
    """A simulation that ran on is not held against one that was cut off."""
    two = make(FEDAVG, [0.4, 0.6, 0.9], [0.4, 0.6, 0.9], rounds=3)
    three = make(FEDAVG, [0.3, 0.5], [0.2, 0.4], rounds=2)
    number, found, why = verdict("cost FedAvg", adafed_2=[two], adafed_3=[three])
    assert number == "-10.00 points of accuracy, -0.2000 of macro F1"
    assert (found, why) == ("undecidable", "2 of the 20 rounds were run")


def test_seeds_that_disagree_decide_nothing(make):
    runs = [
        *(make(FEDAVG, [0.4], seed=0), make(TIMES, [0.5], seed=0)),
        *(make(FEDAVG, [0.4], seed=1), make(TIMES, [0.3], seed=1)),
        make(FEDAVG, [0.4], seed=2),  # AdaFed was not run under it.
    ]
    number, found, why = verdict("from the first round", adafed_1=runs)
    assert (
        number == "seed 0: +10.00 points in round 1; seed 1: -10.00 points in round 1"
    )
    assert found == "undecidable" and why.endswith("It holds under 1 of 2 seeds.")
    agreeing = [run for run in runs if run.settings["batch_seed"] == 0]
    agreeing += [make(FEDAVG, [0.2], seed=3), make(TIMES, [0.3], seed=3)]
    assert verdict("from the first round", adafed_1=agreeing)[1] == "reproduced"


def test_below_five_seeds_nothing_is_decided(make, monkeypatch):
    monkeypatch.undo()

    def of(seeds):
        runs = []
        for seed in range(seeds):
            runs += [make(FEDAVG, [0.4], seed=seed), make(TIMES, [0.5], seed=seed)]
        return verdict("from the first round", adafed_1=runs)

    assert of(5)[1] == "reproduced"
    _, found, why = of(4)
    assert found == "undecidable" and why.endswith("Below 5 nothing is decided.")


def test_the_longest_run_of_a_seed_counts_and_what_has_no_number_is_not_listed(make):
    long = [make(FEDAVG, [0.5]), make(TIMES, [0.6, 0.7])]
    short = [
        make(system, [0.5], rounds=1, seed=seed)
        for system in (FEDAVG, TIMES)
        for seed in (0, 1)
    ]
    for runs in ([*long, *short], [*short, *long]):
        number, found, why = verdict("after twelve", adafed_1=runs)
        assert number.startswith("seed 0: 0.7000 in AdaFed's round 2")
        assert "seed 1" not in number and found == "undecidable"
