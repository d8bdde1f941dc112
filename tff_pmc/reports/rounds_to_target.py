"""Rounds until a share of the devices reaches a target (PMC Tables 2, 4, 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Optional

import numpy as np
import numpy.typing as npt

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


def reach_rule(strictly_above: bool) -> str:
    """Returns the rule by which a target is reached, as a sentence for a reader."""
    rule = "above it" if strictly_above else "at least the target"
    name = "above" if strictly_above else "at_least"
    return f"A target is reached by an accuracy {rule} (--reach={name})."


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
