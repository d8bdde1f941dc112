"""The rule by which claims on differences between runs are judged, the same for all.

A claim is one or more differences, of which each is known under each seed, and has the
sign or the limits that the paper's words give it and the published size. From five
seeds on the 95 % interval of the mean decides: where it lies within the limits the
difference is reproduced, where it lies beyond them it is not. An interval that allows
both is compared with the published size: where that lies outside, it is not reproduced
either.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import pandas as pd

from tff_pmc.reports.statistics import paired_statistics

VERDICTS = REPRODUCED, NOT_REPRODUCED, OPEN, TOO_SHORT, UNTESTABLE = (
    *("reproduced", "not reproduced", "open"),
    *("not run far enough", "cannot be tested here"),
)
"""What comes of a claim. `open`: enough runs, whose interval allows both. `not run far
enough`: others would decide it. `cannot be tested here`: its data could not be had."""

Size = Union[float, Sequence[float], None]
"""The published size of a difference: a number, or the least and the most."""

NO_RUNS = pd.DataFrame()


class Difference(NamedTuple):
    """A difference under each seed, and what the paper claims of it.

    Attributes:
        name: what is compared, for the reader.
        own: the one side under each seed.
        base: the other side, under the same seeds; the difference is own minus base.
        low: the least that the paper claims.
        high: the most.
        signed: whether it has a sign, so that 0 itself is not within.
        sized: whether the limits are of its size: neither the published size nor a part
            of the columns decides anything then.
        printed: the least and the most that the paper gives for it; empty for nothing.
        digits: decimals that are shown.
        equal: whether both weigh alike in every round, so that they are one algorithm.
        part: the part of the columns that it is of, `2 of 9 columns`; empty for all.
        lacks: why it cannot be measured; the sides are empty then.
        runs: the runs that it is of, as `paper_runs.kept_runs` has them.
        least_rounds: the fewest rounds of runs that decide.
        shows: `clients` or `epochs`, the number of which is shown with it.
        saved: whether it is of rounds saved: more is sooner, less is later.
    """

    name: str
    own: Sequence[float] = ()
    base: Sequence[float] = ()
    low: float = 0.0
    high: float = math.inf
    signed: bool = True
    sized: bool = False
    printed: Sequence[float] = ()
    digits: int = 1
    equal: bool = False
    part: str = ""
    lacks: str = ""
    runs: pd.DataFrame = NO_RUNS
    least_rounds: int = 0
    shows: str = ""
    saved: bool = False


class Differences(tuple[Difference, ...]):
    """The differences of a claim; all of them have to hold for it to be reproduced.

    Each method is a claim on where they lie. `printed` is the size that its words
    give, of all columns; without it the size is that of its table, if there is one.
    """

    def __add__(self, others: Iterable[Difference]) -> Differences:  # type: ignore[override]
        """Returns both, in this order."""
        return Differences([*self, *others])

    def is_more(self, printed: Size = None) -> Differences:
        """Puts them above 0."""
        return self._within(0.0, math.inf, printed, signed=True)

    def is_less(self, printed: Size = None) -> Differences:
        """Puts them below 0."""
        return self._within(-math.inf, 0.0, printed, signed=True)

    def is_none(self, tolerance: float = 0.0) -> Differences:
        """Puts them at 0, within a tolerance."""
        return self._within(-tolerance, tolerance, sized=True)

    def is_between(self, low: float, high: float) -> Differences:
        """Puts them within two limits."""
        return self._within(low, high, sized=True)

    def is_at_most(self, high: float) -> Differences:
        """Puts them at a limit or below."""
        return self._within(-math.inf, high)

    def is_at_least(self, low: float) -> Differences:
        """Puts them at a limit or above."""
        return self._within(low, math.inf)

    def _within(
        self,
        low: float,
        high: float,
        printed: Size = None,
        *,
        signed: bool = False,
        sized: bool = False,
    ) -> Differences:
        sizes = () if printed is None else (np.min(printed), np.max(printed))
        return Differences(
            one._replace(
                low=low,
                high=high,
                signed=signed,
                sized=sized,
                # A size that the words give is of all columns.
                printed=one.printed if one.part or not sizes else sizes,
            )
            for one in self
        )


class Answer(NamedTuple):
    """The verdict of runs on a claim.

    Attributes:
        ours: our numbers as text.
        verdict: one of `VERDICTS`.
        why: the reason.
        decided_by: the names of the differences that decide, where not all of them do.
        seeds: how many would decide it, were mean and deviation those seen; empty where
            no runs show that, or other or longer runs are needed.
        shown: the deciding numbers, three at most, without noise floors; rounds saved
            as sooner or later.
        runs: the runs that it is of.
    """

    ours: str
    verdict: str
    why: str
    decided_by: str = ""
    seeds: str = ""
    shown: str = ""
    runs: pd.DataFrame = NO_RUNS


def judged(differences: Iterable[Difference]) -> Answer:
    """Returns the answer to a claim.

    A difference that is refuted refutes the claim. Runs that are not the paper's
    experiment, or are shorter than `least_rounds`, decide only where weights are equal,
    which is a matter of the data: of all of it, and of the paper's.
    """
    every = list(differences)
    if not every:
        raise ValueError("a claim has no difference")
    table = pd.DataFrame(map(_row_of_difference, every))
    verdict = next(
        word
        for word in (NOT_REPRODUCED, TOO_SHORT, OPEN, REPRODUCED)
        if word in {*table["verdict"]}
    )
    decides = table["verdict"] == verdict
    reasons = table[decides]["why"].str.split("; ").explode()
    why = [
        f"in {count} of {len(every)} numbers {reason}"
        if verdict == REPRODUCED and count < len(every)
        else reason
        for reason, count in reasons[reasons != ""].value_counts(sort=False).items()
    ]
    # One refutes a claim; for all else each of them has to be decided.
    seeds = table[decides]["seeds"]
    enough = seeds.min() if verdict == NOT_REPRODUCED else seeds.max()
    measured = table["ours"] != ""
    shown = table[decides & measured] if (decides & measured).any() else table[measured]
    shown = shown if len(shown) < 4 else shown[:2]
    left = int(measured.sum()) - len(shown)
    more = [f"{left} more"] if left else []
    used = [one.runs for one in every if len(one.runs)]
    runs = pd.concat(used).drop_duplicates(_KEY) if used else NO_RUNS
    return Answer(
        _with_sizes(table[measured]["ours"], every[0].shows, runs),
        verdict,
        "; ".join(why),
        "" if decides.all() else "; ".join(table[decides]["name"]),
        str(enough) if seeds.all() else "",
        _with_sizes([*shown["shown"], *more], every[0].shows, runs),
        runs,
    )


_KEY = ["experiment", "folder", "seed", "label"]


def _row_of_difference(one: Difference) -> Mapping[str, Any]:
    """Returns a difference's verdict, why, the seeds that decide, and its number."""
    of_data, others = _caveats(one)
    one = one._replace(equal=one.equal and not of_data)
    stat = {} if one.lacks else paired_statistics.difference(one.own, one.base)
    verdict, why = _verdict(one, stat, of_data + others)
    enough = stat.get("seeds", 0) >= paired_statistics.MIN_SEEDS
    lacks_rounds = bool(of_data or others or one.part or enough)
    return {
        "name": one.name,
        "verdict": verdict,
        "why": why,
        # More seeds alone would not decide it.
        "seeds": 0 if verdict == TOO_SHORT and lacks_rounds else _seeds(one, stat),
        "ours": _number(one, stat) if stat else "",
        "shown": _shown(one, stat) if stat else "",
    }


def _caveats(one: Difference) -> tuple[list[str], list[str]]:
    """Returns why runs are not on the paper's data, and what else they lack."""
    if not len(one.runs):
        return [], []
    runs = one.runs
    caveats = "; ".join(sorted({*runs["data_caveat"]} - {""}))
    data = [f"not on the paper's data: {caveats}"] if caveats else []
    parts = sorted({*runs["image_fraction"]} - {1.0})
    data += [f"on {part:g} of the images" for part in parts]
    readings = sorted({*runs["other_reading"]} - {""})
    others = [f"the only kept runs are with {reading}" for reading in readings]
    shortest = runs["length"].min()
    if shortest < one.least_rounds:
        others.append(
            f"the kept runs have {shortest} rounds, and the claim takes "
            f"{one.least_rounds}"
        )
    return data, others


def _verdict(
    one: Difference, stat: Mapping[str, Any], caveats: Sequence[str]
) -> tuple[str, str]:
    """Returns the verdict on a difference, and why."""
    equal = "the weights are equal in every round"
    if one.equal and one.signed:
        return NOT_REPRODUCED, f"{equal}, so that any difference is noise"
    if one.equal and one.low == -one.high:
        return REPRODUCED, equal
    if one.lacks or caveats:
        return TOO_SHORT, "; ".join(filter(None, [*caveats, one.lacks]))
    if stat["seeds"] < paired_statistics.MIN_SEEDS:
        count = "one seed" if stat["seeds"] == 1 else f"{stat['seeds']} seeds"
        return TOO_SHORT, f"{count}; below five nothing is decided"
    lowest, highest = stat["mean"] - stat["interval"], stat["mean"] + stat["interval"]
    least, most = one.printed or (stat["mean"], stat["mean"])
    if one.part and one.printed and not (least < one.high and most > one.low):
        return TOO_SHORT, "in the columns reached not even the paper's table shows it"
    if one.part and one.sized:  # Rounds saved are more where more rounds are needed.
        return TOO_SHORT, "the columns reached do not decide it"
    of_size = one.sized or (lowest <= most and least <= highest)
    if lowest > one.high or highest < one.low:
        return NOT_REPRODUCED, "the interval excludes the claim"
    # 0 itself belongs to neither sign, and a limit to its tolerance.
    within = one.low <= lowest and highest <= one.high
    if within and not (one.signed and 0.0 in (lowest, highest)):
        return REPRODUCED, "" if of_size else "the same sign, another size"
    if not of_size:
        return NOT_REPRODUCED, "the interval includes 0, not the paper's number"
    if one.part:
        return TOO_SHORT, "the columns reached do not decide it"
    return OPEN, "the interval allows both"


def _seeds(one: Difference, stat: Mapping[str, Any]) -> int:
    """Returns how many seeds decide, were mean and deviation those seen; 0: unknown.

    The interval is then narrow enough to lie on one side of the limit, or to leave out
    the printed size. Weights that are equal need one.
    """
    if one.equal:
        return 1
    mean, deviation = (stat.get(key, math.nan) for key in ("mean", "deviation"))
    least, most = (mean, mean) if one.sized or not one.printed else one.printed
    limits = filter(math.isfinite, (one.low, one.high))
    half = min(abs(mean - limit) for limit in limits)
    half = max(half, least - mean, mean - most)
    if not half > 0 or math.isnan(deviation):
        return 0
    # The normal distribution's count is never too high: Student's t is wider.
    count = max(paired_statistics.MIN_SEEDS, int((1.95 * deviation / half) ** 2))
    while paired_statistics.half_interval(deviation, count) > half:
        count += 1
    return count


def _number(one: Difference, stat: Mapping[str, Any]) -> str:
    """Returns a difference for the table, `LD at 70 % +0.4 ± 0.6, printed +1.6`."""
    text = f"{_name(one)} {_signed(one, stat['mean'])}{_half(one, stat)}"
    # It is 0 where the other side is a constant, which no seed moves.
    if stat["noise_floor_of_mean"] > 0:
        text += f" (noise floor {stat['noise_floor_of_mean']:.{one.digits}f})"
    if one.printed:
        numbers = dict.fromkeys(_signed(one, value) for value in one.printed)
        text += f", printed {' to '.join(numbers)}"
    return text


def _shown(one: Difference, stat: Mapping[str, Any]) -> str:
    """Returns it for the page, `LD at 70 %: 0.4 ± 0.6 rounds sooner (paper: 1.6)`."""

    def number(value: float) -> str:
        return _signed(one, value)[1:] if one.saved else _signed(one, value)

    def direction(value: float) -> str:
        rounded = round(value, one.digits)
        return (" sooner" if rounded > 0 else " later") if one.saved and rounded else ""

    text = f"{_name(one)}: {number(stat['mean'])}{_half(one, stat)}"
    text += f" rounds{direction(stat['mean'])}" if one.saved else ""
    if one.printed:
        sizes = sorted(one.printed, key=abs)
        paper = " to ".join(dict.fromkeys(map(number, sizes)))
        same = direction(sizes[-1]) == direction(stat["mean"])
        text += f" (paper: {paper}{'' if same else direction(sizes[-1])})"
    return text


def _name(one: Difference) -> str:
    return ", ".join(filter(None, [one.name, one.part]))


def _signed(one: Difference, value: float) -> str:
    # Rounded first: a mean of -0.01 is no -0.0.
    return f"{round(value, one.digits) + 0.0:+.{one.digits}f}"


def _half(one: Difference, stat: Mapping[str, Any]) -> str:
    """Returns half of the interval, which fewer than five seeds do not have."""
    half = stat["interval"]
    return "" if math.isnan(half) else f" ± {half:.{one.digits}f}"


def _with_sizes(texts: Iterable[str], shows: str, runs: pd.DataFrame) -> str:
    """Returns numbers with the count of the runs' clients or epochs, if it is shown."""
    text = "; ".join(texts)
    if not (text and shows):
        return text
    counts = sorted({*runs["data_clients" if shows == "clients" else "length"]})
    return f"{text} ({' or '.join(map(str, counts))} {shows})"
