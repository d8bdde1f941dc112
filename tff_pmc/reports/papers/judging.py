"""The rule by which claims on differences between runs are judged, the same for all.

A claim is one or more differences. Each is known under each seed, and has the sign or
the limits that the paper's words give it, and the published size. From five seeds on
the 95 % interval of the mean decides: the difference is reproduced where the interval
lies within the limits, and not reproduced where it lies beyond them. An interval that
includes both outcomes is compared with the published size: where that size lies
outside the interval, the difference is not reproduced either.
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
"""The possible verdicts. `open`: enough runs, but the interval includes both outcomes.
`not run far enough`: other or longer runs would decide it. `cannot be tested here`: the
data could not be obtained."""

Size = Union[float, Sequence[float], None]
"""The published size of a difference: a number, or the lowest and the highest."""

NO_RUNS = pd.DataFrame()


class Difference(NamedTuple):
    """A difference under each seed, and what the paper claims of it.

    Attributes:
        name: what is compared, for the reader.
        values: the compared value under each seed.
        baseline_values: the baseline's value under the same seeds; the difference is
            values minus baseline values.
        low: the lowest difference that the paper claims.
        high: the highest.
        excludes_zero: whether the claim is on the sign, so that 0 does not satisfy it.
        limits_are_sizes: whether the limits bound the size of the difference. Then
            neither the published size nor a part of the columns decides anything.
        printed: the lowest and the highest size that the paper prints; empty for none.
        digits: decimals that are shown.
        equal: whether both sides weigh the clients alike in every round, so that they
            are one algorithm.
        columns_reached: the part of the columns that is compared, `2 of 9 columns`;
            empty for all.
        missing: why the difference cannot be measured; the values are empty then.
        runs: the runs that are compared, as `paper_runs.kept_runs` has them.
        least_rounds: the fewest rounds of runs that decide.
        count_shown: `clients` or `epochs`: their number is shown with the difference.
        is_rounds_saved: whether it is a number of rounds saved: more is sooner, less is
            later.
    """

    name: str
    values: Sequence[float] = ()
    baseline_values: Sequence[float] = ()
    low: float = 0.0
    high: float = math.inf
    excludes_zero: bool = True
    limits_are_sizes: bool = False
    printed: Sequence[float] = ()
    digits: int = 1
    equal: bool = False
    columns_reached: str = ""
    missing: str = ""
    runs: pd.DataFrame = NO_RUNS
    least_rounds: int = 0
    count_shown: str = ""
    is_rounds_saved: bool = False


class Differences(tuple[Difference, ...]):
    """The differences of a claim; it is reproduced only if all of them are.

    Each method claims where the differences lie. `printed` is the size that the paper's
    words give for all columns; by default it is that of the paper's table, if any.
    """

    def __add__(self, others: Iterable[Difference]) -> Differences:  # type: ignore[override]
        """Returns these differences, then the others."""
        return Differences([*self, *others])

    def is_more(self, printed: Size = None) -> Differences:
        """Claims that they are above 0."""
        return self._within_limits(0.0, math.inf, printed, excludes_zero=True)

    def is_less(self, printed: Size = None) -> Differences:
        """Claims that they are below 0."""
        return self._within_limits(-math.inf, 0.0, printed, excludes_zero=True)

    def is_none(self, tolerance: float = 0.0) -> Differences:
        """Claims that they are 0, within a tolerance."""
        return self._within_limits(-tolerance, tolerance, limits_are_sizes=True)

    def is_between(self, low: float, high: float) -> Differences:
        """Claims that they lie between two limits."""
        return self._within_limits(low, high, limits_are_sizes=True)

    def is_at_most(self, high: float) -> Differences:
        """Claims that they are at most a limit."""
        return self._within_limits(-math.inf, high)

    def is_at_least(self, low: float) -> Differences:
        """Claims that they are at least a limit."""
        return self._within_limits(low, math.inf)

    def _within_limits(
        self,
        low: float,
        high: float,
        printed: Size = None,
        *,
        excludes_zero: bool = False,
        limits_are_sizes: bool = False,
    ) -> Differences:
        sizes = () if printed is None else (np.min(printed), np.max(printed))
        return Differences(
            difference._replace(
                low=low,
                high=high,
                excludes_zero=excludes_zero,
                limits_are_sizes=limits_are_sizes,
                # A size in words is that of all columns.
                printed=difference.printed
                if difference.columns_reached or not sizes
                else sizes,
            )
            for difference in self
        )


class Judgment(NamedTuple):
    """The verdict of runs on a claim.

    Attributes:
        ours: our numbers as text.
        verdict: one of `VERDICTS`.
        why: the reason.
        decided_by: the names of the differences that decide; empty where all do.
        seeds: how many seeds would decide it, if mean and deviation stayed the same;
            empty where no runs show that, or other or longer runs are needed.
        shown: the deciding numbers, three at most, without noise floors; rounds saved
            as sooner or later.
        runs: the runs that were judged.
    """

    ours: str
    verdict: str
    why: str
    decided_by: str = ""
    seeds: str = ""
    shown: str = ""
    runs: pd.DataFrame = NO_RUNS


def judge(differences: Iterable[Difference]) -> Judgment:
    """Returns the verdict on a claim's differences.

    One refuted difference refutes the claim. Runs that are not the paper's experiment,
    or are shorter than `least_rounds`, decide only where weights are equal: that
    depends on the data alone, provided that they are all of the paper's.
    """
    differences = list(differences)
    if not differences:
        raise ValueError("a claim has no difference")
    table = pd.DataFrame(map(_difference_row, differences))
    verdict = next(
        word
        for word in (NOT_REPRODUCED, TOO_SHORT, OPEN, REPRODUCED)
        if word in {*table["verdict"]}
    )
    decides = table["verdict"] == verdict
    reasons = table[decides]["why"].str.split("; ").explode()
    why = [
        f"in {count} of {len(differences)} numbers {reason}"
        if verdict == REPRODUCED and count < len(differences)
        else reason
        for reason, count in reasons[reasons != ""].value_counts(sort=False).items()
    ]
    # One refuted difference is enough; for other verdicts all have to be decided.
    seeds = table[decides]["seeds"]
    seeds_needed = seeds.min() if verdict == NOT_REPRODUCED else seeds.max()
    measured = table["ours"] != ""
    shown = table[decides & measured] if (decides & measured).any() else table[measured]
    shown = shown if len(shown) < 4 else shown[:2]
    num_hidden = int(measured.sum()) - len(shown)
    hidden = [f"{num_hidden} more"] if num_hidden else []
    used = [difference.runs for difference in differences if len(difference.runs)]
    runs = pd.concat(used).drop_duplicates(_KEY) if used else NO_RUNS
    count_shown = differences[0].count_shown
    return Judgment(
        _join_with_count(table[measured]["ours"], count_shown, runs),
        verdict,
        "; ".join(why),
        "" if decides.all() else "; ".join(table[decides]["name"]),
        str(seeds_needed) if seeds.all() else "",
        _join_with_count([*shown["shown"], *hidden], count_shown, runs),
        runs,
    )


_KEY = ["experiment", "folder", "seed", "label"]


def _difference_row(difference: Difference) -> Mapping[str, Any]:
    """Returns a difference's verdict, why, the seeds needed, and its texts."""
    data_caveats, run_caveats = _caveats(difference)
    difference = difference._replace(equal=difference.equal and not data_caveats)
    stat: Mapping[str, Any] = {}
    if not difference.missing:
        stat = paired_statistics.difference(
            difference.values, difference.baseline_values
        )
    caveats = data_caveats + run_caveats
    verdict, why = _verdict_and_reason(difference, stat, caveats)
    has_seeds = stat.get("seeds", 0) >= paired_statistics.MIN_SEEDS
    lacks_rounds = bool(caveats or difference.columns_reached or has_seeds)
    return {
        "name": difference.name,
        "verdict": verdict,
        "why": why,
        # More seeds alone would not decide it.
        "seeds": 0
        if verdict == TOO_SHORT and lacks_rounds
        else _seeds_needed(difference, stat),
        "ours": _table_text(difference, stat) if stat else "",
        "shown": _page_text(difference, stat) if stat else "",
    }


def _caveats(difference: Difference) -> tuple[list[str], list[str]]:
    """Returns how the runs' data differs from the paper's, and how the runs differ."""
    if not len(difference.runs):
        return [], []
    runs = difference.runs
    sources = "; ".join(sorted({*runs["data_caveat"]} - {""}))
    data_caveats = [f"not on the paper's data: {sources}"] if sources else []
    fractions = sorted({*runs["image_fraction"]} - {1.0})
    data_caveats += [f"on {fraction:g} of the images" for fraction in fractions]
    readings = sorted({*runs["other_reading"]} - {""})
    run_caveats = [f"the only kept runs are with {reading}" for reading in readings]
    shortest = runs["length"].min()
    if shortest < difference.least_rounds:
        run_caveats.append(
            f"the kept runs have {shortest} rounds, and the claim takes "
            f"{difference.least_rounds}"
        )
    return data_caveats, run_caveats


def _verdict_and_reason(
    difference: Difference, stat: Mapping[str, Any], caveats: Sequence[str]
) -> tuple[str, str]:
    """Returns the verdict on a difference, and why."""
    equal = "the weights are equal in every round"
    is_partial = bool(difference.columns_reached)
    if difference.equal and difference.excludes_zero:
        return NOT_REPRODUCED, f"{equal}, so that any difference is noise"
    if difference.equal and difference.low == -difference.high:
        return REPRODUCED, equal
    if difference.missing or caveats:
        return TOO_SHORT, "; ".join(filter(None, [*caveats, difference.missing]))
    if stat["seeds"] < paired_statistics.MIN_SEEDS:
        count = "one seed" if stat["seeds"] == 1 else f"{stat['seeds']} seeds"
        return TOO_SHORT, f"{count}; below five nothing is decided"
    lowest, highest = stat["mean"] - stat["interval"], stat["mean"] + stat["interval"]
    least, most = difference.printed or (stat["mean"], stat["mean"])
    paper_shows_it = least < difference.high and most > difference.low
    if is_partial and difference.printed and not paper_shows_it:
        return TOO_SHORT, "in the columns reached not even the paper's table shows it"
    # Later columns need more rounds, of which more can be saved.
    if is_partial and difference.limits_are_sizes:
        return TOO_SHORT, "the columns reached do not decide it"
    has_printed_size = lowest <= most and least <= highest
    has_printed_size |= difference.limits_are_sizes
    if lowest > difference.high or highest < difference.low:
        return NOT_REPRODUCED, "the interval excludes the claim"
    # A limit satisfies its tolerance, but 0 has neither sign.
    within = difference.low <= lowest and highest <= difference.high
    if within and not (difference.excludes_zero and 0.0 in (lowest, highest)):
        return REPRODUCED, "" if has_printed_size else "the same sign, another size"
    if not has_printed_size:
        return NOT_REPRODUCED, "the interval includes 0, not the paper's number"
    if is_partial:
        return TOO_SHORT, "the columns reached do not decide it"
    return OPEN, "the interval allows both"


def _seeds_needed(difference: Difference, stat: Mapping[str, Any]) -> int:
    """Returns how many seeds would decide, with this mean and deviation; 0: unknown.

    The interval is then narrow enough to lie on one side of the limit, or to exclude
    the printed size. Equal weights need one seed.
    """
    if difference.equal:
        return 1
    mean, deviation = (stat.get(key, math.nan) for key in ("mean", "deviation"))
    least, most = mean, mean
    if difference.printed and not difference.limits_are_sizes:
        least, most = difference.printed
    limits = filter(math.isfinite, (difference.low, difference.high))
    half = min(abs(mean - limit) for limit in limits)
    half = max(half, least - mean, mean - most)
    if not half > 0 or math.isnan(deviation):
        return 0
    # The normal distribution's count is never too high: Student's t is wider.
    count = max(paired_statistics.MIN_SEEDS, int((1.95 * deviation / half) ** 2))
    while paired_statistics.half_interval(deviation, count) > half:
        count += 1
    return count


def _table_text(difference: Difference, stat: Mapping[str, Any]) -> str:
    """Returns a difference for the table, `LD at 70 % +0.4 ± 0.6, printed +1.6`."""
    mean = _format_signed(difference, stat["mean"])
    text = f"{_full_name(difference)} {mean}{_half_interval_text(difference, stat)}"
    # The noise floor is 0 where the baseline is a constant, which no seed changes.
    if stat["noise_floor_of_mean"] > 0:
        text += f" (noise floor {stat['noise_floor_of_mean']:.{difference.digits}f})"
    if difference.printed:
        sizes = (_format_signed(difference, size) for size in difference.printed)
        text += f", printed {' to '.join(dict.fromkeys(sizes))}"
    return text


def _page_text(difference: Difference, stat: Mapping[str, Any]) -> str:
    """Returns a difference for the page.

    For example `LD at 70 %: 0.4 ± 0.6 rounds sooner (paper: 1.6)`.
    """
    is_rounds_saved = difference.is_rounds_saved

    def number(value: float) -> str:
        return _format_signed(difference, value)[is_rounds_saved:]

    def direction(value: float) -> str:
        rounded = round(value, difference.digits)
        if not (is_rounds_saved and rounded):
            return ""
        return " sooner" if rounded > 0 else " later"

    half_interval = _half_interval_text(difference, stat)
    text = f"{_full_name(difference)}: {number(stat['mean'])}{half_interval}"
    text += f" rounds{direction(stat['mean'])}" if is_rounds_saved else ""
    if difference.printed:
        sizes = sorted(difference.printed, key=abs)
        printed = " to ".join(dict.fromkeys(map(number, sizes)))
        agrees = direction(sizes[-1]) == direction(stat["mean"])
        text += f" (paper: {printed}{'' if agrees else direction(sizes[-1])})"
    return text


def _full_name(difference: Difference) -> str:
    return ", ".join(filter(None, [difference.name, difference.columns_reached]))


def _format_signed(difference: Difference, value: float) -> str:
    # Rounded first, because a mean of -0.01 would be printed as -0.0.
    return f"{round(value, difference.digits) + 0.0:+.{difference.digits}f}"


def _half_interval_text(difference: Difference, stat: Mapping[str, Any]) -> str:
    """Returns ` ± ` and half of the interval; empty with fewer than five seeds."""
    half = stat["interval"]
    if stat["seeds"] < paired_statistics.MIN_SEEDS or math.isnan(half):
        return ""
    return f" ± {half:.{difference.digits}f}"


def _join_with_count(texts: Iterable[str], count_shown: str, runs: pd.DataFrame) -> str:
    """Returns the texts, with the runs' number of clients or epochs if it is shown."""
    text = "; ".join(texts)
    if not (text and count_shown):
        return text
    column = "data_clients" if count_shown == "clients" else "length"
    counts = " or ".join(map(str, sorted({*runs[column]})))
    return f"{text} ({counts} {count_shown})"


def count_verdicts(verdicts: pd.Series[str]) -> pd.Series[int]:
    """Returns how often each of `VERDICTS` occurs, in their order."""
    return verdicts.value_counts().reindex(VERDICTS, fill_value=0)
