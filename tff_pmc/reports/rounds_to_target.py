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
from tff_pmc.record.record_error import RecordError

DEVICES = tuple(range(10, 100, 10))
"""The shares of the devices in the papers' columns, percent."""

Rounds = dict[tuple[int, int], Optional[int]]
"""The first rounds by (target, devices), both in percent; None if not reached."""


def rounds_to_target(
    correct: npt.NDArray[np.int64],
    examples: npt.NDArray[np.int64],
    targets: Sequence[int],
    devices: Sequence[int] = DEVICES,
    *,
    strictly_above: bool = False,
) -> Rounds:
    """Returns the first round in which enough devices reach each target.

    A device reaches a target of t % when its local test accuracy is at least
    t %; a share p is reached at `ceil(p * K)` devices.

    Args:
        correct: correctly classified test examples, int [rounds, K].
        examples: test examples of each device, int [K]; devices without any
            never reach a target.
        targets: target accuracies, percent.
        devices: shares of the devices, percent.
        strictly_above: a device reaches a target only above it, as the published
            code's evaluation script has it.

    Returns:
        The round, from 1, for each target and share.
    """
    result: Rounds = {}
    num_devices = len(examples)
    for target in targets:
        reached = reaches(correct, examples, target, strictly_above)
        counts = (reached & (examples > 0)).sum(axis=1)
        for share in devices:
            enough = counts >= math.ceil(share * num_devices / 100)
            result[target, share] = int(enough.argmax()) + 1 if enough.any() else None
    return result


def reaches(
    correct: npt.NDArray[np.int64],
    examples: npt.NDArray[np.int64] | int,
    target: int,
    strictly_above: bool,
) -> npt.NDArray[np.bool_]:
    """Returns a mask of the correct counts that reach a target, percent."""
    # In integers: 7 of 10 is 70 %, whatever a float division makes of it.
    hundredths, needed = correct * 100, target * examples
    return hundredths > needed if strictly_above else hundredths >= needed


def rounds_of(
    run: Run, targets: Sequence[int], devices: Sequence[int] = DEVICES
) -> Rounds:
    """Returns the rounds to targets of a run, by its rule; all are percent."""
    above = bool(run.strictly_above)
    return rounds_to_target(
        run.correct, run.examples, targets, devices, strictly_above=above
    )


def gains(run: Rounds, baseline: Rounds) -> Rounds:
    """Returns the rounds saved over the baseline; None where either did not reach."""
    result: Rounds = {}
    for key, base in baseline.items():
        rounds = run[key]
        missing = rounds is None or base is None
        result[key] = None if missing else base - rounds  # type: ignore[operator]
    return result


def average(
    values: Mapping[tuple[int, int], int | None],
    target: int,
    devices: Sequence[int] = DEVICES,
) -> float:
    """Returns PMC's "Avg." as its tables compute it: the sum over all columns / 9.

    Columns that were not reached (a dash) count as 0, and the divisor stays the
    number of columns.
    """
    return sum(values[target, share] or 0 for share in devices) / len(devices)


def strictly_above(runs: Iterable[Run]) -> bool:
    """Returns whether a target is reached only above it, by the rule of all runs.

    Those of the published code have no such setting and do not count; without any that
    has, a target is reached at it, too.
    """
    found = {
        run.path: "above" if run.strictly_above else "at_least"
        for run in runs
        if run.strictly_above is not None
    }
    return bool(_common(found, "reach", "--reach") == "above")


def by_one_rule(runs: Sequence[Run], reach: str = "") -> list[Run]:
    """Returns the runs with one rule of reaching a target: this, or their own."""
    rule = reach or ("above" if strictly_above(runs) else "at_least")
    return [dataclasses.replace(run, reach=rule) for run in runs]


def reach_rule(strictly_above: bool) -> str:
    """Returns the rule by which a target is reached, as a sentence for a reader."""
    rule = "above it" if strictly_above else "at least the target"
    name = "above" if strictly_above else "at_least"
    return f"A target is reached by an accuracy {rule} (--reach={name})."


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
