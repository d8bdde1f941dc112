"""Rounds until a share of the devices reaches a target (PMC Tables 2, 4, 6).

The targets, and the rule by which one is reached, are those that the runs have on
record.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from tff_pmc.record.read import Run
from tff_pmc.record.record_error import ClientsLeftOutError, RecordError

DEVICES = tuple(range(10, 100, 10))
"""The shares of the devices in the papers' columns, percent."""

HALF = 50
"""The share whose rounds are compared, and marked in plots, percent."""

Rounds = dict[tuple[int, int], Optional[int]]
"""The first rounds by (target, devices), both in percent; None if not reached."""


def rounds_to_target(
    correct: npt.NDArray[np.int64],
    examples: npt.NDArray[np.int64],
    targets: Sequence[int],
    devices: Sequence[int] = DEVICES,
    reach: str = "at_least",
) -> Rounds:
    """Returns the first round in which enough devices reach each target.

    A device reaches a target of t % when its local test accuracy is at least
    t %; a share p is reached at `ceil(p * K)` of the K devices.

    Args:
        correct: correctly classified test examples, int [rounds, K].
        examples: test examples of each device, int [K]; devices without any
            never reach a target.
        targets: target accuracies, percent.
        devices: shares of the devices, percent.
        reach: `above` for devices that reach a target only above it, as the published
            code's evaluation script has it.

    Returns:
        The round, from 1, for each target and share.

    Raises:
        ClientsLeftOutError: no client is on record.
    """
    if not len(examples):
        raise ClientsLeftOutError
    result: Rounds = {}
    num_devices = len(examples)
    for target in targets:
        reached = reaches(correct, examples, target, reach)
        counts = (reached & (examples > 0)).sum(axis=1)
        for share in devices:
            enough = counts >= math.ceil(share * num_devices / 100)
            result[target, share] = int(enough.argmax()) + 1 if enough.any() else None
    return result


def reaches(
    correct: npt.NDArray[np.int64],
    examples: npt.NDArray[np.int64] | int,
    target: int,
    reach: str,
) -> npt.NDArray[np.bool_]:
    """Returns a mask of the correct counts that reach a target, percent."""
    # In integers: 7 of 10 is 70 %, whatever a float division makes of it.
    hundredths, needed = correct * 100, target * examples
    return hundredths > needed if reach == "above" else hundredths >= needed


def rounds_of(
    run: Run, targets: Sequence[int], devices: Sequence[int] = DEVICES
) -> Rounds:
    """Returns the rounds to targets of a run, by its rule; all are percent."""
    return rounds_to_target(run.correct, run.examples, targets, devices, run.reach)


def gains(run: Rounds, baseline: Rounds) -> Rounds:
    """Returns the rounds saved over the baseline; None where either did not reach."""
    both = {key: (rounds, baseline[key]) for key, rounds in run.items()}
    return {
        key: None if rounds is None or base is None else base - rounds
        for key, (rounds, base) in both.items()
    }


def average(values: Mapping[tuple[int, int], int | None], target: int) -> float:
    """Returns PMC's "Avg." as its tables compute it: the sum over all columns / 9.

    Columns that were not reached (a dash) count as 0, and the divisor stays the
    number of columns.
    """
    return sum(values[target, share] or 0 for share in DEVICES) / len(DEVICES)


def reach_of(runs: Iterable[Run]) -> str:
    """Returns the rule of all runs that have one; `at_least` where none has."""
    found = {run.path: run.reach for run in runs if run.reach}
    return str(_common(found, "reach", "--reach") or "at_least")


def by_one_rule(runs: Sequence[Run], reach: str = "") -> list[Run]:
    """Returns the runs with one rule of reaching a target: this, or their own."""
    rule = reach or reach_of(runs)
    return [dataclasses.replace(run, reach=rule) for run in runs]


def reach_rule(reach: str) -> str:
    """Returns a rule by which a target is reached, as a sentence for a reader."""
    rule = "above it" if reach == "above" else "at least the target"
    return f"A target is reached by an accuracy {rule} (--reach={reach})."


def untested(runs: Iterable[Run]) -> list[str]:
    """Returns how many devices of runs have no tests, in words; nothing of none."""
    counts = dict.fromkeys(int((run.examples == 0).sum()) for run in runs)
    if not any(counts):
        return []
    return [
        f"Clients without test examples: {' or '.join(map(str, counts))}. They count "
        "among the devices and never reach a target."
    ]


def targets_of(runs: Iterable[Run]) -> tuple[int, ...]:
    """Returns the target accuracies that the runs have on record, percent.

    Runs without any do not count; where no run has any, there are none.
    """
    found = {run.path: run.targets for run in runs if run.targets}
    return tuple(_common(found, "targets", "--experiment") or ())


def _common(found: Mapping[str, Any], name: str, flag: str) -> Any:
    """Returns the value that all folders have; None where there are no folders."""
    for folder, other in found.items():
        first, value = next(iter(found.items()))
        if other != value:
            one, another = (
                text if isinstance(text, str) else ",".join(map(str, text))
                for text in (value, other)
            )
            raise RecordError(
                f"{first} has {name} {one} and {folder} has {another}: choose by {flag}"
            )
    return next(iter(found.values()), None)
