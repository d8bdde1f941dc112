"""Tables that follow from those of a record, and so are no files.

`weight_figures` follow from `cohort`, by the scores of the orderings; `groups` from
`clients`, by a table of the clients' attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

import leaf_data
from tff_pmc import scores
from tff_pmc.record.client_statistics import Floats
from tff_pmc.record.metric import ACCURACY, LOSS, float32_digits
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import RUN_KEY, Results
from tff_pmc.settings.flag_values import all_orderings

WEIGHT_STATISTICS = ("coefficient_of_variation", "effective_clients", "total_variation")
"""How unequal an ordering's weights are, and how far from those in force: the share of
weight that it would move."""


def weight_figures(results: Results) -> pd.DataFrame:
    """Returns how unequal each ordering's weights were: could another have mattered?

    Returns:
        A row for each run, round and ordering of `recorded_orderings`, and for the
        score in force where it is none of these: `seed`, `label`, `round`, `ordering`,
        `in_force` (0 or 1) and `WEIGHT_STATISTICS`.
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


def cohorts(
    results: Results,
) -> Iterator[tuple[tuple[int, str, int], Floats, Floats]]:
    """Yields each round's cohort without the clients that were left out.

    Each is its seed, label and round; the raw criteria of its clients, [clients, m],
    in the order of the run's `criteria`; and their shares of the weight, [clients],
    which sum to 1. Runs that recorded no raw criteria have none.
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
    """Returns the rows of `weight_figures` of one cohort.

    Args:
        raw: the criteria of its clients, [clients, m]; NaN for clients that were left
            out.
        criteria: the codes of the first of these columns, which are put in order.
        normalization: how they are normalized.
        in_force: the label of the score in force.
        shares: the weights that were taken, [clients], which sum to 1.
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
    """Returns the orderings whose weights are compared with those in force.

    With more than four criteria their orderings are too many: then the single ones.
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
    """Returns the cohorts' weights with `relative`, the weight where an equal one is 1.

    The columns are `seed`, `label`, `round`, `client`, `weight` and `relative`.
    Excluded clients are not among the rows.
    """
    cohort = results.cohort
    counted = cohort[cohort["excluded"] == 0].dropna(subset=["weight"])
    size = counted.groupby([*RUN_KEY, "round"])["weight"].transform("size")
    columns = counted[[*RUN_KEY, "round", "client", "weight"]]
    return columns.assign(relative=counted["weight"] * size)


def groups(results: Results, client_table: leaf_data.ClientTable) -> pd.DataFrame:
    """Returns accuracy, or the loss, by group of clients in each tested round.

    Weights made of attributes can favor one group and harm another (PMC's conclusion);
    this shows it. A boolean attribute makes the groups 0 and 1, any other the clients
    below the median of its values and those at or above it.

    Returns:
        A row for each run, round, attribute and group: `seed`, `label`, `round`,
        `attribute`, `group`, `clients`, their number, the sums of `clients.csv`, and
        `accuracy` or `test_loss`, NaN where a group has no test examples.

    Raises:
        RecordError: no client is recorded.
        DataError: a client is not in the table.
    """
    clients = results.clients
    if clients.empty:
        raise RecordError(
            f"{results.path}: the runs recorded no clients: run without "
            "--record_clients=none"
        )
    names = list(dict.fromkeys(clients["client"]))
    table = client_table.of(names)
    metric = ACCURACY if ACCURACY.total in clients else LOSS
    parts = []
    for attribute, values in table.values.items():
        if {*np.unique(values)} <= {0.0, 1.0}:
            members = {"0": values == 0, "1": values == 1}
        else:
            low = values < np.median(values)
            members = {"below median": low, "median or above": ~low}
        for group, chosen in members.items():
            is_member = clients["client"].isin(np.array(names, object)[chosen])
            by_round = clients[is_member].groupby([*RUN_KEY, "round"], sort=False)
            part = by_round[[metric.total, "examples"]].sum()
            parts.append(
                part.assign(attribute=attribute, group=group, clients=by_round.size())
            )
    columns = [*RUN_KEY, "round", "attribute", "group", "clients"]
    table_of_groups = pd.concat(parts).reset_index()
    table_of_groups[metric.mean] = (
        table_of_groups[metric.total] / table_of_groups["examples"]
    ).round(6)
    return table_of_groups[[*columns, metric.total, "examples", metric.mean]]
