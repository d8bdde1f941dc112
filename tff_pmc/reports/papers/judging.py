"""How claims on differences between runs are judged, under the same rule for all.

A claim is made of measures. A measure is a difference under each seed, with the sign
that the paper's words give it. Below five seeds nothing is decided. From five on the
95 % interval of the mean decides: on the claimed side of 0 the measure is reproduced,
on the other side it is not, and an interval with 0 in it leaves it undecidable. Where
the paper says that there is no difference, the interval is held against a tolerance.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tff_pmc.reports import paired
from tff_pmc.reports.kept import rounds_of
from tff_pmc.reports.papers.claims_of_papers import (
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDABLE,
)
from tff_pmc.reports.read import BASELINE, Run
from tff_pmc.reports.record_error import RecordError, TooShortError

MORE, LESS, NONE = "more", "less", "none"
"""What a paper says of a difference: above 0, below 0, or none."""

Answer = tuple[str, str, str]
"""Our number as text, the verdict, and why."""


class Measure(NamedTuple):
    """A difference under each seed, and what the paper says of it.

    Attributes:
        name: what it is of, for the reader.
        own: the one side under each seed.
        base: the other side, under the same seeds; the difference is own minus base.
        says: `MORE`, `LESS` or `NONE`.
        tolerance: how far from 0 the difference may be and still be none.
        digits: decimals that are shown.
    """

    name: str
    own: Sequence[float]
    base: Sequence[float]
    says: str
    tolerance: float = 0.0
    digits: int = 1


def judged(measures: Iterable[Measure], runs: Iterable[Run] = ()) -> Answer:
    """Returns the answer to a claim: every measure has to hold for it to be reproduced.

    Args:
        measures: at least one.
        runs: those that were measured; a caveat of their data leaves the claim
            undecidable, whatever the numbers.
    """
    found = list(measures)
    stats = [paired.difference(one.own, one.base) for one in found]
    numbers = "; ".join(_number(one, stat) for one, stat in zip(found, stats))
    caveats = sorted({run.data_caveat for run in runs if run.data_caveat})
    if caveats:
        return numbers, UNDECIDABLE, f"not on the paper's data: {'; '.join(caveats)}"
    seeds = stats[0]["seeds"]
    if seeds < paired.MIN_SEEDS:
        count = "one seed" if seeds == 1 else f"{seeds} seeds"
        return numbers, UNDECIDABLE, f"{count}; below five nothing is decided"
    verdicts = [_verdict(one, stat) for one, stat in zip(found, stats)]
    for verdict, how in ((NOT_REPRODUCED, "contradicted"), (UNDECIDABLE, "left open")):
        failing = [one.name for one, own in zip(found, verdicts) if own == verdict]
        if failing:
            return numbers, verdict, f"{how} by {', '.join(failing)}"
    return numbers, REPRODUCED, "every 95 % interval lies where the claim puts it"


def _verdict(measure: Measure, stat: Mapping[str, float]) -> str:
    mean, half = stat["mean"], stat["interval"]
    if math.isnan(mean) or math.isnan(half):
        return UNDECIDABLE
    if measure.says == NONE:
        if abs(mean) + half <= measure.tolerance:
            return REPRODUCED
        return NOT_REPRODUCED if abs(mean) - half > measure.tolerance else UNDECIDABLE
    signed = mean if measure.says == MORE else -mean
    if signed - half > 0:
        return REPRODUCED
    return NOT_REPRODUCED if signed + half < 0 else UNDECIDABLE


def _number(measure: Measure, stat: Mapping[str, float]) -> str:
    form = f".{measure.digits}f"
    text = f"{measure.name} {stat['mean']:+{form}}"
    if not math.isnan(stat["interval"]):
        text += f" ± {stat['interval']:{form}}"
    # It is 0 where the other side is a constant, which no seed moves.
    if stat["noise_floor_of_mean"] > 0:
        text += f" (noise floor {stat['noise_floor_of_mean']:{form}})"
    return text


def by_seed(runs: Iterable[Run], labels: Sequence[str]) -> list[dict[str, Run]]:
    """Returns label -> run for each seed that has a run of every label.

    Only runs that stand in one folder are held against each other: they were made by
    one command. Of two such folders under one seed the one with the longer runs counts,
    and of equally long ones that with more runs.

    Raises:
        RecordError: no seed has; the message names the labels that are missing.
    """
    found: dict[tuple[str, int], dict[str, Run]] = {}
    for run in runs:
        seed = int(run.settings.get("batch_seed", 0))
        together = found.setdefault((os.path.dirname(run.path), seed), {})
        together.setdefault(run.label, run)
    chosen: dict[int, dict[str, Run]] = {}
    for (_, seed), own in found.items():
        other = chosen.get(seed)
        if {*labels} <= {*own} and (other is None or _worth(own) > _worth(other)):
            chosen[seed] = own
    if not chosen:
        seen = {label for own in found.values() for label in own}
        missing = [label for label in labels if label not in seen]
        if not missing:
            raise RecordError(f"no folder of runs has all of {_listed(labels)}")
        were = "was" if len(missing) == 1 else "were"
        raise RecordError(f"{_listed(missing)} {were} not run")
    return [chosen[seed] for seed in sorted(chosen)]


def _listed(labels: Sequence[str]) -> str:
    """Returns labels as words; semicolons, because orderings have commas."""
    *others, last = labels
    return f"{'; '.join(others)} and {last}" if others else last


def _worth(runs: Mapping[str, Run]) -> tuple[int, int]:
    return min(len(run.rounds) for run in runs.values()), len(runs)


def mean_rounds(run: Run, keys: Sequence[tuple[int, int]], last: int) -> float:
    """Returns the mean over (target, devices) of the rounds until it is reached.

    Args:
        run: the run.
        keys: the cells, in percent.
        last: the round in which a run that does not arrive counts as arriving.

    Raises:
        RecordError: they are not on record.
    """
    targets = tuple(dict.fromkeys(target for target, _ in keys))
    shares = tuple(dict.fromkeys(share for _, share in keys))
    reached = rounds_of(run, targets, shares)
    return sum(reached[key] or last for key in keys) / len(keys)


def rounds_saved(
    seeds: Sequence[Mapping[str, Run]],
    label: str,
    keys: Sequence[tuple[int, int]],
    says: str,
    *,
    name: str,
    base: str = BASELINE,
    tolerance: float = 0.0,
) -> Measure:
    """Returns the measure of the rounds that a run saves over another.

    A run that does not arrive counts as arriving in its last round, as in PMC's Table
    6; the one that it is held against has to arrive.

    Args:
        seeds: what `by_seed` returns.
        label: the run's.
        keys: the cells (target, devices), in percent, whose mean it is.
        says: see `Measure`; so are `name` and `tolerance`.
        name: for the reader.
        base: label of the run that it is held against.
        tolerance: see `Measure`.

    Raises:
        RecordError: the rounds are not on record.
        TooShortError: the base did not arrive.
    """
    targets = tuple(dict.fromkeys(target for target, _ in keys))
    shares = tuple(dict.fromkeys(share for _, share in keys))
    own, other = [], []
    for runs in seeds:
        arrived = rounds_of(runs[base], targets, shares)
        for target, share in keys:
            if arrived[target, share] is None:
                raise TooShortError(
                    f"the kept run of {base} ends in round {len(runs[base].rounds)}, "
                    f"before {share} % of the devices reach {target} %"
                )
        # Fewer rounds are more: with the signs changed, a difference is what is saved.
        last = len(runs[label].rounds)
        own.append(-mean_rounds(runs[label], keys, last))
        other.append(-mean_rounds(runs[base], keys, last))
    return Measure(name, own, other, says, tolerance=tolerance)


def accuracy_gained(
    seeds: Sequence[Mapping[str, Run]],
    label: str,
    says: str,
    *,
    name: str,
    of: Callable[[Run], float],
    base: str = BASELINE,
    tolerance: float = 0.0,
) -> Measure:
    """Returns the measure of the percentage points of accuracy gained over another run.

    Args:
        seeds: what `by_seed` returns.
        label: the run's.
        says: see `Measure`; so are `name` and `tolerance`, in points.
        name: for the reader.
        of: gives the accuracy of a run, `best` or `second_half`.
        base: label of the run that it is held against.
        tolerance: see `Measure`.
    """
    own = [100 * of(runs[label]) for runs in seeds]
    other = [100 * of(runs[base]) for runs in seeds]
    return Measure(name, own, other, says, tolerance=tolerance)


def best(run: Run) -> float:
    """Returns the accuracy at the best round."""
    return float(run.accuracy.max())


def second_half(run: Run) -> float:
    """Returns the mean accuracy over the second half of the rounds."""
    return run.late_accuracy


def all_runs(seeds: Sequence[Mapping[str, Run]]) -> list[Run]:
    """Returns the runs of all seeds."""
    return [run for runs in seeds for run in runs.values()]
