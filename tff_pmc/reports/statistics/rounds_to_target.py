"""Rounds until a share of the devices reaches a target (PMC Tables 2, 4, 6).

The targets, and the rule by which one is reached, are settings of the runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tff_pmc.record.metric import ACCURACY
from tff_pmc.record.record_error import ClientsNotRecordedError, RecordError
from tff_pmc.record.results import RUN_KEY, Results

DEVICES = tuple(range(10, 100, 10))
"""The shares of the devices in the papers' columns, percent."""

HALF = 50
"""The share whose rounds are compared, and marked in plots, percent."""

REACH_RULES = {"at_least": "of at least the target", "above": "above the target"}
"""The values of `--reach`: the accuracy that reaches a target, in words."""

COLUMNS = (*RUN_KEY, "target", "devices", "rounds")


def rounds_to_target(
    results: Results,
    targets: Sequence[int],
    devices: Sequence[int] = DEVICES,
    reach: str = "",
) -> pd.DataFrame:
    """Returns the first round in which enough devices reach each target.

    A device reaches a target of t % when its local test accuracy is at least t %, or
    above it, by the rule; a share p is reached at `ceil(p * K)` of the K devices.

    Args:
        results: the runs. Devices without test examples never reach a target.
        targets: target accuracies, percent.
        devices: shares of the devices, percent.
        reach: `at_least`, or `above` for devices that reach a target only above it, as
            the published code's evaluation script has it; by default the rule of the
            runs.

    Returns:
        A row for each run, target and share, in this order, with the columns `COLUMNS`:
        `rounds` from 1, NaN where the run did not reach it.

    Raises:
        ClientsNotRecordedError: a run recorded no clients.
        RecordError: the runs have different rules, and `reach` names none; or they
            have losses instead of accuracies.
    """
    rule = reach or reach_rule(results)
    clients = results.clients
    if not results.has_clients:
        raise ClientsNotRecordedError
    if "correct" not in clients:
        raise RecordError(
            f"{results.path or 'the runs'}: rounds to a target need accuracies, and "
            "these regression runs record losses"
        )
    runs = [tuple(row) for row in results.runs[RUN_KEY].itertuples(index=False)]
    by_run = clients.groupby(RUN_KEY, sort=False)
    number = by_run["client"].nunique()
    first_rounds: dict[tuple[Any, ...], float] = {}
    for target in targets:
        # The count of the devices that reach the target, by run and round.
        counts = (
            reaches(clients["correct"], clients["examples"], target, rule)
            .mul(clients["examples"] > 0)
            .groupby([clients[name] for name in (*RUN_KEY, "round")], sort=False)
            .sum()
            .groupby(level=RUN_KEY, sort=False)
        )
        for run, count in counts:
            rounds = count.index.get_level_values("round").to_numpy()
            for share in devices:
                enough = count.to_numpy() >= math.ceil(share * number[run] / 100)
                first = rounds[enough.argmax()] if enough.any() else math.nan
                first_rounds[(*run, target, share)] = first
    rows = [
        (*run, target, share, first_rounds.get((*run, target, share), math.nan))
        for run in runs
        for target in targets
        for share in devices
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def reaches(correct: Any, examples: Any, target: int, reach: str) -> Any:
    """Returns a mask of the correct counts that reach a target, percent."""
    # In integers: 7 of 10 is 70 %, whatever a float division makes of it.
    hundredths, needed = correct * 100, target * examples
    return hundredths > needed if reach == "above" else hundredths >= needed


def count_devices(correct: Any, examples: Any, target: int, reach: str) -> Any:
    """Returns how many devices, on the last axis, reach a target, percent.

    A device without test examples never does.
    """
    reached = reaches(correct, examples, target, reach) & (examples > 0)
    return np.sum(reached, axis=-1)


def gains_over(base: pd.DataFrame, rounds: pd.DataFrame, last: int) -> pd.DataFrame:
    """Returns the rounds of DS minus those of a run, as PMC's tables count them.

    `base` and `rounds` have the rounds in which DS and the run reach each column, one
    row per target, NaN if they do not, and `last` is the runs' last round. A run that
    does not reach a column counts as reaching it in the last round, so its gain is a
    bound. If neither reaches it, the gain is NaN.
    """
    return (base.fillna(last) - rounds.fillna(last)).where(
        base.notna() | rounds.notna()
    )


def pmc_average(gains: pd.Series[float]) -> float:
    """Returns PMC's "Avg." of a row, as its tables compute it: the sum / 9.

    Columns without a gain (NaN) count as 0, and the divisor stays the number of
    columns.
    """
    return float(np.nansum(gains.to_numpy(float))) / len(DEVICES)


def reach_rule(results: Results) -> str:
    """Returns the rule by which all runs reach a target; `at_least` if none has one."""
    return str(results.setting("reach", "at_least"))


def reach_sentence(reach: str) -> str:
    """Returns the rule by which a target is reached, as a sentence."""
    return (
        f"A device reaches a target with an accuracy {REACH_RULES[reach]} "
        f"(--reach={reach})."
    )


def targets_of(results: Results) -> tuple[int, ...]:
    """Returns the target accuracies of any of the runs, percent; () of a regression."""
    if ACCURACY.mean not in results.rounds or "targets" not in results.runs:
        return ()
    targets = results.runs["targets"].dropna()
    return tuple(dict.fromkeys(target for of_run in targets for target in of_run))


def recorded_targets(results: Results) -> tuple[int, ...]:
    """Returns the targets of runs that recorded their clients, else ()."""
    return targets_of(results) if results.has_clients else ()
