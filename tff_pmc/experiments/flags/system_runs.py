"""The runs of experiments that compare systems."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leaf_data.dataset import DATASETS
from leaf_data.declare import SettingError
from tff_pmc.experiments.experiment import Experiment, Row
from tff_pmc.experiments.flags.command import Command
from tff_pmc.experiments.flags.run_list import settings_of
from tff_pmc.settings import RunSettings


def runs_of_systems(
    found: Experiment,
    command: Command,
    start: Mapping[str, Any],
    values: dict[str, Any],
    given: Mapping[str, Any],
) -> list[RunSettings]:
    """The runs of an experiment that compares systems.

    Args:
        found: the experiment.
        command: what is asked for.
        start: values by flag that the runs start from.
        values: the given values of runs, by flag.
        given: the values of all given flags.

    Raises:
        SettingError: a value is wrong, or flags do not go together.
    """
    refused = ("priority", "adjustment", "inspect", "criteria", "normalization")
    for flag in (*refused, "criteria_ranges"):
        if given.get(flag):
            raise SettingError(
                f"--{flag} does not go with {command.experiment}, which compares "
                "systems: see --systems"
            )
    rows = _rows(found, command)
    of_data = DATASETS[start["dataset"]].flags()
    for flag in set(of_data) & set(values):
        # Where the rows differ in their data, a flag of it chooses among them.
        own = {row.changes[flag] for row in rows if flag in row.changes}
        if own and values[flag] not in own:
            raise SettingError(
                f"--{flag}={values[flag]}: {command.experiment} has no such run; it "
                f"has {', '.join(map(str, sorted(own)))}"
            )
        rows = [r for r in rows if r.changes.get(flag, values[flag]) == values[flag]]
    settings = settings_of([{**row.values, **values} for row in rows], start)
    if "judge_on" in values and not any(r.adjustment.searches for r in settings):
        raise SettingError(
            f"--judge_on is of no use with the runs of {command.experiment} that are "
            "asked for"
        )
    return settings


def _rows(found: Experiment, command: Command) -> list[Row]:
    """The rows of the systems named, in the experiment's order, or all."""
    if not command.systems:
        return list(found.rows)
    wanted = set(command.systems)
    listed = [*found.rows, *found.on_demand]
    rows = [row for row in listed if row.system in wanted]
    others = wanted - {row.system for row in listed}
    return [*rows, *map(Row, sorted(others))]
