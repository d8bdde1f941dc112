"""Statistics of the clients' weights, computed from the recorded cohorts.

They are not files of a record, because the criteria in `cohort.csv` determine the
weights of every ordering.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from tff_pmc import scores
from tff_pmc.record.client_statistics import Floats
from tff_pmc.record.metric import float32_digits
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.statistics.paired_statistics import ordering_of
from tff_pmc.settings.flag_values import all_orderings

WEIGHT_STATISTICS = ("coefficient_of_variation", "effective_clients", "total_variation")
"""How unequal an ordering's weights are, and, as `total_variation`, which share of the
weight would move if the ordering replaced the current score."""

WEIGHT_COLUMNS = (*WEIGHT_STATISTICS, "from_first")
"""The columns of `mean_weight_statistics`; `from_first` is how far (total variation)
the weights are from those by the ordering's first criterion alone."""


def weight_figures(results: Results) -> pd.DataFrame:
    """Returns how unequal each ordering's weights were: could another have mattered?

    Returns:
        One row per run, round and ordering of `recorded_orderings`, and one for the
        run's own score where it is not one of these, with the columns `seed`, `label`,
        `round`, `ordering`, `in_force` (1 for the score that weighted the round, else
        0) and `WEIGHT_STATISTICS`.
    """
    runs = {(run["seed"], run["label"]): run for _, run in results.runs.iterrows()}
    ordering = results.rounds.set_index([*RUN_KEY, "round"])["ordering"]
    rows: list[dict[str, Any]] = []
    for key, raw, shares in cohorts(results):
        run = runs[key[:2]]
        statistics = round_weight_statistics(
            raw,
            list(run["criteria"]),
            normalization_of(run),
            in_force=ordering[key],
            shares=shares,
        )
        run_and_round = dict(zip([*RUN_KEY, "round"], key))
        rows += [{**run_and_round, **row} for row in statistics]
    columns = [*RUN_KEY, "round", "ordering", "in_force", *WEIGHT_STATISTICS]
    return pd.DataFrame(rows, columns=columns)


def mean_weight_statistics(results: Results, baseline: str) -> pd.DataFrame:
    """Returns the `WEIGHT_COLUMNS` of each ordering, means over the baseline's cohorts.

    A label that is not an ordering of their criteria is excluded; of an adjusted
    ordering it is the initial one. Without raw criteria the table is empty.
    """
    bases = results.only(label=baseline)
    criteria = bases.setting("criteria", ())
    base = ordering_of(baseline)
    labels = dict.fromkeys([base, *map(ordering_of, results.labels)])
    orderings = [
        ordering for ordering in labels if {*ordering.split(",")} <= {*criteria}
    ]
    by_ordering = {
        ordering: scores.prioritized(ordering.split(","), criteria)
        for ordering in [
            *orderings,
            *(ordering.split(",")[0] for ordering in orderings),
        ]
    }
    rows = []
    for _, raw, _ in cohorts(bases):
        weights = {
            ordering: scores.participant_weights(
                raw, score, normalization_of(bases.runs.iloc[0])
            )
            for ordering, score in by_ordering.items()
        }
        for ordering in orderings:
            shares, first_shares = weights[ordering], weights[ordering.split(",")[0]]
            base_shares = weights.get(base)
            statistics = (
                scores.coefficient_of_variation(shares),
                scores.effective_clients(shares),
                math.nan
                if base_shares is None
                else scores.total_variation(shares, base_shares),
                scores.total_variation(shares, first_shares),
            )
            rows.append((ordering, *statistics))
    table = pd.DataFrame(rows, columns=["ordering", *WEIGHT_COLUMNS])
    means: pd.DataFrame = table.groupby("ordering", sort=False).mean().astype(float)
    return means


def cohorts(
    results: Results,
) -> Iterator[tuple[tuple[int, str, int], Floats, Floats]]:
    """Yields each round's cohort without the excluded clients.

    Yields:
        `(seed, label, round)`; the raw criteria of the clients, [clients, m], in the
        order of the run's `criteria`; and the clients' shares of the weight, [clients],
        which sum to 1. Runs that recorded no raw criteria are skipped.
    """
    criteria = results.runs.set_index(RUN_KEY).get("criteria", pd.Series(dtype=object))
    counted = results.cohort[results.cohort["excluded"] == 0]
    for (seed, label, number), part in counted.groupby([*RUN_KEY, "round"], sort=False):
        codes = criteria.get((seed, label))
        if isinstance(codes, (list, tuple)) and {*codes} <= {*part}:
            weights = part["weight"].to_numpy(float)
            raw = np.ascontiguousarray(part[[*codes]].to_numpy(float))
            yield (seed, label, number), raw, weights / (weights.sum() or 1)


def round_weight_statistics(
    raw: Floats,
    criteria: Sequence[str],
    normalization: scores.Normalization,
    *,
    in_force: str,
    shares: Floats,
    others: Mapping[str, Floats] | None = None,
) -> list[dict[str, Any]]:
    """Returns the rows of `weight_figures` for one cohort.

    Args:
        raw: the raw criteria of the clients, [clients, columns]; NaN for excluded
            clients.
        criteria: the codes of the first columns of `raw`; the orderings are those of
            these codes.
        normalization: how the criteria are normalized.
        in_force: the label of the score that weighted the round.
        shares: the clients' shares of the weight in the round, [clients]; they sum to
            1.
        others: further weights by label.
    """
    weights = {
        ",".join(order): scores.participant_weights(
            raw, scores.prioritized(order, criteria), normalization
        )
        for order in recorded_orderings(criteria)
    }
    weights = {**weights, in_force: shares, **(others or {})}
    rows = []
    for label, shares_by_label in weights.items():
        statistics = (
            scores.coefficient_of_variation(shares_by_label),
            scores.effective_clients(shares_by_label),
            scores.total_variation(shares_by_label, shares),
        )
        row = {"ordering": label, "in_force": int(label == in_force)}
        rows.append({**row, **dict(zip(WEIGHT_STATISTICS, float32_digits(statistics)))})
    return rows


def recorded_orderings(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the orderings whose weights are compared with the current ones.

    More than four criteria have too many orderings: then each criterion alone.
    """
    if len(criteria) > 4:
        return [(code,) for code in criteria]
    return all_orderings(criteria)


def normalization_of(run: pd.Series[Any]) -> scores.Normalization:
    """Returns how the criteria of a run, a row of `Results.runs`, are normalized."""
    ranges = run.get("criteria_ranges", ())
    bounds = {code: (low, high) for code, low, high in ranges}
    method = run.get("normalization", "sum")
    return scores.Normalization.from_codes(method, list(run["criteria"]), bounds)


def relative_weights(results: Results) -> pd.DataFrame:
    """Returns the weights of the cohorts' clients, also relative to equal weights.

    Returns:
        One row per run, round and client that was not excluded: `seed`, `label`,
        `round`, `client`, `weight` and `relative`, the weight times the number of
        these clients, which is 1 if all have the same weight.
    """
    cohort = results.cohort
    counted = cohort[cohort["excluded"] == 0].dropna(subset=["weight"])
    size = counted.groupby([*RUN_KEY, "round"])["weight"].transform("size")
    columns = counted[[*RUN_KEY, "round", "client", "weight"]]
    return columns.assign(relative=counted["weight"] * size)
