"""Differences between runs under the same seeds, and the noise of seeds alone.

Numbers in, numbers out: nothing here depends on where they came from.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results

MIN_SEEDS = 5
"""The fewest seeds from which a verdict is given."""

COLUMNS = (
    *("seeds", "mean", "deviation", "interval", "noise_floor"),
    *("noise_floor_of_mean", "more_in", "less_in", "verdict"),
)


def ordering_of(label: str) -> str:
    """Returns the ordering that a run's label begins with.

    That is `LD,DS` of `LD,DS (backtracking), server adam`.
    """
    return label.split(" ")[0].rstrip(",")


def check_paired(results: Results) -> list[str]:
    """Returns the labels of runs under several seeds.

    Raises:
        RecordError: a seed lacks a run that another has; or runs of one label differ in
            their number of rounds, where none was ended by a callback, or in a setting
            other than the seeds.
    """
    labels, length = results.labels, planned_length(results)
    for label, runs in results.runs.groupby("label", sort=False):
        there = sorted(runs["seed"])
        if there != results.seeds:
            lacking = sorted(set(results.seeds) - set(there))[0]
            raise RecordError(
                f"seed {lacking} has no run of {label}; each seed needs the same "
                f"runs, {'; '.join(labels)}"
            )
        lengths = {seed: int(length[seed, label]) for seed in there}
        first = there[0]
        for seed, rounds in lengths.items():
            if rounds != lengths[first]:
                raise RecordError(
                    f"{label} has {rounds} rounds under seed {seed} and "
                    f"{lengths[first]} under seed {first}: resume the shorter run, or "
                    "exclude its seed"
                )
        results.only(label=label).check_settings()
    return labels


def planned_length(results: Results) -> pd.Series[int]:
    """Returns the recorded rounds of each run; the planned ones if it ended early.

    A run that a callback has ended is complete, however many rounds it took.
    """
    length = results.length.copy()
    for run in results.runs.to_dict("records"):
        if isinstance(run.get("ended_early"), str) and run["ended_early"]:
            length[run["seed"], run["label"]] = int(run["rounds"])
    return length


def half_interval(deviation: Any, count: int) -> Any:
    """Returns half the 95 % confidence interval of a mean over `count` seeds.

    It is Student's t with `count - 1` degrees of freedom, of the deviation of a sample;
    NaN for one seed.
    """
    if count < 2:
        return deviation * math.nan
    return float(stats.t.ppf(0.975, count - 1)) * deviation / math.sqrt(count)


def difference(own: Sequence[float], base: Sequence[float]) -> dict[str, Any]:
    """Returns the differences of a measure from the baseline's, seed by seed.

    Both have the measure under each seed, infinite where it is censored. Of `COLUMNS`,
    `mean` and `deviation` are of the differences, `interval` is half the width of the
    95 % confidence interval of the mean (`half_interval`; empty for one seed); all
    three are empty where a side is censored. `noise_floor` is the standard deviation of
    the difference between the baseline and itself under another seed, empty where one
    is censored; `noise_floor_of_mean` is it over the root of the number of seeds.
    `more_in` and `less_in` count the seeds under which the run has more, or less.
    `verdict` is `more` or `less` by the interval, `not shown` where it contains 0,
    `censored`, or `undecided` below `MIN_SEEDS`.
    """
    ours, theirs = np.array(own, float), np.array(base, float)
    count, floor, verdict = len(ours), math.nan, "undecided"
    if count > 1 and np.isfinite(theirs).all():
        floor = float(np.std([a - b for a, b in itertools.permutations(theirs, 2)]))
    censored = not np.isfinite([ours, theirs]).all()
    differences = np.full(count, math.nan) if censored else ours - theirs
    mean = float(differences.mean())
    deviation = float(differences.std(ddof=1)) if count > 1 else math.nan
    interval = float(half_interval(deviation, count))
    if count >= MIN_SEEDS:
        shown = "more" if mean > 0 else "less"
        verdict = "not shown" if abs(mean) <= interval else shown
        verdict = "censored" if censored else verdict
    num_more, num_less = int((ours > theirs).sum()), int((ours < theirs).sum())
    floors = (floor, floor / math.sqrt(count))
    values = (count, mean, deviation, interval, *floors, num_more, num_less, verdict)
    return dict(zip(COLUMNS, values))
