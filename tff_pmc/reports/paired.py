"""Differences seed by seed, beside those of seeds alone (the A/A control)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Callable

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from tff_pmc.reports.pages import Block, Heading, Table
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import RecordError

MIN_SEEDS = 5
"""The fewest seeds from which a verdict is given."""

NOT_DECIDED = ("undecided", "censored")

COLUMNS = (
    *("seeds", "mean", "deviation", "interval", "noise_floor"),
    *("noise_floor_of_mean", "more_in", "less_in", "verdict"),
)


def labels(by_seed: Mapping[int, Sequence[Run]]) -> list[str]:
    """Returns the labels of the runs, which are the same under every seed.

    Raises:
        RecordError: a seed has other runs than the first.
    """
    first = [run.label for run in next(iter(by_seed.values()))]
    for seed, runs in by_seed.items():
        found = [run.label for run in runs]
        if found != first:
            raise RecordError(
                f"seed {seed} has the runs {', '.join(found)}; each seed needs the "
                f"same, {', '.join(first)}"
            )
    return first


def by_measure(
    by_seed: Mapping[int, Sequence[Run]],
    measures: Callable[[Run], Mapping[str, float]],
) -> dict[tuple[str, str], list[float]]:
    """Returns the measures under each seed, by (measure, label)."""
    values: dict[tuple[str, str], list[float]] = {}
    for runs in by_seed.values():
        for run in runs:
            for measure, value in measures(run).items():
                values.setdefault((measure, run.label), []).append(value)
    return values


def rows(
    by_seed: Mapping[int, Sequence[Run]],
    measures: Callable[[Run], Mapping[str, float]],
    base_of: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Returns the differences of each run in each measure from its baseline.

    Args:
        by_seed: the runs of each seed, of the same labels.
        measures: a function that gives the measures of a run by their names.
        base_of: label -> the label of its baseline; its own for a baseline.

    Returns:
        `label`, `measure` and the columns `COLUMNS`.
    """
    values = by_measure(by_seed, measures)
    return [
        {
            "label": label,
            "measure": measure,
            **difference(own, values[measure, base_of[label]]),
        }
        for (measure, label), own in values.items()
        if label != base_of[label]
    ]


def difference(own: Sequence[float], base: Sequence[float]) -> dict[str, Any]:
    """Returns the differences of a run's measure from the baseline's, seed by seed.

    Args:
        own: the measure under each seed; infinite where it is censored.
        base: the baseline's, under the same seeds.

    Returns:
        The columns `COLUMNS`. `mean` and `deviation` are of the differences, `interval`
        is half the width of the 95 % confidence interval of the mean (Student's t;
        empty below `MIN_SEEDS`); all three are empty where a side is censored.
        `noise_floor` is the standard deviation of the difference between the baseline
        and itself under another seed, empty where one is censored;
        `noise_floor_of_mean` is it over the root of the number of seeds. `more_in` and
        `less_in` count the seeds under which the run has more, or less. `verdict` is
        `more` or `less` by the interval, `not shown` where it contains 0, `censored`,
        or `undecided` below `MIN_SEEDS`.
    """
    paired = _paired(np.array(own), np.array(base))
    floor = math.nan
    if len(base) > 1 and np.isfinite(base).all():
        pairs = itertools.permutations(base, 2)
        floor = float(np.std([a - b for a, b in pairs]))
    floors = {
        "noise_floor": floor,
        "noise_floor_of_mean": floor / math.sqrt(len(base)),
    }
    found = {**paired, **floors}
    return {name: found[name] for name in COLUMNS}


def _paired(
    own: npt.NDArray[np.float64], base: npt.NDArray[np.float64]
) -> dict[str, Any]:
    count, mean, deviation, interval = len(own), math.nan, math.nan, math.nan
    verdict = "undecided"
    censored = not np.isfinite([own, base]).all()
    if not censored:
        differences = own - base
        mean = float(differences.mean())
        deviation = float(differences.std(ddof=1)) if count > 1 else math.nan
    if count >= MIN_SEEDS:
        quantile = float(stats.t.ppf(0.975, count - 1))
        interval = quantile * deviation / math.sqrt(count)
        shown = "more" if mean > 0 else "less"
        verdict = "not shown" if abs(mean) <= interval else shown
        verdict = "censored" if censored else verdict
    return {
        "seeds": count,
        "mean": mean,
        "deviation": deviation,
        "interval": interval,
        "more_in": int((own > base).sum()),
        "less_in": int((own < base).sum()),
        "verdict": verdict,
    }


def blocks(
    rows: pd.DataFrame, what: str, baseline: str, digits: Callable[[str], int]
) -> list[Block]:
    """Returns a part of a page for each measure, and below them what was found.

    Args:
        rows: the columns `what`, `measure` and `COLUMNS`.
        what: the word for a run, `ordering` or `system`.
        baseline: the name of what they are held against.
        digits: gives the number of decimals of a measure.
    """
    made: list[Block] = []
    for measure, part in rows.groupby("measure", sort=False):
        table = Table(grid(part, what, baseline, digits(str(measure))))
        made += [Heading(str(measure)), table]
    return [*made, *closing(rows)]


def grid(rows: pd.DataFrame, what: str, baseline: str, digits: int) -> list[list[str]]:
    """Returns the lines of a table of differences; see `blocks`."""
    head = [what, f"minus {baseline}", "noise floor", "of the mean", "effect"]
    lines = [
        [
            str(row[what.replace(" ", "_")]),
            _mean(row, digits),
            *(
                number(row[name], f".{digits}f")
                for name in ("noise_floor", "noise_floor_of_mean")
            ),
            str(row["verdict"]),
        ]
        for row in rows.to_dict("records")
    ]
    return [head, *lines]


def closing(rows: pd.DataFrame) -> list[str]:
    """Returns sentences on the number of differences found, and expected by chance."""
    decided = rows[~rows["verdict"].isin(NOT_DECIDED)]
    found = int((decided["verdict"] != "not shown").sum())
    lines = []
    if len(decided):
        lines += [
            f"{found} of {len(decided)} comparisons lie outside their interval; about "
            f"{len(decided) / 20:.1f} would by chance.",
        ]
    if (rows["seeds"] < MIN_SEEDS).any():
        lines.append(f"Under {MIN_SEEDS} seeds nothing is claimed.")
    return lines


def _mean(row: Mapping[Hashable, Any], digits: int) -> str:
    """Returns the mean and its interval; of censored rounds, the signs alone."""
    if math.isnan(row["mean"]):
        return (
            f"later in {row['more_in']} and earlier in {row['less_in']} of "
            f"{row['seeds']} seeds"
        )
    interval = number(row["interval"], f".{digits}f")
    return f"{row['mean']:+.{digits}f}{interval and f' ± {interval}'}"


def number(value: float, form: str) -> str:
    """Returns a number in a format, or nothing for NaN."""
    return "" if math.isnan(value) else format(value, form)
