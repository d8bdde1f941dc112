"""How claims on differences between runs are judged, under the same rule for all.

A claim is made of measures. A measure is a difference under each seed, with the sign or
the limits that the paper's words give it, and the size that it prints. From five seeds
on the 95 % interval of the mean decides: where it lies within the limits the measure is
reproduced, where it lies beyond them it is not. An interval that allows both is held
against the printed size: where that lies outside, it is not reproduced either.
"""

from __future__ import annotations

import collections
import contextlib
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.reports import paired
from tff_pmc.reports.papers.own_reading import image_fraction, other_reading

VERDICTS = REPRODUCED, NOT_REPRODUCED, OPEN, TOO_SHORT, UNTESTABLE = (
    *("reproduced", "not reproduced", "open"),
    *("not run far enough", "cannot be tested here"),
)
"""What comes of a claim. `open`: enough runs, whose interval allows both. `not run far
enough`: others would decide it. `cannot be tested here`: its data could not be had."""

SIGNS = MORE, LESS, NONE, NOT_MORE, NOT_LESS, WITHIN = (
    *("more", "less"),
    *("none", "not more", "not less", "within"),
)
"""What a paper says of a difference: above 0, below 0, none within a tolerance, or
`within` two limits."""


class Answer(NamedTuple):
    """What runs say of a claim: our numbers as text, the verdict, why, and the runs.

    `decisive` names the measures that decide, where it is not all of them. `seeds` says
    how many would decide it, were mean and deviation those seen; 0 where no runs tell.
    """

    number: str
    verdict: str
    why: str
    runs: Sequence[Run] = ()
    decisive: Sequence[str] = ()
    seeds: int = 0


Cells = Sequence[tuple[int, int]]
"""Columns of a published table: (target accuracy, share of the devices), percent."""

Runs = Mapping[str, Sequence[Run]]
"""The name of an experiment -> its runs."""

Labeled = Mapping[str, Run]
"""The runs under one seed, by their labels."""


class Measure(NamedTuple):
    """A difference under each seed, and what the paper says of it.

    Attributes:
        name: what it is of, for the reader.
        own: the one side under each seed.
        base: the other side, under the same seeds; the difference is own minus base.
        sign: one of `SIGNS`.
        tolerance: how far from 0 the difference may be and still be none.
        within: the limits of the sign `within`.
        digits: decimals that are shown.
        printed: the least and the most that the paper prints of it.
        equal: whether both weigh alike in every round, so that they are one algorithm.
        part: the part of the columns that it is of, `2 of 9 columns`; empty for all.
        lacks: why it cannot be measured; the sides are empty then.
        runs: those that it is of; empty for the whole claim's.
    """

    name: str
    own: Sequence[float]
    base: Sequence[float]
    sign: str
    tolerance: float = 0.0
    within: Sequence[float] = ()
    digits: int = 1
    printed: Sequence[float] = ()
    equal: bool = False
    part: str = ""
    lacks: str = ""
    runs: Sequence[Run] = ()


def judged(
    measures: Sequence[Measure], runs: Sequence[Run] = (), *, least_rounds: int = 0
) -> Answer:
    """Returns the answer to a claim: every measure has to hold for it to be reproduced.

    One that is refuted refutes it. Runs that are not the paper's experiment
    (`_caveats`), or of fewer rounds than `least_rounds`, decide only where weights are
    equal, which is a matter of the data: of all of it, and of the paper's.
    """
    numbers, words = [], []
    for one in measures:
        data, others = _caveats(one.runs or runs, least_rounds)
        one = one._replace(equal=one.equal and not data)
        stat = {} if one.lacks else paired.difference(one.own, one.base)
        word, why = _decided(one, stat, data + others)
        if stat:
            numbers.append(_number(one, stat))
        words.append((word, one.name, why, _seeds(one, stat)))
    for word in (NOT_REPRODUCED, TOO_SHORT, OPEN, REPRODUCED):
        of = [one for one in words if one[0] == word]
        names = [name for _, name, _, _ in of]
        reasons = "; ".join(why for _, _, why, _ in of if why)
        seeds = [count for *_, count in of]
        if names:
            counts = collections.Counter(reasons.split("; "))
            part = f" of {len(measures)}: " if word == REPRODUCED else ""
            why = "; ".join(
                f"{n}{part}{one}" if one and part and n < len(measures) else one
                for one, n in counts.items()
            )
            decisive = names if len(names) < len(measures) else ()
            # One part refutes a claim; for all else every part has to be decided.
            enough = min(seeds) if word == NOT_REPRODUCED else max(seeds)
            enough *= all(seeds)
            return Answer("; ".join(numbers), word, why, runs, decisive, enough)
    raise ValueError("a claim has no measure")


def _decided(
    one: Measure, stat: Mapping[str, float], caveats: Sequence[str]
) -> tuple[str, str]:
    """Returns the verdict on a measure, and why."""
    why = "the weights are equal in every round"
    if one.equal and one.sign in (MORE, LESS):
        return NOT_REPRODUCED, f"{why}: a difference is noise"
    if one.equal and one.sign == NONE:
        return REPRODUCED, why
    if one.lacks or caveats:
        return TOO_SHORT, "; ".join(filter(None, [*caveats, one.lacks]))
    if stat["seeds"] < paired.MIN_SEEDS:
        count = "one seed" if stat["seeds"] == 1 else f"{stat['seeds']} seeds"
        return TOO_SHORT, f"{count}; below five nothing is decided"
    mean, half = stat["mean"], stat["interval"]
    if math.isnan(mean):
        return TOO_SHORT, "it is not known under every seed"
    lowest, highest = _limits(one)
    word = _verdict(one.sign, mean - half, mean + half, lowest, highest)
    least, most = one.printed or (mean, mean)
    if one.part and one.printed and not (least < highest and most > lowest):
        return TOO_SHORT, "over these columns alone the paper does not show it"
    # What is none within a tolerance, or within limits, has its size in these.
    sized = one.sign in (NONE, WITHIN)
    of_size = sized or (mean - half <= most and least <= mean + half)
    if word == OPEN and not of_size:
        return NOT_REPRODUCED, "0, not the printed size"
    if word == OPEN and one.part:
        return TOO_SHORT, "these columns leave it open"
    if word == OPEN:
        return OPEN, "the interval allows both"
    if word == NOT_REPRODUCED:
        return word, "it lies elsewhere"
    return word, "" if of_size else "in sign, not in size"


def _seeds(one: Measure, stat: Mapping[str, float]) -> int:
    """Returns how many seeds decide, were mean and deviation those seen; 0: unknown.

    The interval is then narrow enough to lie on one side of the limit, or to leave out
    the printed size. Weights that are equal need one.
    """
    if one.equal:
        return 1
    mean, deviation = (stat.get(key, math.nan) for key in ("mean", "deviation"))
    sized = one.sign in (NONE, WITHIN) or not one.printed
    least, most = (mean, mean) if sized else one.printed
    half = min(abs(mean - limit) for limit in _limits(one) if math.isfinite(limit))
    half = max(half, least - mean, mean - most)
    if not half > 0 or math.isnan(deviation):
        return 0
    # The normal distribution's count is never too high: Student's t is wider.
    count = max(paired.MIN_SEEDS, int((1.95 * deviation / half) ** 2))
    while paired.half_interval(deviation, count) > half:
        count += 1
    return count


def _verdict(sign: str, low: float, high: float, least: float, most: float) -> str:
    """Returns what an interval says of a difference that is to be within limits."""
    if low > most or high < least:
        return NOT_REPRODUCED
    # 0 itself belongs to neither sign, and a limit to its tolerance.
    if sign in (MORE, LESS):
        return REPRODUCED if least < low and high < most else OPEN
    return REPRODUCED if least <= low and high <= most else OPEN


def _limits(one: Measure) -> Sequence[float]:
    """Returns between what a difference lies of which a paper says so."""
    limits: Mapping[str, Sequence[float]] = {
        MORE: (0.0, math.inf),
        LESS: (-math.inf, 0.0),
        NONE: (-one.tolerance, one.tolerance),
        NOT_MORE: (-math.inf, one.tolerance),
        NOT_LESS: (-one.tolerance, math.inf),
        WITHIN: one.within,
    }
    return limits[one.sign]


def _number(measure: Measure, stat: Mapping[str, float]) -> str:
    form = f".{measure.digits}f"
    # Rounded first: a mean of -0.01 is no -0.0.
    name = ", ".join(filter(None, [measure.name, measure.part]))
    text = f"{name} {round(stat['mean'], measure.digits) + 0.0:+{form}}"
    if not math.isnan(stat["interval"]):
        text += f" ± {stat['interval']:{form}}"
    # It is 0 where the other side is a constant, which no seed moves.
    if stat["noise_floor_of_mean"] > 0:
        text += f" (noise floor {stat['noise_floor_of_mean']:{form}})"
    if measure.printed:
        sizes = [round(size, measure.digits) + 0.0 for size in measure.printed]
        shown = dict.fromkeys(f"{size:+{form}}" for size in sizes)
        text += f", printed {' to '.join(shown)}"
    return text


def _caveats(runs: Sequence[Run], least_rounds: int) -> tuple[list[str], list[str]]:
    """Returns why runs are not on the paper's data, and what else they lack."""
    caveats = "; ".join(sorted({run.data_caveat for run in runs} - {""}))
    parts = sorted({image_fraction(run) for run in runs} - {1.0})
    data = [f"not on the paper's data: {caveats}"] if caveats else []
    data += [f"on {part:g} of the images" for part in parts]
    readings = sorted({other_reading(run) for run in runs} - {""})
    others = [f"kept only with {reading}" for reading in readings]
    shortest = min((len(run.rounds) for run in runs), default=least_rounds)
    if shortest < least_rounds:
        others.append(f"after {shortest} rounds, fewer than {least_rounds}")
    return data, others


def by_seed(
    runs: Iterable[Run],
    labels: Sequence[str],
    label_of: Callable[[Run], str] = lambda run: run.label,
    least: int = 0,
) -> dict[int, dict[str, Run]]:
    """Returns label -> run for each seed that has a run of every label.

    Only runs that stand in one folder are held against each other: they were made by
    one command. Runs of another reading than the paper's count where there are no
    others. Of two such folders under one seed the one with more of the data set
    counts, then that with `least` rounds or more of them, then that of the command with
    more seeds, then that with longer runs, then that with more of them. A run whose
    label is empty is passed over, and one that ended early, as when all of its clients
    diverged: such a seed says nothing of rounds. Where no seed has all labels, a
    `RecordError` names them.
    """
    runs = [run for run in runs if len(run.rounds) >= run.settings.get("rounds", 0)]
    own_reading = [run for run in runs if not other_reading(run)]
    if 0 < len(own_reading) < len(runs):
        with contextlib.suppress(RecordError):
            return by_seed(own_reading, labels, label_of, least)
    found: dict[tuple[int, str], dict[str, Run]] = {}
    for run in runs:
        if label_of(run):
            key = seed_of(run), os.path.dirname(run.path)
            found.setdefault(key, {}).setdefault(label_of(run), run)
    seeds = {(os.path.dirname(folder), seed) for seed, folder in found}
    beside = collections.Counter(command for command, _ in seeds)
    chosen: dict[int, dict[str, Run]] = {}
    worth: dict[int, tuple[float, ...]] = {}
    for (seed, folder), own in sorted(found.items(), key=lambda one: one[0][0]):
        part = min(map(image_fraction, own.values()))
        length = min(len(run.rounds) for run in own.values())
        seeds_there = beside[os.path.dirname(folder)]
        mine = part, min(length, least), seeds_there, length, len(own)
        if {*labels} <= {*own} and mine > worth.get(seed, ()):
            chosen[seed], worth[seed] = own, mine
    if not chosen:
        seen = {label for own in found.values() for label in own}
        missing = [label for label in labels if label not in seen]
        none = f"no folder of runs has all of {_listed(labels)}"
        raise RecordError(f"not run: {_listed(missing)}" if missing else none)
    return chosen


def seed_of(run: Run) -> int:
    """Returns the seed of a run; those of before there was one had 0."""
    return int(run.settings.get("batch_seed", 0))


def _listed(labels: Sequence[str]) -> str:
    """Returns labels as words; semicolons, because orderings have commas."""
    *others, last = labels
    return f"{'; '.join(others)} and {last}" if others else last
