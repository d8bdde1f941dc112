"""AdaFed's claims: verdicts on curves made to fulfil or to break them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports.papers.claim_tables import claims

FEDAVG, ADAFED, WEIGHTS = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = "AdaFed, weights only, times samples"


@pytest.fixture
def make(system_run, tmp_path):
    """A function that makes a run of curves, padded to 20 rounds by their last.

    Of F1 there is one value, in each round the macro F1, or one for each class.
    """

    def run(system, accuracy, f1=None, *, rounds=20, seed=0, experiment="2", **parts):
        values = [*np.atleast_1d(accuracy)]
        values = [*values, *[values[-1]] * (rounds - len(values))][:rounds]
        made = system_run(system, values, experiment=f"adafed_{experiment}")
        made.info["settings"]["batch_seed"] = seed
        folder = tmp_path / experiment / f"{seed}" / system
        folder.mkdir(parents=True, exist_ok=True)
        table = made.rounds
        if isinstance(f1, tuple):
            rows = [f"{n},{c},{v}" for n in (1, 2) for c, v in enumerate(f1)]
            text = "\n".join(["round,class,f1", *rows, ""])
            (folder / "class_f1.csv").write_text(text)
        if f1 is not None:
            table = table.assign(macro_f1=0.5 if isinstance(f1, tuple) else f1)
        return dataclasses.replace(made, rounds=table, path=str(folder), **parts)

    return run


def judged(words, runs):
    """Judges the one claim that says these words."""
    (claim,) = [claim for claim in claims("AdaFed") if words in claim.says]
    of = {name: [] for name in claim.experiments}
    for run in runs:
        of[run.settings["experiment"]].append(run)
    return claim.judge(of)


def evenly(spread):
    return 1, (0.5 - spread, 0.5 + spread)


def rare(level):
    return 1, (0.0, level, 2 * level, *[0.9] * 7)


YES, NO, OPEN = "reproduced", "not reproduced", "undecidable"
ONLY = "AdaFed, weights only"
# Words of the claim; accuracy, or accuracy and F1, of FedAvg, weights only and AdaFed;
# our number without its intervals; the verdict.
CASES = [
    ("about 3 %", (0.8, 0.83, 0.84),
     f"{ONLY} minus FedAvg, points +3.00; AdaFed minus FedAvg, points +4.00", YES),
    ("about 3 %", (0.8, 0.81, 0.83), "", NO),
    ("about 3 %", (0.8, 0.83, 0.88), "", NO),
    ("converges faster", ([0.5, 0.8], [0.5, 0.5, 0.5, 0.9], [0.5, 0.9]),
     "rounds saved +2.00", YES),
    ("converges faster", ([0.5, 0.8], [0.5, 0.9], 0.5), "rounds saved -19.00", NO),
    ("converges faster", ([0.5, 0.8], [0.5, 0.9], [0.5, 0.9]), "saved +0.00", OPEN),
    ("macro F1 is above", ((1, 0.5), (1, 0.6), (1, 0.7)),
     f"minus {ONLY}, hundredths of F1 +10.00; minus FedAvg, hundredths of F1 +20.00",
     YES),
    ("macro F1 is above", ((1, 0.5), (1, 0.8), (1, 0.7)), "", NO),
    ("few images", (rare(0.1), rare(0.2), rare(0.3)),
     f"minus {ONLY} +0.1000; minus FedAvg +0.2000", YES),
    ("few images", (rare(0.4), rare(0.2), rare(0.3)), "", NO),
    ("more evenly", (evenly(0.3), evenly(0.2), evenly(0.1)),
     f"AdaFed minus {ONLY} -0.1000; {ONLY} minus FedAvg -0.1000", YES),
    ("more evenly", (evenly(0.3), evenly(0.2), evenly(0.25)), "", NO),
]  # fmt: skip


@pytest.mark.parametrize(("words", "curves", "number", "verdict"), CASES)
def test_the_second_simulation(make, words, curves, number, verdict):
    def runs(**options):
        for seed in range(5):
            for name, one in zip((FEDAVG, WEIGHTS, ADAFED), curves):
                own = one if isinstance(one, tuple) else (one,)
                yield make(name, *own, seed=seed, **options)

    text, found, _ = judged(words, runs())
    for part in number.split("; "):
        assert part in text
    assert found == verdict
    try:
        assert judged(words, runs(rounds=19))[1] == OPEN
    except TooShortError as error:
        assert "ends in round 19, not 20" in str(error)


@pytest.mark.parametrize("words", ["macro F1 is above", "few images", "more evenly"])
def test_runs_without_f1_are_named(make, words):
    runs = [make(name, 1) for name in (FEDAVG, WEIGHTS, ADAFED)]
    with pytest.raises(RecordError, match="^the run of .* on record$"):
        judged(words, runs)


@pytest.mark.parametrize(
    ("words", "system", "accuracy", "f1", "expected"),
    [
        ("change AdaFed", ADAFED, 0.9001, 0.89, YES),
        ("change AdaFed", ADAFED, 0.90, 0.86, NO),
        ("change AdaFed", ADAFED, 0.91, 0.90, NO),
        ("cost FedAvg", FEDAVG, 0.88, 0.8, YES),
        ("cost FedAvg", FEDAVG, 0.88, 0.88, NO),
        ("cost FedAvg", FEDAVG, 0.92, 0.8, NO),
    ],
)
def test_what_adversaries_change(make, words, system, accuracy, f1, expected):
    runs = [
        make(system, level, own, seed=seed, experiment=experiment)
        for experiment, level, own in (("2", 0.9, 0.9), ("3", accuracy, f1))
        for seed in range(5)
    ]
    number, found, _ = judged(words, runs)
    assert f"accuracy lost {100 * (0.9 - accuracy):+.2f} ± 0.00" in number
    assert f"F1 lost {100 * (0.9 - f1):+.2f} ± 0.00" in number and found == expected
    with pytest.raises(RecordError, match="adafed_2 and adafed_3 have no seed in comm"):
        judged(words, [runs[0], runs[-1]])


def test_ahead_from_the_first_round(make):
    def of(*levels):
        pairs = enumerate(levels)
        return [
            make(system, level, seed=seed, experiment="1")
            for seed, own in pairs
            for system, level in ((FEDAVG, 0.4), (TIMES, own))
        ]

    words = "ahead of FedAvg from the first"
    assert judged(words, of(*5 * [0.5]))[:2] == ("points in round 1 +10.00 ± 0.00", YES)
    assert judged(words, of(*5 * [0.3]))[1] == NO
    assert judged(words, of(0.5, 0.5, 0.5, 0.5))[1] == OPEN
    with pytest.raises(RecordError, match=f"^{TIMES} was not run$"):
        judged(words, of(0.5)[:1])


@pytest.mark.parametrize(
    ("reached", "rounds", "number", "verdict"),
    [
        (12, 20, "less than twelve +0.00", YES),
        (11, 20, "less than twelve +1.00", NO),
        (30, 20, "less than twelve -9.00", YES),
        (3, 3, "less than twelve +9.00", NO),
        (30, 3, "ends in round 3, before it has the accuracy of AdaFed", OPEN),
    ],
)
def test_the_second_round_against_the_twelfth(make, reached, rounds, number, verdict):
    options = {"rounds": rounds, "experiment": "1"}
    runs = []
    for seed in range(5):
        line = [*[0.5] * (reached - 1), 0.8]
        runs += [make(FEDAVG, line, seed=seed, **options)]
        runs += [make(TIMES, [0.7, 0.8, 0.9], seed=seed, **options)]
    if verdict == OPEN:
        with pytest.raises(TooShortError, match=number):
            judged("reaches after twelve", runs)
    else:
        text, found, _ = judged("reaches after twelve", runs)
        assert number in text and found == verdict


def test_the_sixth_client_weighs_most(make):
    cohort = pd.DataFrame(
        {
            "round": [1, 1, 2, 2],
            "client": ["client_1", "client_6"] * 2,
            "ACC": [0.2, 0.6, 0.7, 0.6],
            "weight": [0.25, 0.75, 0.9, 0.1],
        }
    )

    def of(table):
        runs = (make(TIMES, 1, seed=k, experiment="1", cohort=table) for k in range(5))
        return judged("The sixth client", runs)[:2]

    assert of(cohort) == ("accuracy +0.40 ± 0.00; weight +0.50 ± 0.00", YES)
    assert of(cohort.assign(weight=0.5))[1] == OPEN
    assert of(cohort.assign(round=[2, 2, 1, 1]))[1] == NO
    with pytest.raises(RecordError, match="cohort.csv of AdaFed"):
        of(None)
