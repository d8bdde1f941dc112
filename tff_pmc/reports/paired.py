"""Differences seed by seed, beside those of seeds alone (the A/A control)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError

MIN_SEEDS = 5
"""The fewest seeds from which a verdict is given."""

COLUMNS = (
    *("seeds", "mean", "deviation", "interval", "noise_floor"),
    *("noise_floor_of_mean", "more_in", "less_in", "verdict"),
)

BySeed = Mapping[int, Sequence[Run]]
"""The runs of each seed, of the same labels."""

Measures = Callable[[Run], Mapping[str, float]]
"""What gives the measures of a run by their names."""


def every(by_seed: BySeed) -> list[Run]:
    """Returns the runs of all seeds."""
    return [run for runs in by_seed.values() for run in runs]


def ordering_of(label: str) -> str:
    """Returns the ordering that a run's label begins with.

    That is `LD,DS` of `LD,DS (backtracking), server adam`.
    """
    return label.split(" ")[0].rstrip(",")


def by_label(
    runs: Iterable[Run], label_of: Callable[[Run], str] = lambda run: run.label
) -> dict[str, Run]:
    """Returns runs by their labels; two of one label are a `RecordError`."""
    found: dict[str, Run] = {}
    for run in runs:
        other = found.setdefault(label_of(run), run)
        if other is not run:
            raise RecordError(
                f"{other.path} and {run.path} are both runs of {label_of(run)}: give "
                "one of each"
            )
    return found


def labels(by_seed: BySeed) -> list[str]:
    """Returns the labels that the runs of each seed have.

    What is no pair is a `RecordError`: another label, seed, setting or number of
    rounds on record.
    """
    firsts = [*next(iter(by_seed.values()))]
    first = [run.label for run in firsts]
    for seed, runs in by_seed.items():
        found = [run.label for run in runs]
        if found != first:
            raise RecordError(
                f"seed {seed} has the runs {', '.join(found)}; each seed needs the "
                f"same, {', '.join(first)}"
            )
        for run, other in zip(runs, firsts):
            own = run.settings.get("batch_seed", seed)
            if own != seed:
                raise RecordError(f"{run.path} is of seed {own}, and not of {seed}")
            length, others = len(run.rounds), len(other.rounds)
            if length != others:
                raise RecordError(
                    f"{run.path} has {length} rounds and {other.path} {others}: finish "
                    "the shorter with --resume, or leave its seed out"
                )
            # What an older record lacks was not there to be set.
            for name in sorted(run.settings.keys() & other.settings.keys()):
                pair = other.settings[name], run.settings[name]
                if pair[0] != pair[1] and not name.endswith("_seed"):
                    raise RecordError(
                        f"{other.path} and {run.path} differ in {name}: {pair[0]} and "
                        f"{pair[1]}"
                    )
    return first


def by_measure(
    by_seed: BySeed, measures: Measures
) -> dict[tuple[str, str], list[float]]:
    """Returns the measures under each seed, by (measure, label)."""
    values: dict[tuple[str, str], list[float]] = {}
    for run in every(by_seed):
        for measure, value in measures(run).items():
            values.setdefault((measure, run.label), []).append(value)
    return values


def table(
    by_seed: BySeed, measures: Measures, base_of: Mapping[str, str]
) -> pd.DataFrame:
    """Returns `label`, `measure` and `COLUMNS` of what is no baseline of its own."""
    values = by_measure(by_seed, measures)
    rows = [
        (label, measure, *difference(own, values[measure, base_of[label]]).values())
        for (measure, label), own in values.items()
        if label != base_of[label]
    ]
    return pd.DataFrame(rows, columns=["label", "measure", *COLUMNS])


def half_interval(deviation: Any, count: int) -> Any:
    """Returns half the 95 % confidence interval of a mean of so many seeds.

    It is Student's t, of the deviation of a sample; NaN below `MIN_SEEDS`.
    """
    if count < MIN_SEEDS:
        return deviation * math.nan
    return float(stats.t.ppf(0.975, count - 1)) * deviation / math.sqrt(count)


def difference(own: Sequence[float], base: Sequence[float]) -> dict[str, Any]:
    """Returns the differences of a run's measure from the baseline's, seed by seed.

    Both have the measure under each seed, infinite where it is censored. Of `COLUMNS`,
    `mean` and `deviation` are of the differences, `interval` is half the width of the
    95 % confidence interval of the mean (Student's t; empty below `MIN_SEEDS`); all
    three are empty where a side is censored. `noise_floor` is the standard deviation of
    the difference between the baseline and itself under another seed, empty where one
    is censored; `noise_floor_of_mean` is it over the root of the number of seeds.
    `more_in` and `less_in` count the seeds under which the run has more, or less.
    `verdict` is `more` or `less` by the interval, `not shown` where it contains 0,
    `censored`, or `undecided` below `MIN_SEEDS`.
    """
    ours, theirs = np.array(own), np.array(base)
    count, floor, interval, verdict = len(ours), math.nan, math.nan, "undecided"
    if count > 1 and np.isfinite(theirs).all():
        floor = float(np.std([a - b for a, b in itertools.permutations(base, 2)]))
    censored = not np.isfinite([ours, theirs]).all()
    differences = np.full(count, math.nan) if censored else ours - theirs
    mean = float(differences.mean())
    deviation = float(differences.std(ddof=1)) if count > 1 else math.nan
    if count >= MIN_SEEDS:
        interval = float(half_interval(deviation, count))
        shown = "more" if mean > 0 else "less"
        verdict = "not shown" if abs(mean) <= interval else shown
        verdict = "censored" if censored else verdict
    more, less = int((ours > theirs).sum()), int((ours < theirs).sum())
    floors = (floor, floor / math.sqrt(count))
    found = (count, mean, deviation, interval, *floors, more, less, verdict)
    return dict(zip(COLUMNS, found))
