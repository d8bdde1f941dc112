"""The settings of a report that the runs themselves have on record."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError


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
    """Returns the runs with one rule of reaching a target."""
    rule = reach or ("above" if strictly_above(runs) else "at_least")
    return [dataclasses.replace(run, reach=rule) for run in runs]


def targets(runs: Iterable[Run]) -> tuple[int, ...]:
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
            raise RecordError(
                f"{first} has {name} {_text(value)} and {folder} has {_text(other)}: "
                f"choose by {flag}"
            )
    return next(iter(found.values()), None)


def _text(value: str | Sequence[int]) -> str:
    return value if isinstance(value, str) else ",".join(map(str, value))
