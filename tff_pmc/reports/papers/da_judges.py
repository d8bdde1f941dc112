"""How the claims of DA's text are judged from runs on FEMNIST.

The columns are those of Table 1: Low is 20 and 30 % of the devices, Mid 40 and 50 %,
High 70 and 75 %.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

from tff_pmc.reports.papers import judging
from tff_pmc.reports.papers.claims_of_papers import NOT_REPRODUCED, REPRODUCED
from tff_pmc.reports.papers.judging import LESS, MORE, NONE, Answer, Measure
from tff_pmc.reports.read import BASELINE, Run
from tff_pmc.reports.record_error import RecordError, TooShortError

Runs = Mapping[str, Sequence[Run]]
FEMNIST = ("femnist",)
SIX = tuple(",".join(order) for order in itertools.permutations(("DS", "LD", "MD")))
BEST = "MD,DS,LD"
ADJUSTED = f"{BEST} (backtracking)"
LOW, MID, HIGH = (20, 30), (40, 50), (70, 75)
GROUPS = ((75, LOW, "Low"), (75, MID, "Mid"), (80, LOW, "Low"), (80, MID, "Mid"))
HIGH_AT_75 = (75, HIGH, "High")
ALONE = (BASELINE, "MD", "LD")
STARTS = tuple(f"{order} (backtracking)" for order in SIX)
_OTHER_SCORES = ("weighted_average", "owa", "choquet")
_OTHER = "other E and B"
_ROUNDS, _HIGHEST = 1000, 80
"""The rounds that DA allows, and the highest accuracy that it looks for, percent."""


def _cells(target: int, shares: Sequence[int]) -> list[tuple[int, int]]:
    return [(target, share) for share in shares]


def nothing_above(by_experiment: Runs) -> Answer:
    """Judges footnote 2: in 1,000 rounds no run gets above 80 %."""
    highest = []
    seeds = judging.by_seed(by_experiment["femnist"], [BASELINE])
    for runs in seeds:
        shortest = min(len(run.rounds) for run in runs.values())
        if shortest < _ROUNDS:
            raise TooShortError(f"a kept run ends in round {shortest}, not {_ROUNDS}")
        highest.append(max(100 * judging.best(run) for run in runs.values()))
    target = [float(_HIGHEST)] * len(highest)
    measure = Measure(f"highest minus {_HIGHEST}, points", highest, target, LESS)
    return judging.judged([measure], judging.all_runs(seeds))


def comparable(by_experiment: Runs) -> Answer:
    """Judges Study A, Low and Mid: Md and Ld within a fifth of DS's rounds."""
    seeds = judging.by_seed(by_experiment["femnist"], ALONE)
    measures = []
    for label in ("MD", "LD"):
        for target, shares, group in GROUPS:
            keys = _cells(target, shares)
            saved = judging.rounds_saved(seeds, label, keys, NONE, name="")
            part = [a / b - 1 for a, b in zip(saved.own, saved.base)]
            name = f"{label} {group} at {target} %, over DS"
            nothing = [0.0] * len(part)
            measures.append(Measure(name, part, nothing, NONE, 0.2, digits=2))
    return judging.judged(measures, judging.all_runs(seeds))


def high(by_experiment: Runs) -> Answer:
    """Judges Study A, High at 75 %: Md and Ld sooner than DS."""
    seeds = judging.by_seed(by_experiment["femnist"], ALONE)
    measures = [
        judging.rounds_saved(
            seeds, label, _cells(75, HIGH), MORE, name=f"{label} High at 75 %"
        )
        for label in ("MD", "LD")
    ]
    return judging.judged(measures, judging.all_runs(seeds))


def best_alone(by_experiment: Runs) -> Answer:
    """Judges what Study B says of Study A: Ds is the best for Low and Mid, Ld for High.

    It holds each against the better of the two other criteria.
    """
    seeds = judging.by_seed(by_experiment["femnist"], ALONE)
    groups = [*((BASELINE, group) for group in GROUPS), ("LD", HIGH_AT_75)]
    measures = []
    for label, group in groups:
        measure = _against_the_best_other(seeds, (label,), *group, of=ALONE)
        measures.append(measure._replace(name=f"{label} {measure.name}"))
    return judging.judged(measures, judging.all_runs(seeds))


def best_start(by_experiment: Runs) -> Answer:
    """Judges Study C: of the adjusted runs, Md, Ds, Ld against the best other start."""
    seeds = judging.by_seed(by_experiment["femnist"], STARTS)
    measures = [
        _against_the_best_other(seeds, (ADJUSTED,), *group, of=STARTS)
        for group in (*GROUPS, HIGH_AT_75)
    ]
    return judging.judged(measures, judging.all_runs(seeds))


def ds_first(by_experiment: Runs) -> Answer:
    """Judges Study B, Low and Mid: each ordering from DS against the best other."""
    seeds = judging.by_seed(by_experiment["femnist"], SIX)
    measures = [
        _against_the_best_other(seeds, ("DS,LD,MD", "DS,MD,LD"), target, shares, group)
        for target, shares, group in GROUPS
    ]
    return judging.judged(measures, judging.all_runs(seeds))


def best_in_high(by_experiment: Runs) -> Answer:
    """Judges Study B, High at 75 %: Md, Ds, Ld against the best other."""
    seeds = judging.by_seed(by_experiment["femnist"], SIX)
    measure = _against_the_best_other(seeds, (BEST,), 75, HIGH, "High")
    return judging.judged([measure], judging.all_runs(seeds))


def ds_before_ld(by_experiment: Runs) -> Answer:
    """Judges Study B's remark: the best orderings have Ds before Ld."""
    seeds = judging.by_seed(by_experiment["femnist"], SIX)
    first = [label for label in SIX if label.index("DS") < label.index("LD")]
    groups = (*GROUPS, HIGH_AT_75)
    measures = [
        _against_the_best_other(seeds, first, target, shares, group)
        for target, shares, group in groups
    ]
    return judging.judged(measures, judging.all_runs(seeds))


def _against_the_best_other(
    seeds: Sequence[Mapping[str, Run]],
    labels: Sequence[str],
    target: int,
    shares: Sequence[int],
    group: str,
    of: Sequence[str] = SIX,
) -> Measure:
    """Returns the measure of the rounds that the best of some saves over the others.

    Args:
        seeds: what `judging.by_seed` returns.
        labels: the runs of which the best is taken.
        target: the target accuracy, percent.
        shares: the shares of the devices whose mean it is, percent.
        group: what Table 1 calls these shares.
        of: these and the others; by default the six fixed orderings.
    """
    keys, own, base = _cells(target, shares), [], []
    for runs in seeds:
        rounds = {
            label: judging.mean_rounds(runs[label], keys, len(runs[label].rounds))
            for label in of
        }
        own.append(-min(rounds[label] for label in labels))
        base.append(-min(rounds[label] for label in of if label not in labels))
    return Measure(f"{group} at {target} %, over the best other", own, base, MORE)


def final_over(
    label: str, groups: Sequence[tuple[int, Sequence[int], str]]
) -> Callable[[Runs], Answer]:
    """Returns a judge of Study C: the adjusted run from Md, Ds, Ld against another."""

    def judge(by_experiment: Runs) -> Answer:
        seeds = judging.by_seed(by_experiment["femnist"], [ADJUSTED, label])
        measures = [
            judging.rounds_saved(
                seeds,
                ADJUSTED,
                _cells(target, shares),
                MORE,
                name=f"{group} at {target} %",
                base=label,
            )
            for target, shares, group in groups
        ]
        number, verdict, why = judging.judged(measures, judging.all_runs(seeds))
        clients = {int(run.data["clients"]) for run in judging.all_runs(seeds)}
        names = " or ".join(map(str, sorted(clients)))
        return f"{number} ({names} clients)", verdict, why

    return judge


def testing_rounds(by_experiment: Runs) -> Answer:
    """Judges footnote 1: no round tests more than m! candidates."""
    worst, bound, adjusted = 0, 0, 0
    for run in by_experiment["femnist"]:
        if run.adjustment == "fixed" or "testing_rounds" not in run.rounds:
            continue
        adjusted += len(run.rounds)
        members = len(run.settings["priority"])
        bound = max(bound, math.factorial(members))
        worst = max(worst, int(run.rounds["testing_rounds"].max()))
    if not adjusted:
        raise RecordError("no adjusted run is kept")
    verdict = REPRODUCED if worst <= bound else NOT_REPRODUCED
    number = f"{worst} at most, of {bound} possible"
    return number, verdict, f"in {adjusted} adjusted rounds, as it has to be"


def other_scores(by_experiment: Runs) -> Answer:
    """Judges section 2.2: the prioritized score against the three others."""
    runs = by_experiment["femnist"]
    others = [r.label for r in runs if r.settings.get("system") in _OTHER_SCORES]
    if not others:
        raise RecordError(
            "no run with another score is kept; add "
            "--systems=prioritized,weighted_average,owa,choquet and their settings"
        )
    seeds = judging.by_seed(runs, [BEST, *dict.fromkeys(others)])
    measures = [
        judging.accuracy_gained(
            seeds,
            BEST,
            MORE,
            name=f"{BEST} minus {other}, points",
            of=judging.second_half,
            base=other,
        )
        for other in dict.fromkeys(others)
    ]
    return judging.judged(measures, judging.all_runs(seeds))


def epochs_and_batches(by_experiment: Runs) -> Answer:
    """Judges section 3: no other E and B bring DS to its target sooner."""
    found: dict[tuple[int, int], list[Run]] = {}
    for run in by_experiment["femnist"]:
        if run.label == BASELINE:
            values = run.settings
            key = int(values["local_epochs"]), int(values["batch_size"])
            found.setdefault(key, []).append(run)
    if len(found) < 2 or (5, 10) not in found:
        raise RecordError(
            "only E = 5 and B = 10 is kept; run DS with other --local_epochs and "
            "--batch_size"
        )
    # A run that does not arrive counts by its length: only equal ones are compared.
    bases = {_seed_and_length(run): run for run in found.pop((5, 10))}
    measures, used = [], []
    for (epochs, batch), runs in sorted(found.items()):
        pairs = [(bases.get(_seed_and_length(run)), run) for run in runs]
        seeds = [{BASELINE: b, _OTHER: run} for b, run in pairs if b is not None]
        if not seeds:
            raise RecordError(
                f"no run with E = 5 and B = 10 has the seed and the rounds of the one "
                f"with E = {epochs} and B = {batch}"
            )
        name = f"Low at 75 %, over E = {epochs}, B = {batch}"
        keys = _cells(75, LOW)
        saved = judging.rounds_saved(seeds, _OTHER, keys, LESS, name=name)
        measures.append(Measure(name, saved.base, saved.own, MORE))
        used += judging.all_runs(seeds)
    return judging.judged(measures, used)


def _seed_and_length(run: Run) -> tuple[int, int]:
    return int(run.settings.get("batch_seed", 0)), len(run.rounds)
