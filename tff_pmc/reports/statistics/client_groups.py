"""Results by group of clients, from the runs' tables and the clients' attributes."""

from __future__ import annotations

import numpy as np
import pandas as pd

import leaf_data
from tff_pmc.record.metric import ACCURACY, LOSS
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import RUN_KEY, Results


def groups(results: Results, client_table: leaf_data.ClientTable) -> pd.DataFrame:
    """Returns accuracy, or the loss, by group of clients in each tested round.

    Weights that depend on attributes can favor one group and harm another, as PMC's
    conclusion says. A boolean attribute has the groups 0 and 1. Any other attribute has
    two groups: the clients below its median, and those at or above it.

    Args:
        results: the runs.
        client_table: the attributes of the clients.

    Returns:
        One row per run, round, attribute and group, with the columns `seed`, `label`,
        `round`, `attribute`, `group`, `clients` (their number), the sums of
        `clients.csv`, and `accuracy` or `test_loss`, which is NaN for a group without
        test examples.

    Raises:
        RecordError: the runs recorded no clients.
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
