"""The paired effect of one step with another weighting.

In a run with `--counterfactuals` the models of other weightings were also judged, on
the same sums of the same clients. A difference of two of them is of that one round; how
they vary over the rounds bounds how large their mean is. Rounds follow on one another,
so that its error is that of the means of moving blocks (Meketon and Schmeiser,
Overlapping Batch Means, Winter Simulation Conference 1984); and many weightings are
tried, so that what differs is decided by Holm's rule (Scandinavian Journal of
Statistics 6, 1979).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from tff_pmc import scores
from tff_pmc.record.results import BASELINE, Results
from tff_pmc.reports.statistics.weight_statistics import cohorts, normalization_of

COUNTERFACTUAL = "counterfactual"
"""The kind of the rows of `Results.candidates` that are used here."""

MIN_ROUNDS = 10
"""The fewest judged rounds of which an interval is given."""

MEASURES = {"accuracy": "accuracy", "worst_tenth": "worst tenth"}
"""What is compared, by its columns, and in words."""

ALPHA = 0.05
"""The level of the intervals, and of what differs."""


def effects(run: Results) -> pd.DataFrame:
    """Returns each weighting's mean difference from the baseline's, in points.

    `run` is one run. The baseline is DS where it was judged, else the weighting in
    force in the first judged round, both with the run's server rate. Columns:
    `weighting` (with its server rate where it is another), `baseline`, `rounds`, and of
    `accuracy` and `worst_tenth` each `_mean`, `_interval` (half of the 95 % interval;
    empty below `MIN_ROUNDS` rounds), `_p` (by Holm over all weightings), `_early` and
    `_late` (the means of the first and the second half of the rounds); and
    `total_variation`, the mean share of weight that it moves away from the weighting in
    force, empty where the run does not have all criteria of the weighting.
    """
    record = run.candidates[run.candidates["kind"] == COUNTERFACTUAL]
    first = record[record["kept"] == 1].iloc[0]
    own_rate = float(first["rate"])
    names = record["ordering"].astype(str)
    other = record["rate"] != own_rate
    names = names.where(~other, names + " at rate " + record["rate"].map("{:g}".format))
    record = record.assign(name=names, total_variation=_weight_moved(run, record))
    in_order = list(dict.fromkeys(names))
    baseline = BASELINE if BASELINE in in_order else str(first["ordering"])
    points = {
        "accuracy": 100 * record["correct"] / record["examples"],
        "worst_tenth": 100 * record["worst_tenth"].astype(float),
    }
    moved = record.groupby("name", sort=False)["total_variation"].mean()
    others = [name for name in in_order if name != baseline]
    table = pd.DataFrame({"weighting": others, "baseline": baseline})
    for measure, values in points.items():
        wide = record.assign(value=values).pivot(
            index="round", columns="name", values="value"
        )
        differences = wide[others].sub(wide[baseline], axis=0).to_numpy(float)
        table["rounds"] = len(wide)
        for column, values in _summary(differences).items():
            table[f"{measure}_{column}"] = values
    table["total_variation"] = moved[others].to_numpy()
    return table


def _weight_moved(run: Results, record: pd.DataFrame) -> list[float]:
    """Returns the share of weight that each weighting moves from the current one."""
    criteria = list(run.setting("criteria", ()))
    named = {
        label: score_from_label(label, criteria)
        for label in record["ordering"].unique()
    }
    by_round = {key[-1]: (raw, shares) for key, raw, shares in cohorts(run)}

    def find_total_variation(label: str, number_of_round: int) -> float:
        score, cohort = named[label], by_round.get(number_of_round)
        if score is None or cohort is None:
            return np.nan
        raw, shares = cohort
        normalization = normalization_of(run.runs.iloc[0])
        weights = scores.participant_weights(raw, score, normalization)
        return scores.total_variation(weights, shares)

    return [
        find_total_variation(*judged)
        for judged in zip(record["ordering"], record["round"])
    ]


def score_from_label(label: str, criteria: Sequence[str]) -> Optional[scores.Score]:
    """Returns the score that a label names, such as `LD,DS` or `OWA[most]:DS,LD`.

    None for a label that does not determine it, as that of a Choquet integral, whose
    numbers are rounded.
    """
    name, _, members = label.rpartition(":")
    codes = members.split(",")
    if not {*codes} <= {*criteria}:
        return None
    kind, _, values = name.rstrip("]").partition("[")
    if kind == "":
        return scores.prioritized(codes, criteria)
    if kind == "product":
        return scores.product(criteria, members=codes)
    if kind == "OWA" and values in scores.QUANTIFIERS:
        return scores.owa(values, criteria, members=codes)
    if kind in ("OWA", "average") and re.fullmatch(r"[\d.,e-]+", values):
        weights = np.array(values.split(","), float)
        make = scores.owa if kind == "OWA" else scores.weighted_average
        # A label has four digits of each, whose sum may miss 1.
        return make(tuple(weights / weights.sum()), criteria, members=codes)
    return None


def _summary(differences: npt.NDArray[np.float64]) -> dict[str, Any]:
    """Returns the figures of differences, [rounds, weightings]."""
    count = len(differences)
    mean = differences.mean(axis=0)
    half = -(-count // 2)
    late = differences[half:].mean(axis=0) if count > 1 else np.full(len(mean), np.nan)
    interval, p = (np.full(len(mean), np.nan) for _ in range(2))
    if count >= MIN_ROUNDS and np.isfinite(differences).all():
        error, freedom = error_of_mean(differences)
        interval = error * special.stdtrit(freedom, 1 - ALPHA / 2)
        ratio = np.divide(mean, error, out=np.zeros_like(mean), where=error > 0)
        ratio[(error == 0) & (mean != 0)] = np.inf  # Equal in all rounds, and not 0.
        p = holm(2 * special.stdtr(freedom, -np.abs(ratio)))
    early = differences[:half].mean(axis=0)
    values = mean, interval, p, early, late
    return dict(zip(("mean", "interval", "p", "early", "late"), values))


def error_of_mean(
    values: npt.NDArray[np.float64],
) -> tuple[npt.NDArray[np.float64], float]:
    """Returns the standard error of means over rounds, and its degrees of freedom.

    It is by the means of moving blocks as long as the root of the number of rounds,
    with 1.5 (n / length - 1) degrees of freedom. For rounds that are correlated by .5
    the interval that follows covers .89 of the times for 20 rounds, .92 for 40 and .93
    for 100, where .95 is meant, and for rounds that are not, .95 to .96 (seen in 4,000
    simulated series each).
    """
    count = len(values)
    size = max(1, round(count**0.5))
    blocks = np.lib.stride_tricks.sliding_window_view(values, size, axis=0)
    apart = blocks.mean(axis=-1) - values.mean(axis=0)
    scale = size / ((count - size + 1) * (count - size))
    error: npt.NDArray[np.float64] = np.sqrt(scale * np.square(apart).sum(axis=0))
    return error, 1.5 * (count / size - 1)


def holm(p: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Returns p-values corrected for their number by Holm's step-down rule."""
    order = np.argsort(p, kind="stable")
    factors = len(p) - np.arange(len(p))
    stepped = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    corrected: npt.NDArray[np.float64] = np.empty(len(p))
    corrected[order] = stepped
    return corrected
