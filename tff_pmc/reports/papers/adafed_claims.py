"""The claims of AdaFed's text that runs can judge.

"Performance-based Adaptive Federated Learning" (Giuseppi et al. 2022), section 4. What
its figures show beyond these sentences are curves without numbers.
"""

from __future__ import annotations

from typing import Callable, Optional

from tff_pmc.reports.papers.adafed_judges import (
    ADAFED,
    FEDAVG,
    LAST,
    ROUNDS,
    TIMES_SAMPLES,
    WEIGHTS,
    Outcome,
    about,
    at_the_end,
    class_f1,
    judge,
    too_short,
)
from tff_pmc.reports.papers.claims_of_papers import Claim
from tff_pmc.reports.read import Run

PAPER = "AdaFed"

_RARE = (0, 1, 2)
"""The digits of which Table 1 has the fewest images: 20, 20 and 130 of 10,110."""

_NO_F1 = "the runs have no F1 on record"

_Measure = Callable[[Run], Optional[float]]


def _first_round(fedavg: Run, adafed: Run) -> Outcome:
    lead = 100 * (adafed.rounds["accuracy"][0] - fedavg.rounds["accuracy"][0])
    return Outcome(f"{lead:+.2f} points in round 1", bool(lead > 0))


def _second_against_twelfth(fedavg: Run, adafed: Run) -> Outcome:
    if len(adafed.rounds) < 2:
        return Outcome("", None, "AdaFed was run for one round")
    goal = adafed.rounds["accuracy"][1]
    reached = fedavg.rounds["round"][fedavg.rounds["accuracy"] >= goal]
    if len(reached):
        first = int(reached.iloc[0])
        number = f"{goal:.4f} in AdaFed's round 2, FedAvg's round {first}"
        return Outcome(number, first >= 12)
    rounds = len(fedavg.rounds)
    number = f"{goal:.4f} in AdaFed's round 2, none of FedAvg's {rounds}"
    if rounds < 12:
        return Outcome(number, None, f"FedAvg was run for {rounds} rounds, not 12")
    return Outcome(number, True)


def _sixth_client(adafed: Run) -> Outcome:
    if adafed.cohort is None:
        return Outcome("", None, "the run's cohort.csv was not kept")
    first = adafed.cohort[adafed.cohort["round"] == 1].set_index("client")
    first = first[["ACC", "weight"]]
    sixth, others = first.loc["client_6"], first.drop("client_6").max()
    number = (
        "accuracy {:.3f} in round 1, the others' at most {:.3f}; weight {:.3f}, the "
        "others' at most {:.3f}"
    ).format(*(side[name] for name in first for side in (sixth, others)))
    return Outcome(number, bool((sixth > others).all()))


def _three_points_ahead(fedavg: Run, weights: Run, adafed: Run) -> Outcome:
    base, *ours = at_the_end("accuracy", fedavg, weights, adafed)
    leads = [100 * (mean - base) for mean in ours]
    number = "weights only {:+.2f} points, with the loss {:+.2f}".format(*leads)
    short = too_short(fedavg, weights, adafed)
    return Outcome(
        number, None if short else all(about(lead, 3) for lead in leads), short
    )


def _loss_is_faster(fedavg: Run, weights: Run, adafed: Run) -> Outcome:
    (goal,) = at_the_end("accuracy", fedavg)
    first = []
    for run in (adafed, weights):
        reached = run.rounds["round"][run.rounds["accuracy"] >= goal]
        first.append(int(reached.iloc[0]) if len(reached) else ROUNDS + 1)
    never = {ROUNDS + 1: "never"}
    shown = [never.get(number, f"round {number}") for number in first]
    number = "with the loss {}, weights only {}".format(*shown)
    short = too_short(fedavg, weights, adafed)
    return Outcome(number, None if short else first[0] < first[1], short)


def _macro_f1_is_highest(fedavg: Run, weights: Run, adafed: Run) -> Outcome:
    def mean(run: Run) -> Optional[float]:
        has_f1 = "macro_f1" in run.rounds
        return float(run.rounds["macro_f1"].mean()) if has_f1 else None

    return _first_is_highest(mean, adafed, weights, fedavg)


def _rare_classes_gain(fedavg: Run, weights: Run, adafed: Run) -> Outcome:
    def mean(run: Run) -> Optional[float]:
        table = class_f1(run)
        return None if table is None else float(table[[*_RARE]].mean(axis=None))

    return _first_is_highest(mean, adafed, weights, fedavg)


def _first_is_highest(measure: _Measure, *runs: Run) -> Outcome:
    return _by_f1(measure, lambda first, *rest: first > max(rest), *runs)


def _classes_are_closer(fedavg: Run, weights: Run, adafed: Run) -> Outcome:
    def spread(run: Run) -> Optional[float]:
        table = class_f1(run)
        return None if table is None else float(table.std(axis=1, ddof=0).mean())

    return _by_f1(spread, lambda a, b, c: a < b < c, adafed, weights, fedavg)


def _by_f1(measure: _Measure, holds: Callable[..., bool], *runs: Run) -> Outcome:
    """Judges AdaFed, its weights only and FedAvg by a measure of the F1.

    Args:
        measure: the measure of a run; None if the run has no F1 on record.
        holds: whether the claim does, of the three measures.
        *runs: the three runs.
    """
    found = [value for value in map(measure, runs) if value is not None]
    if len(found) < len(runs):
        return Outcome("", None, _NO_F1)
    number = "{:.4f}, weights only {:.4f}, FedAvg {:.4f}".format(*found)
    short = too_short(*runs)
    return Outcome(number, None if short else holds(*found), short)


def _changes(two: Run, three: Run) -> tuple[str, list[float], str]:
    """What adversaries change: a text, accuracy in points and macro F1, what lacks."""
    if any("macro_f1" not in run.rounds for run in (two, three)):
        return "", [], _NO_F1
    ends = (at_the_end(column, two, three) for column in ("accuracy", "macro_f1"))
    accuracy, f1 = (attacked - before for before, attacked in ends)
    number = f"{100 * accuracy:+.2f} points of accuracy, {f1:+.4f} of macro F1"
    return number, [100 * accuracy, f1], too_short(two, three)


def _hardly_changes(two: Run, three: Run) -> Outcome:
    number, changes, lacking = _changes(two, three)
    if lacking:
        return Outcome(number, None, lacking)
    holds = abs(changes[0]) <= 2 * 0.01 and abs(changes[1]) <= 2 * 0.015
    return Outcome(number, holds)


def _drops(two: Run, three: Run) -> Outcome:
    number, changes, lacking = _changes(two, three)
    if lacking:
        return Outcome(number, None, lacking)
    return Outcome(number, about(-changes[0], 2) and about(-changes[1], 0.1))


_SIMULATION_1 = (("adafed_1", FEDAVG), ("adafed_1", TIMES_SAMPLES))
_SIMULATION_2 = (("adafed_2", FEDAVG), ("adafed_2", WEIGHTS), ("adafed_2", ADAFED))
_ABOUT = "About means from half the printed number to its double"
_ENDS = f"means of the last {LAST} rounds"

CLAIMS = (
    Claim(
        PAPER,
        "4.0.1, Figure 1",
        "AdaFed is ahead of FedAvg from the first round on.",
        ("adafed_1",),
        judge(_first_round, *_SIMULATION_1, says="It is ahead in round 1."),
    ),
    Claim(
        PAPER,
        "4.0.1",
        "The sixth client, who has all digits, is more accurate than the others from "
        "the start and weighs far more.",
        ("adafed_1",),
        judge(
            _sixth_client,
            ("adafed_1", TIMES_SAMPLES),
            says="Its accuracy and its weight in round 1 are the largest.",
        ),
    ),
    Claim(
        PAPER,
        "4.0.1, Figure 1",
        "AdaFed has in its second round the accuracy that FedAvg reaches after twelve.",
        ("adafed_1",),
        judge(
            _second_against_twelfth,
            *_SIMULATION_1,
            says="FedAvg's first round with that accuracy is the twelfth or later.",
        ),
    ),
    Claim(
        PAPER,
        "4.0.2, Figure 2",
        "Both AdaFeds are about 3 % of accuracy above FedAvg.",
        ("adafed_2",),
        judge(_three_points_ahead, *_SIMULATION_2, says=f"{_ABOUT}; {_ENDS}."),
    ),
    Claim(
        PAPER,
        "4.0.2, Figure 2",
        "AdaFed with the adaptive loss converges faster than the weights alone.",
        ("adafed_2",),
        judge(
            _loss_is_faster,
            *_SIMULATION_2,
            says=f"It is earlier at FedAvg's last accuracy ({_ENDS}).",
        ),
    ),
    Claim(
        PAPER,
        "4.0.2, Figure 3",
        "With the adaptive loss the macro F1 is above that of the two others.",
        ("adafed_2",),
        judge(_macro_f1_is_highest, *_SIMULATION_2, says="Means over the rounds."),
    ),
    Claim(
        PAPER,
        "4.0.2",
        "With the adaptive loss the classes with few images (here 0, 1 and 2) are told "
        "apart best.",
        ("adafed_2",),
        judge(_rare_classes_gain, *_SIMULATION_2, says="Means over the rounds."),
    ),
    Claim(
        PAPER,
        "4.0.2, Figure 4",
        "The classes' F1 rise more evenly with AdaFed, and most with its loss.",
        ("adafed_2",),
        judge(
            _classes_are_closer,
            *_SIMULATION_2,
            says="The classes' standard deviation, mean over the rounds, is lower.",
        ),
    ),
    Claim(
        PAPER,
        "4.0.3, Figures 5 and 6",
        "Two adversaries change AdaFed by about 0.01 % of accuracy and 0.015 of macro "
        "F1 only.",
        ("adafed_2", "adafed_3"),
        judge(
            _hardly_changes,
            *(("adafed_2", ADAFED), ("adafed_3", ADAFED)),
            says=f"At most twice that; {_ENDS}.",
        ),
    ),
    Claim(
        PAPER,
        "4.0.3, Figures 5 and 6",
        "Two adversaries cost FedAvg about 2 % of accuracy and 0.1 of macro F1.",
        ("adafed_2", "adafed_3"),
        judge(
            _drops,
            *(("adafed_2", FEDAVG), ("adafed_3", FEDAVG)),
            says=f"{_ABOUT}; {_ENDS}.",
        ),
    ),
)
"""AdaFed's claims, in its order."""
