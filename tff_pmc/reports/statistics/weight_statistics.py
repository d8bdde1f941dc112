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
from scipy import stats

from tff_pmc import scores
from tff_pmc.record.client_statistics import Floats
from tff_pmc.record.metric import float32_digits
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.reports.statistics.paired_statistics import ordering_of
from tff_pmc.settings.flag_values import all_orderings
from tff_pmc.settings.row_names import BASELINE, FED_AVG

WEIGHT_STATISTICS = ("coefficient_of_variation", "effective_clients", "total_variation")
"""How unequal an ordering's weights are, and, as `total_variation`, which share of the
weight would move if the ordering replaced the current score."""

WEIGHT_COLUMNS = (*WEIGHT_STATISTICS, "from_first")
"""The columns of `mean_weight_statistics`; `from_first` is how far (total variation)
the weights are from those by the ordering's first criterion alone."""

QUARTILES = ("quartile_1", "quartile_2", "quartile_3", "quartile_4")
"""The mean weight of each quarter of the clients, from the quarter with the lowest
values of a criterion to the one with the highest."""

CRITERION_STATISTICS = ("rank_correlation", *QUARTILES)
"""How the clients' weights follow a criterion."""


def weight_figures(results: Results) -> pd.DataFrame:
    """Returns how unequal each ordering's weights were, and how far from the current.

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
    ordering it is the initial one. The baseline `FedAvg` is the ordering `DS`. Without
    raw criteria the table is empty.
    """
    bases = results.only(label=baseline)
    criteria = bases.setting("criteria", ())
    base = BASELINE if baseline == FED_AVG else ordering_of(baseline)
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
        `round`, `client`, `weight` and `relative`, the weight divided by the mean
        weight of the round, which is 1 if all have the same weight. Rounds in which no
        client has a weight are skipped.
    """
    included, relative = _relative_to_round(results)
    columns = included[[*RUN_KEY, "round", "client", "weight"]]
    return columns.assign(relative=relative["weight"])


def recorded_criteria(results: Results) -> list[str]:
    """Returns the codes of the criteria that the runs recorded of their clients."""
    others = {*RUN_KEY, "round", "client", "excluded", "weight"}
    return [name for name in results.cohort if name not in others]


def weights_by_client(results: Results) -> pd.DataFrame:
    """Returns the mean weight and the mean criteria of each client.

    Returns:
        One row per run and client, the index, over the rounds in which the client was
        not excluded: `rounds`, their number; `weight`, the mean of
        `relative_weights`; and the mean of each recorded criterion.
    """
    codes = recorded_criteria(results)
    included, relative = _relative_to_round(results)
    table = included[[*RUN_KEY, "client", *codes]].assign(weight=relative["weight"])
    by_client = table.groupby([*RUN_KEY, "client"])
    means = by_client[["weight", *codes]].mean()
    means.insert(0, "rounds", by_client.size())
    return means


def weights_by_criterion(results: Results) -> pd.DataFrame:
    """Returns whom the weights favor: how they follow each recorded criterion.

    A client's weight and criterion are relative to the mean of the round's cohort, so
    that a criterion that falls while the model learns is compared within each round,
    and then means over the client's rounds. Each client counts once.

    Returns:
        One row per run and criterion that it recorded, with the columns `seed`,
        `label`, `criterion`, `clients` (their number) and `CRITERION_STATISTICS`:
        Spearman's rank correlation between weight and criterion, and the mean weight of
        each quarter of the clients by the criterion, where 1 is an equal weight.
        Clients with equal values share their mean weight. All are NaN where the
        criterion is constant, the correlation also where the weight is, and the
        quartiles below four clients.
    """
    codes = recorded_criteria(results)
    included, relative = _relative_to_round(results, codes)
    keys = [included[name] for name in (*RUN_KEY, "client")]
    # Of float32 numbers, more digits are noise, and no order of clients.
    means = relative.groupby(keys, sort=False).mean().round(6)
    is_recorded = included[codes].notna().groupby(keys[:2]).any()
    rows = [
        {
            "seed": seed,
            "label": label,
            "criterion": code,
            **_criterion_statistics(run, code),
        }
        for (seed, label), run in means.groupby(level=RUN_KEY, sort=False)
        for code in codes
        if is_recorded.loc[(seed, label), code]
    ]
    columns = [*RUN_KEY, "criterion", "clients", *CRITERION_STATISTICS]
    return pd.DataFrame(rows, columns=columns)


def _relative_to_round(
    results: Results, codes: Sequence[str] = ()
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Returns the included clients of each round, and `weight` and criteria relative.

    They are divided by their mean over the round's clients; of a criterion whose mean
    is 0 they are NaN. Rounds whose weights are all 0 are skipped.
    """
    cohort = results.cohort
    included = cohort[cohort["excluded"] == 0].dropna(subset=["weight"])
    values = included[["weight", *codes]].astype(float)
    keys = [included[name] for name in (*RUN_KEY, "round")]
    means = values.groupby(keys).transform("mean")
    relative = values / means.where(means != 0)
    is_weighted = relative["weight"].notna()
    return included[is_weighted], relative[is_weighted]


def _criterion_statistics(run: pd.DataFrame, code: str) -> dict[str, Any]:
    """Returns the statistics of one criterion, of a row per client."""
    both = run[["weight", code]].dropna()
    weight, criterion = both["weight"], both[code]
    statistics: dict[str, Any] = {"clients": len(both)}
    if criterion.nunique() < 2:
        return statistics
    if weight.nunique() > 1:
        statistics["rank_correlation"] = stats.spearmanr(criterion, weight)[0]
    if len(both) >= len(QUARTILES):
        shared = weight.groupby(criterion).transform("mean")
        ordered = shared.to_numpy()[criterion.argsort(kind="stable")]
        quarters = np.array_split(ordered, len(QUARTILES))
        statistics.update(zip(QUARTILES, (quarter.mean() for quarter in quarters)))
    return statistics
