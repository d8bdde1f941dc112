"""AdaFed's claims: the runs that they refuse, and the one on a round never reached.

Numbers and verdicts on the kept runs stand in `results/reproduced/claims.csv`.
"""

import dataclasses

import pytest

from tff_pmc.record.record_error import RecordError
from tff_pmc.reports.papers.claim_tables import claims
from tff_pmc.reports.papers.judging import VERDICTS

FEDAVG, ADAFED, ONLY = "FedAvg", "AdaFed", "AdaFed, weights only"
TIMES = f"{ONLY}, times samples"
YES, NO, _, SHORT = VERDICTS[:4]


@pytest.fixture
def make(system_run):
    """A function that makes a run of a simulation, of which nothing is written."""

    def run(system, accuracy, experiment=2, seed=0):
        made = system_run(system, accuracy, experiment=f"adafed_{experiment}")
        made.info["settings"]["batch_seed"] = seed
        return dataclasses.replace(made, path=f"{experiment}/{seed}/{system}")

    return run


def judged(words, runs):
    """Our number and the verdict on the one claim that says these words."""
    (claim,) = [one for one in claims("AdaFed") if words in " ".join(one.says.split())]
    of = {name: [] for name in claim.experiments}
    for run in runs:
        of[run.settings["experiment"]].append(run)
    return claim.judge(of)[:2]


@pytest.mark.parametrize(
    ("words", "runs", "message"),
    [
        ("about 3 %", [(FEDAVG, 2), (ONLY, 2)], f"^not run: {ADAFED}$"),
        ("macro F1 is above", [(x, 2) for x in (FEDAVG, ONLY, ADAFED)],
         "^the run of AdaFed has no macro_f1 on record$"),
        ("with few images (0", [(x, 2) for x in (FEDAVG, ONLY, ADAFED)],
         "^the run of AdaFed has no F1 of its classes on record$"),
        ("The sixth client", [(TIMES, 1)], f"^the cohort.csv of {TIMES} was not kept$"),
        ("cost FedAvg about", [(FEDAVG, 2, 0), (FEDAVG, 3, 1)],
         "^the runs of adafed_2 and adafed_3 have no seed in common$"),
    ],
)  # fmt: skip
def test_what_a_record_lacks_is_said(make, words, runs, message):
    with pytest.raises(RecordError, match=message):
        judged(words, [make(system, [0.5] * 20, *more) for system, *more in runs])


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
    runs = []
    for seed in range(5):
        line = [*[0.5] * (reached - 1), *[0.8] * rounds][:rounds]
        runs += [make(FEDAVG, line, 1, seed), make(TIMES, [0.7, 0.8, 0.9], 1, seed)]
    text, found = judged("only after twelve", runs)
    assert number in text and found == verdict
