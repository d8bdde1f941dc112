"""The rule by which claims on differences between runs are judged, the same for all.

A claim is one or more differences, of which each is known under each seed, and has the
sign or the limits that the paper's words give it and the size that it prints. From five
seeds on the 95 % interval of the mean decides: where it lies within the limits the
difference is reproduced, where it lies beyond them it is not. An interval that allows
both is compared with the printed size: where that lies outside, it is not reproduced
either.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

from tff_pmc.reports import paired

VERDICTS = REPRODUCED, NOT_REPRODUCED, OPEN, TOO_SHORT, UNTESTABLE = (
    *("reproduced", "not reproduced", "open"),
    *("not run far enough", "cannot be tested here"),
)
"""What comes of a claim. `open`: enough runs, whose interval allows both. `not run far
enough`: others would decide it. `cannot be tested here`: its data could not be had."""

Size = Union[float, Sequence[float], None]
"""What a paper prints of a difference: a number, or the least and the most."""


class Limits(NamedTuple):
    """What a paper says of a difference: it lies from `low` to `high`.

    `signed`: it has a sign, so that 0 itself is not within. `sized`: the limits are of
    its size, so that the printed size decides nothing.
    """

    low: float
    high: float
    signed: bool = False
    sized: bool = False


class Difference(NamedTuple):
    """A difference under each seed, and what the paper says of it.

    Attributes:
        name: what it is of, for the reader.
        own: the one side under each seed.
        base: the other side, under the same seeds; the difference is own minus base.
        limits: where the paper puts it.
        digits: decimals that are shown.
        printed: the least and the most that the paper prints of it; empty for nothing.
        equal: whether both weigh alike in every round, so that they are one algorithm.
        part: the part of the columns that it is of, `2 of 9 columns`; empty for all.
        lacks: why it cannot be measured; the sides are empty then.
        runs: the runs that it is of.
        caveats: why they are not on the paper's data, and what else they lack; the
            first of each pair is of the data.
        least_rounds: the fewest rounds of runs that decide.
        shows: `clients` or `epochs`, the number of which is shown with it.
    """

    name: str
    own: Sequence[float]
    base: Sequence[float]
    limits: Limits = Limits(0.0, math.inf, signed=True)
    digits: int = 1
    printed: Sequence[float] = ()
    equal: bool = False
    part: str = ""
    lacks: str = ""
    runs: Sequence[Any] = ()
    least_rounds: int = 0
    shows: str = ""


class Differences(tuple[Difference, ...]):
    """The differences of a claim; all of them have to hold for it to be reproduced.

    Each method says where the paper puts them. `printed` is the size that its words
    give, of all columns; without it the size is that of its table, if there is one.
    """

    def __add__(self, others: Iterable[Difference]) -> Differences:  # type: ignore[override]
        """Returns both, in this order."""
        return Differences([*self, *others])

    def is_more(self, printed: Size = None) -> Differences:
        """Puts them above 0."""
        return self._within(Limits(0.0, math.inf, signed=True), printed)

    def is_less(self, printed: Size = None) -> Differences:
        """Puts them below 0."""
        return self._within(Limits(-math.inf, 0.0, signed=True), printed)

    def is_none(self, tolerance: float = 0.0) -> Differences:
        """Puts them at 0, within a tolerance."""
        return self._within(Limits(-tolerance, tolerance, sized=True))

    def is_between(self, low: float, high: float, printed: Size = None) -> Differences:
        """Puts them within two limits."""
        return self._within(Limits(low, high, sized=True), printed)

    def is_at_most(self, high: float) -> Differences:
        """Puts them at a limit or below."""
        return self._within(Limits(-math.inf, high))

    def is_at_least(self, low: float) -> Differences:
        """Puts them at a limit or above."""
        return self._within(Limits(low, math.inf))

    def _within(self, limits: Limits, printed: Size = None) -> Differences:
        sizes: Sequence[float] = ()
        if printed is not None:
            alone = isinstance(printed, (int, float))
            sizes = (printed, printed) if alone else tuple(printed)  # type: ignore
        return Differences(
            # A size that the words give is of all columns.
            one._replace(limits=limits, printed=one.printed if one.part else sizes)
            if sizes
            else one._replace(limits=limits)
            for one in self
        )


class Answer(NamedTuple):
    """What runs say of a claim: our numbers as text, the verdict, why, and the runs.

    `decisive` names the differences that decide, where it is not all of them. `seeds`
    is how many would decide it, were mean and deviation those seen; 0 where no runs
    show that. `short` has the deciding numbers, three at most, without noise floors.
    """

    number: str
    verdict: str
    why: str
    runs: Sequence[Any] = ()
    decisive: Sequence[str] = ()
    seeds: int = 0
    short: str = ""


def judged(differences: Iterable[Difference]) -> Answer:
    """Returns the answer to a claim.

    A difference that is refuted refutes the claim. Runs that are not the paper's
    experiment, or are shorter than `least_rounds`, decide only where weights are equal,
    which is a matter of the data: of all of it, and of the paper's.
    """
    every = list(differences)
    if not every:
        raise ValueError("a claim has no difference")
    found = []
    for one in every:
        data, others = _caveats(one)
        one = one._replace(equal=one.equal and not data)
        stat = {} if one.lacks else paired.difference(one.own, one.base)
        word, why = _decided(one, stat, data + others)
        found.append(_Decided(one, stat, word, why, _seeds(one, stat)))
    word = next(word for word in _WORST_FIRST if word in {one.word for one in found})
    decisive = [one for one in found if one.word == word]
    reasons = collections.Counter(
        reason for one in decisive for reason in one.why.split("; ") if reason
    )
    part = f" of {len(every)}: " if word == REPRODUCED else ""
    why = "; ".join(
        f"{count}{part}{reason}" if part and count < len(every) else reason
        for reason, count in reasons.items()
    )
    # One refutes a claim; for all else each of them has to be decided.
    seeds = [one.seeds for one in decisive]
    enough = min(seeds) if word == NOT_REPRODUCED else max(seeds)
    runs = list({id(run): run for one in every for run in one.runs}.values())
    measured = [one for one in found if one.stat]
    shown = [one for one in decisive if one.stat] or measured
    shown = shown if len(shown) < 4 else shown[:2]
    more = len(measured) - len(shown)
    short = [_number(one.of, one.stat, noise=False) for one in shown]
    short += [f"{more} more"] * (more > 0)
    return Answer(
        _with_sizes([_number(one.of, one.stat) for one in measured], every[0], runs),
        word,
        why,
        runs,
        [one.of.name for one in decisive] if len(decisive) < len(every) else (),
        enough * all(seeds),
        _with_sizes(short, every[0], runs),
    )


class _Decided(NamedTuple):
    """A difference, its statistics, the verdict on it and why, and the seeds."""

    of: Difference
    stat: Mapping[str, Any]
    word: str
    why: str
    seeds: int


_WORST_FIRST = NOT_REPRODUCED, TOO_SHORT, OPEN, REPRODUCED


def _caveats(one: Difference) -> tuple[list[str], list[str]]:
    """Returns why runs are not on the paper's data, and what else they lack."""
    caveats = "; ".join(sorted({run.data_caveat for run in one.runs} - {""}))
    parts = sorted({run.image_fraction for run in one.runs} - {1.0})
    data = [f"not on the paper's data: {caveats}"] if caveats else []
    data += [f"on {part:g} of the images" for part in parts]
    readings = sorted({run.other_reading for run in one.runs} - {""})
    others = [f"kept only with {reading}" for reading in readings]
    shortest = min((run.length for run in one.runs), default=one.least_rounds)
    if shortest < one.least_rounds:
        others.append(f"after {shortest} rounds, fewer than {one.least_rounds}")
    return data, others


def _decided(
    one: Difference, stat: Mapping[str, Any], caveats: Sequence[str]
) -> tuple[str, str]:
    """Returns the verdict on a difference, and why."""
    low, high, signed, sized = one.limits
    equal = "the weights are equal in every round"
    if one.equal and signed:
        return NOT_REPRODUCED, f"{equal}: a difference is noise"
    if one.equal and low == -high:
        return REPRODUCED, equal
    if one.lacks or caveats:
        return TOO_SHORT, "; ".join(filter(None, [*caveats, one.lacks]))
    if stat["seeds"] < paired.MIN_SEEDS:
        count = "one seed" if stat["seeds"] == 1 else f"{stat['seeds']} seeds"
        return TOO_SHORT, f"{count}; below five nothing is decided"
    mean, half = stat["mean"], stat["interval"]
    if math.isnan(mean):
        return TOO_SHORT, "it is not known under every seed"
    word = _verdict(one.limits, mean - half, mean + half)
    least, most = one.printed or (mean, mean)
    if one.part and one.printed and not (least < high and most > low):
        return TOO_SHORT, "over these columns alone the paper does not show it"
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


def _verdict(limits: Limits, lowest: float, highest: float) -> str:
    """Returns what an interval says of a difference that is to be within limits."""
    low, high, signed, _ = limits
    if lowest > high or highest < low:
        return NOT_REPRODUCED
    # 0 itself belongs to neither sign, and a limit to its tolerance.
    if signed:
        return REPRODUCED if low < lowest and highest < high else OPEN
    return REPRODUCED if low <= lowest and highest <= high else OPEN


def _seeds(one: Difference, stat: Mapping[str, Any]) -> int:
    """Returns how many seeds decide, were mean and deviation those seen; 0: unknown.

    The interval is then narrow enough to lie on one side of the limit, or to leave out
    the printed size. Weights that are equal need one.
    """
    if one.equal:
        return 1
    mean, deviation = (stat.get(key, math.nan) for key in ("mean", "deviation"))
    low, high, _, sized = one.limits
    least, most = (mean, mean) if sized or not one.printed else one.printed
    half = min(abs(mean - limit) for limit in (low, high) if math.isfinite(limit))
    half = max(half, least - mean, mean - most)
    if not half > 0 or math.isnan(deviation):
        return 0
    # The normal distribution's count is never too high: Student's t is wider.
    count = max(paired.MIN_SEEDS, int((1.95 * deviation / half) ** 2))
    while paired.half_interval(deviation, count) > half:
        count += 1
    return count


def _number(one: Difference, stat: Mapping[str, Any], noise: bool = True) -> str:
    """Returns a difference as text, `LD at 70 % +0.4 ± 0.6, printed +1.6`."""
    form = f".{one.digits}f"
    # Rounded first: a mean of -0.01 is no -0.0.
    name = ", ".join(filter(None, [one.name, one.part]))
    text = f"{name} {round(stat['mean'], one.digits) + 0.0:+{form}}"
    if not math.isnan(stat["interval"]):
        text += f" ± {stat['interval']:{form}}"
    # It is 0 where the other side is a constant, which no seed moves.
    if noise and stat["noise_floor_of_mean"] > 0:
        text += f" (noise floor {stat['noise_floor_of_mean']:{form}})"
    if one.printed:
        sizes = [round(size, one.digits) + 0.0 for size in one.printed]
        shown = dict.fromkeys(f"{size:+{form}}" for size in sizes)
        text += f", printed {' to '.join(shown)}"
    return text


def _with_sizes(texts: Sequence[str], one: Difference, runs: Sequence[Any]) -> str:
    """Returns numbers with the count of the runs' clients or epochs, if it is shown."""
    lengths = {run.clients if one.shows == "clients" else run.length for run in runs}
    sizes = f" ({' or '.join(map(str, sorted(lengths)))} {one.shows})"
    return "; ".join(texts) + (sizes if texts and one.shows else "")
