"""AdaFed's claims: verdicts on curves made to fulfil or to break them."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from tff_pmc.record.record_error import RecordError, TooShortError
from tff_pmc.reports.papers.claim_tables import claims
from tff_pmc.reports.papers.judging import VERDICTS

FEDAVG, ADAFED, ONLY = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = f"{ONLY}, times samples"
YES, NO, OPEN, SHORT = VERDICTS[:4]


@pytest.fixture
def make(system_run, tmp_path):
    """A function that makes a run of curves, padded to 20 rounds by their last.

    Of F1 there is one value, in each round the macro F1, or one for each class.
    """

    def run(system, accuracy, f1=None, *, rounds=20, seed=0, experiment=2, **parts):
        values = [*np.atleast_1d(accuracy)]
        values = [*values, *[values[-1]] * (rounds - len(values))][:rounds]
        made = system_run(system, values, experiment=f"adafed_{experiment}")
        made.info["settings"]["batch_seed"] = seed
        folder = tmp_path / f"{experiment}" / f"{seed}" / system
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
    """Our number and the verdict on the one claim that says these words."""
    (claim,) = [one for one in claims("AdaFed") if words in " ".join(one.says.split())]
    of = {name: [] for name in claim.experiments}
    for run in runs:
        of[run.settings["experiment"]].append(run)
    return claim.judge(of)[:2]


def even(spread):
    return 1, (0.5 - spread, 0.5 + spread)


def rare(*levels):
    return 1, (*levels, *[0.9] * 7)


def late(start):
    return [start, *[0.5] * 7, 0.9]


# Words of the claim; accuracy, or accuracy and F1, of FedAvg, weights only and AdaFed;
# a part of our number; the verdict.
CASES = [
    ("about 3 %", (0.8, 0.83, 0.84), "AdaFed minus FedAvg, points +4.00", YES),
    ("about 3 %", (0.8, 0.81, 0.83), "points +1.00", NO),
    ("about 3 %", (0.8, 0.83, 0.88), "points +8.00", NO),
    # Round 1 is not of it, 2 to 10 are, and the later ones are not.
    ("converges faster", (0.5, late(0.9), [0.1, *[0.6] * 8]), "+1.11", YES),
    ("converges faster", (0.5, [0.1, *[0.6] * 9], late(0.9)), "-1.11", NO),
    ("converges faster", (0.5, [0.5] * 10 + [0.1], [0.4] + [0.5] * 10), "+0.00", OPEN),
    ("macro F1 is above", ((1, 0.5), (1, 0.6), (1, 0.7)), "minus FedAvg, hundredths of "
     "F1 +20.00", YES),
    ("macro F1 is above", ((1, 0.5), (1, 0.8), (1, 0.7)), "of F1 -10.00", NO),
    ("few images", (rare(0, 0, 0), rare(0.1, 0.1, 0.1), rare(0.3, 0.2, 0.2)),
     "class 0, minus weights only +0.200", YES),
    # One class alone, with the mean of the three in its favour.
    ("few images", (rare(0, 0.3, 0), rare(0, 0, 0), rare(0.9, 0.2, 0.2)),
     "class 1, minus FedAvg -0.100", NO),
    ("more evenly", (even(0.3), even(0.2), even(0.1)), "AdaFed minus AdaFed, weights "
     "only -0.1000", YES),
    ("more evenly", (even(0.3), even(0.2), even(0.25)), "", NO),
]  # fmt: skip


@pytest.mark.parametrize(("words", "curves", "number", "verdict"), CASES)
def test_the_second_simulation(make, words, curves, number, verdict):
    def runs(seeds=5, f1=True, **options):
        for seed in range(seeds):
            for name, one in zip((FEDAVG, ONLY, ADAFED), curves):
                own = one[: 1 + f1] if isinstance(one, tuple) else (one,)
                yield make(name, *own, seed=seed, **options)

    text, found = judged(words, runs())
    assert number in text and found == verdict
    assert judged(words, runs(seeds=4))[1] == SHORT
    try:
        assert (judged(words, runs(rounds=9))[1]) == SHORT
    except TooShortError as error:
        assert "ends in round 9, not " in str(error)
    if isinstance(curves[0], tuple):
        with pytest.raises(RecordError, match="^the run of .* on record$"):
            judged(words, [*runs(f1=False)])


BEFORE = {FEDAVG: 0.8, ADAFED: 0.9}


# Words; accuracy and F1 of FedAvg and AdaFed with adversaries, .8 and .9 without; the
# first of our numbers; the verdict.
@pytest.mark.parametrize(
    ("words", "fedavg", "adafed", "number", "verdict"),
    [
        ("change AdaFed by about", (0.1, 0.1), (0.89, 0.89), "lost +1.00 ±", YES),
        ("change AdaFed by about", (0.8, 0.8), (0.87, 0.89), "lost +3.00 ±", NO),
        ("change AdaFed by about", (0.8, 0.8), (0.91, 0.86), "lost -1.00 ±", NO),
        ("cost FedAvg about", (0.78, 0.7), (0.1, 0.1), "lost +2.00 ±", YES),
        ("cost FedAvg about", (0.78, 0.78), (0.9, 0.9), "lost +2.00 ±", NO),
        ("AdaFed less than FedAvg", (0.7, 0.6), (0.85, 0.85), "accuracy +5.00 ±", YES),
        ("AdaFed less than FedAvg", (0.7, 0.8), (0.85, 0.85), "F1 -5.00 ±", NO),
        ("AdaFed less than FedAvg", (0.75, 0.7), (0.8, 0.8), "accuracy -5.00 ±", NO),
    ],
)
def test_what_adversaries_change(make, words, fedavg, adafed, number, verdict):
    """They are on record from round 16 on, where the end begins."""
    before = [make(x, y, y, seed=k) for x, y in BEFORE.items() for k in range(5)]
    after = [
        make(name, [0.3] * 15 + [level], 0.3, seed=seed, experiment=3)
        for name, (level, _) in ((FEDAVG, fedavg), (ADAFED, adafed))
        for seed in range(5)
    ]
    for run in after:
        f1 = fedavg[1] if run.label == FEDAVG else adafed[1]
        run.rounds.loc[15:, "macro_f1"] = f1
    runs = [*before, *after]
    text, found = judged(words, runs)
    assert number in text and found == verdict
    with pytest.raises(RecordError, match="adafed_. and adafed_. have no seed in comm"):
        judged(words, [*before[::5], *after[1::5]])


def test_ahead_from_the_first_round(make):
    def of(*levels):
        return [
            make(system, [level, 0.9], seed=seed, experiment=1, rounds=3)
            for seed, own in enumerate(levels)
            for system, level in ((FEDAVG, 0.4), (TIMES, own))
        ]

    words = "ahead of FedAvg from the first"
    assert judged(words, of(*5 * [0.5])) == ("points in round 1 +10.00 ± 0.00", YES)
    assert judged(words, of(*5 * [0.3]))[1] == NO
    assert judged(words, of(0.5, 0.5, 0.5, 0.5))[1] == SHORT
    with pytest.raises(RecordError, match=f"^{TIMES} was not run$"):
        judged(words, of(0.5)[:1])


@pytest.mark.parametrize(
    ("reached", "rounds", "number", "verdict"),
    [
        (12, 20, "less than twelve +0.00", YES),
        (11, 20, "less than twelve +1.00", NO),
        (30, 20, "less than twelve -9.00", YES),
        (3, 3, "less than twelve +9.00", NO),
        (30, 3, "", SHORT),
    ],
)
def test_the_second_round_against_the_twelfth(make, reached, rounds, number, verdict):
    options, runs = {"rounds": rounds, "experiment": 1}, []
    for seed in range(5):
        line = [*[0.5] * (reached - 1), 0.8]
        runs += [make(FEDAVG, line, seed=seed, **options)]
        runs += [make(TIMES, [0.7, 0.8, 0.9], seed=seed, **options)]
    text, found = judged("reaches after twelve", runs)
    assert number in text and found == verdict


def cohort_of(*columns):
    names = ["client", "ACC", "weight"]
    rounds = {"round": [1, 1, 1, 2, 2, 2]}
    return pd.DataFrame({**rounds, **dict(zip(names, columns))})


@pytest.mark.parametrize(
    ("words", "experiment", "system", "clients", "good", "number", "bad"),
    [
        ("The sixth client", 1, TIMES, "126", (0.25, 0.3, 0.45, 0.9, 0.9, 0.1),
         "weight +0.15 ± 0.00", (0.45, 0.3, 0.25, 0, 0, 1)),
        ("adversaries weigh less", 3, ADAFED, "178", (0.8, 0.2, 0, 0.6, 0.4, 0),
         "client 7 -0.050 ± 0.000; client 8 -0.500 ± 0.000", (0, 0.9, 0.1, 0, 1, 0)),
    ],
)  # fmt: skip
def test_clients_against_the_others(
    make, words, experiment, system, clients, good, number, bad
):
    names = [f"client_{one}" for one in clients] * 2

    def of(weights):
        accuracy = [0.2, 0.3, 0.6, 0.7, 0.7, 0.1]
        table = None if weights is None else cohort_of(names, accuracy, weights)
        options = {"experiment": experiment, "cohort": table}
        return judged(words, [make(system, 1, seed=k, **options) for k in range(5)])

    text, found = of(good)
    assert number in text and found == YES
    assert of(bad)[1] == NO
    with pytest.raises(RecordError, match="cohort.csv of AdaFed"):
        of(None)
