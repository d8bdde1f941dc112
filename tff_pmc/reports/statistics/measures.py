"""Measures of runs: a number for each, as a series by seed and label.

They are what reports and claims compare: rounds until devices reach a target, and
accuracies in shares from 0 to 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import pandas as pd
from pandas import Series

from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.record.tables import USUAL_COLUMNS
from tff_pmc.reports.statistics.rounds_to_target import DEVICES, rounds_to_target

_LOWER_IS_BETTER = (
    *("loss", "error", "mae", "mse", "entropy", "perplexity", "divergence"),
    *("false", "deviation"),
)
_HIGHER_IS_BETTER = (
    *("accuracy", "auc", "top", "precision", "recall", "f1", "iou", "r2"),
    *("similarity", "kappa"),
)


def is_lower_better(column: str) -> bool | None:
    """Returns whether a metric's name says that lower values are better.

    True for names with a word such as `loss` or `error`, False for those with one such
    as `accuracy`, `auc` or `top`, and None for other names.
    """
    words = re.findall("[a-z]+(?:[0-9]+)?", column.lower())
    words += [word.rstrip("0123456789") for word in words]
    if any(word.endswith(_LOWER_IS_BETTER) for word in words):
        return True
    return False if any(word.endswith(_HIGHER_IS_BETTER) for word in words) else None


def last_round(results: Results, column: str = "accuracy") -> Series[float]:
    """Returns a column of `rounds` in the last round."""
    values: Series[float] = results.rounds.groupby(RUN_KEY, sort=False)[column].last()
    return values


def best_round(results: Results, column: str = "accuracy") -> Series[float]:
    """Returns a column of `rounds` in the round in which it is best.

    That is the highest accuracy, and the lowest loss.
    """
    by_run = results.rounds.groupby(RUN_KEY, sort=False)[column]
    best: Series[float] = by_run.min() if is_lower_better(column) else by_run.max()
    return best


def second_half(results: Results, column: str = "accuracy") -> Series[float]:
    """Returns the mean of a column of `rounds` over the second half of the rounds.

    If the number of rounds is odd, the second half includes the middle one.
    """
    half = results.rounds.groupby(RUN_KEY, sort=False)["round"].transform("max") // 2
    late = results.rounds[results.rounds["round"] > half]
    means: Series[float] = late.groupby(RUN_KEY, sort=False)[column].mean()
    return means


def mean_of_rounds(
    results: Results, first: int, last: float = math.inf, column: str = "accuracy"
) -> Series[float]:
    """Returns the mean of a column of `rounds` from one round to another."""
    within = results.rounds["round"].between(first, last)
    means: Series[float] = (
        results.rounds[within].groupby(RUN_KEY, sort=False)[column].mean()
    )
    return means


def round_of(
    results: Results, level: Series[float], column: str = "accuracy"
) -> Series[float]:
    """Returns the first round in which a column of `rounds` is at its level or above.

    `level` is also by seed and label; NaN where it is never reached.
    """
    keys = pd.MultiIndex.from_frame(results.rounds[RUN_KEY])
    reached = results.rounds[column].to_numpy() >= level.reindex(keys).to_numpy()
    first = results.rounds[reached].groupby(RUN_KEY, sort=False)["round"].min()
    return first.reindex(pd.MultiIndex.from_frame(results.runs[RUN_KEY]))


def mean_rounds_to(
    results: Results, target: int, devices: Sequence[int] = DEVICES
) -> Series[float]:
    """Returns the mean of the rounds until shares of the devices reach a target.

    Infinite where a share does not reach it. All are percent.
    """
    reached = rounds_to_target(results, [target], devices)
    return reached.fillna(math.inf).groupby(RUN_KEY, sort=False)["rounds"].mean()


def model_metrics(results: Results) -> list[str]:
    """Returns the columns of `rounds` with numbers that a model or plugin added."""
    numbers = results.rounds.select_dtypes("number")
    return [str(name) for name in numbers if name not in (*USUAL_COLUMNS, *RUN_KEY)]
