"""AdaFed's claims: verdicts on curves made to fulfil or to break them."""

import dataclasses

import pandas as pd
import pytest

from tff_pmc.reports import paired
from tff_pmc.reports.papers.claim_tables import claims

FEDAVG, ADAFED, WEIGHTS = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = "AdaFed, weights only, times samples"
THREE = FEDAVG, WEIGHTS, ADAFED


@pytest.fixture(autouse=True)
def one_seed_is_enough(monkeypatch):
    """The rules of single claims are tested with a seed or two."""
    monkeypatch.setattr(paired, "MIN_SEEDS", 1)


@pytest.fixture
def make(system_run, tmp_path):
    """A function that makes a run of curves, padded to 20 rounds by their last.

    Of F1 there is one value, in each round the macro F1, or one for each class.
    """

    def run(system, accuracy, f1=None, *, rounds=20, seed=0, experiment="2"):
        def padded(values):
            values = values if isinstance(values, list) else [values]
            return [*values, *[values[-1]] * (rounds - len(values))][:rounds]

        made = system_run(system, padded(accuracy), experiment=f"adafed_{experiment}")
        made.info["settings"]["batch_seed"] = seed
        if f1 is None:
            return made
        classes = f1 if isinstance(f1, tuple) else (0.5,)
        folder = tmp_path / f"{system}{experiment}{f1}"
        folder.mkdir(exist_ok=True)
        lines = [f"{n},{c},{value}" for n in (1, 2) for c, value in enumerate(classes)]
        (folder / "class_f1.csv").write_text("\n".join(["round,class,f1", *lines, ""]))
        table = made.rounds.assign(macro_f1=padded(f1) if f1 != classes else 0.5)
        return dataclasses.replace(made, rounds=table, path=str(folder))

    return run


def verdict(words, *runs):
    """Judges the one claim that says these words."""
    (claim,) = [claim for claim in claims("AdaFed") if words in claim.says]
    return claim.judge(
        {
            name: [run for run in runs if run.settings["experiment"] == name]
            for name in claim.experiments
        }
    )


def evenly(spread):
    return 0.5 - spread, 0.5 + spread


def rare(level):
    return 0.0, level, 2 * level, *[0.9] * 7


SHORT, NO_F1 = "19 of the 20 rounds were run", "the runs have no F1 on record"
# Words of the claim; accuracy, or accuracy and F1, of FedAvg, weights only and AdaFed;
# what the number has; the verdict, or why there is none.
CASES = [
    ("about 3 %", (0.8, 0.83, 0.84), "only +3.00 points, with the loss +4.00", True),
    ("about 3 %", (0.8, 0.81, 0.83), "", False),
    ("about 3 %", (0.8, 0.83, 0.88), "", False),
    (
        "converges faster",
        ([0.5, 0.8], [0.5, 0.5, 0.5, 0.9], [0.5, 0.9]),
        "with the loss round 2, weights only round 4",
        True,
    ),
    (
        "converges faster",
        ([0.5, 0.8], [0.5, 0.9], 0.5),
        "with the loss never, weights only round 2",
        False,
    ),
    ("converges faster", ([0.5, 0.8], [0.5, 0.9], [0.5, 0.9]), "only round 2", False),
    (
        "macro F1 is above",
        ((1, 0.5), (1, 0.6), (1, 0.7)),
        "0.7000, weights only 0.6000, FedAvg 0.5000",
        True,
    ),
    ("macro F1 is above", ((1, 0.5), (1, 0.8), (1, 0.7)), "", False),
    ("macro F1 is above", ((1, None), (1, 0.6), (1, 0.7)), "", NO_F1),
    (
        "few images",
        ((1, rare(0.1)), (1, rare(0.2)), (1, rare(0.3))),
        "0.3000, weights only 0.2000, FedAvg 0.1000",
        True,
    ),
    ("few images", ((1, rare(0.4)), (1, rare(0.2)), (1, rare(0.3))), "", False),
    ("few images", ((1, None), (1, rare(0.2)), (1, rare(0.3))), "", NO_F1),
    (
        "more evenly",
        ((1, evenly(0.3)), (1, evenly(0.2)), (1, evenly(0.1))),
        "0.1000, weights only 0.2000, FedAvg 0.3000",
        True,
    ),
    ("evenly", ((1, evenly(0.3)), (1, evenly(0.2)), (1, evenly(0.25))), "", False),
]


@pytest.mark.parametrize(("words", "curves", "number", "expected"), CASES)
def test_the_second_simulation(make, words, curves, number, expected):
    def judged(**options):
        curve = [one if isinstance(one, tuple) else (one,) for one in curves]
        runs = [make(name, *one, **options) for name, one in zip(THREE, curve)]
        return verdict(words, *runs)

    text, found, why = judged()
    assert number in text
    if isinstance(expected, str):
        assert (found, why) == ("undecidable", expected)
    else:
        assert found == ("reproduced" if expected else "not reproduced")
        assert why.endswith(f"It holds under {int(expected)} of 1 seeds.")
        assert judged(rounds=19)[1:] == ("undecidable", SHORT)


@pytest.mark.parametrize(
    ("words", "system", "accuracy", "f1", "expected"),
    [
        ("change AdaFed", ADAFED, 0.9001, 0.89, "reproduced"),
        ("change AdaFed", ADAFED, 0.90, 0.86, "not reproduced"),
        ("change AdaFed", ADAFED, 0.91, 0.90, "not reproduced"),
        ("cost FedAvg", FEDAVG, 0.88, 0.8, "reproduced"),
        ("cost FedAvg", FEDAVG, 0.88, 0.88, "not reproduced"),
        ("cost FedAvg", FEDAVG, 0.92, 0.8, "not reproduced"),
    ],
)
def test_what_adversaries_change(make, words, system, accuracy, f1, expected):
    """Of runs of different lengths the rounds that both have count."""
    before = make(system, 0.9, 0.9)
    number, found, _ = verdict(
        words, before, make(system, accuracy, f1, experiment="3")
    )
    points = f"{100 * (accuracy - 0.9):+.2f} points of accuracy"
    assert number == f"{points}, {f1 - 0.9:+.4f} of macro F1" and found == expected
    cut = make(system, [0.3, accuracy], [0.3, f1], rounds=2, experiment="3")
    number, *answer = verdict(words, make(system, [0.3, 0.9, 1], [0.3, 0.9, 1]), cut)
    assert number.startswith(f"{50 * (accuracy - 0.9):+.2f}")
    assert answer == ["undecidable", "2 of the 20 rounds were run"]


def test_ahead_from_the_first_round_under_all_seeds_of_both(make, monkeypatch):
    def judged(*pairs):
        runs = [
            make(system, level, seed=seed, experiment="1")
            for seed, pair in enumerate(pairs)
            for system, level in zip((FEDAVG, TIMES), pair)
        ]
        return verdict("ahead of FedAvg from the first", *runs)

    number, found, _ = judged((0.4, 0.5), (0.4, 0.3), (0.2,))
    one, other = "seed 0: +10.00 points in round 1", "seed 1: -10.00 points in round 1"
    assert (number, found) == (f"{one}; {other}", "undecidable")
    assert judged((0.5, 0.5))[1] == "not reproduced"
    assert judged((0.4,))[1:] == (
        "undecidable",
        f"there is no run of {TIMES} in adafed_1",
    )
    monkeypatch.undo()
    assert judged(*[(0.4, 0.5)] * 5)[1] == "reproduced"
    _, found, why = judged(*[(0.4, 0.5)] * 4)
    assert found == "undecidable" and why.endswith("Below 5 nothing is decided.")


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
    """The longest run of a seed counts, and what has no number is not listed."""
    options = {"rounds": rounds, "experiment": "1"}
    fedavg = make(FEDAVG, [*[0.5] * (reached - 1), 0.8], **options)
    own = make(TIMES, [0.7, 0.8, 0.9], **options)
    short = [make(system, 0.5, rounds=1, experiment="1") for system in (FEDAVG, TIMES)]
    for runs in ([fedavg, own, *short], [*short, fedavg, own]):
        assert verdict("reaches after twelve", *runs)[:2] == (number, expected)
    others = [
        make(system, 0.5, rounds=1, seed=1, experiment="1")
        for system in (FEDAVG, TIMES)
    ]
    text, found, _ = verdict("reaches after twelve", fedavg, own, *others)
    assert (text, found) == (f"seed 0: {number}", "undecidable")


def test_the_sixth_client_weighs_most(make):
    cohort = pd.DataFrame(
        {
            "round": [1, 1, 2, 2],
            "client": ["client_1", "client_6"] * 2,
            "ACC": [0.2, 0.6, 0.7, 0.6],
            "weight": [0.25, 0.75, 0.9, 0.1],
        }
    )
    run = make(TIMES, 0.5, experiment="1")
    number = (
        "accuracy 0.600 in round 1, the others' at most 0.200; weight 0.750, the "
        "others' at most 0.250"
    )
    for table, expected in (
        (cohort, "reproduced"),
        (cohort.assign(weight=0.5), "not reproduced"),
        (cohort.assign(round=[2, 2, 1, 1]), "not reproduced"),
        (None, "undecidable"),
    ):
        run = dataclasses.replace(run, cohort=table)
        text, found, _ = verdict("The sixth client", run)
        assert found == expected and (table is not cohort or text == number)
