"""The runs of experiments that compare orderings of criteria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from leaf_data.declare import SettingError
from tff_pmc.experiments.experiment import Experiment
from tff_pmc.experiments.flags.command import Command
from tff_pmc.experiments.flags.run_list import settings_of
from tff_pmc.settings import AggregationSettings, RunSettings, flag_values
from tff_pmc.systems import SYSTEMS


def runs_of_orderings(
    found: Experiment,
    command: Command,
    start: Mapping[str, Any],
    values: Mapping[str, Any],
) -> list[RunSettings]:
    """The runs of an experiment that compares orderings.

    Args:
        found: the experiment.
        command: what is asked for.
        start: values by flag that the runs start from.
        values: the given values of runs, by flag; of flags that may be repeated lists.

    Raises:
        SettingError: a value is wrong, or flags do not go together.
    """
    wanted = list(command.systems) or [start["system"]]
    own = [] if "criteria" in values else found.orderings
    runs = [run for system in wanted for run in _of_system(system, start, values, own)]
    for flag in ("priority", "adjustment"):
        if flag in values and not any(SYSTEMS[s].takes_priority for s in wanted):
            raise SettingError(
                f"--{flag} is of no use with the system {', '.join(wanted)}"
            )
    by_label: dict[str, RunSettings] = {}
    for settings in settings_of(runs, start):
        # To OWA, Choquet and the product all orderings of the same criteria are one.
        by_label.setdefault(settings.label, settings)
    return list(by_label.values())


def _of_system(
    name: str,
    start: Mapping[str, Any],
    values: Mapping[str, Any],
    own: Sequence[tuple[str, ...]],
) -> list[dict[str, Any]]:
    """The values of the runs of one system: each ordering with each adjustment.

    Without `--priority` the orderings are the experiment's own, if it has some.
    """
    criteria = values.get("criteria", start.get("criteria"))
    if criteria is None:
        criteria = AggregationSettings().criteria
    common = {**values, "system": name}
    priorities = common.pop("priority", None)
    policies = common.pop("adjustment", ["fixed"])
    system = SYSTEMS[name]
    if not system.takes_priority:
        return [{**common, "priority": criteria[:1]}]
    adjusted = any(policy != "fixed" for policy in policies)
    if adjusted or system.combines:
        orders = [criteria]
    else:
        orders = list(own) or [criteria[:1]]
    if priorities is not None:
        orders = _orderings(priorities, criteria)
    if all(len(order) == 1 for order in orders):
        if adjusted and "fixed" not in policies:
            raise SettingError(
                f"--adjustment={','.join(policies)} has nothing to adjust: no "
                "--priority has two criteria"
            )
        if system.combines:
            raise SettingError(
                f"--systems={name} has nothing to combine: no --priority has two "
                "criteria"
            )
    return [
        {
            **common,
            "priority": order,
            # An ordering of one criterion leaves nothing to adjust.
            "adjustment": policy if len(order) > 1 else "fixed",
        }
        for policy in policies
        for order in orders
    ]


def _orderings(
    given: Sequence[tuple[str, ...]], criteria: Sequence[str]
) -> list[tuple[str, ...]]:
    """The orderings of `--priority`, `all` spelled out.

    Raises:
        SettingError: a code is unknown, or an ordering is named twice.
    """
    found: list[tuple[str, ...]] = []
    for order in given:
        found += flag_values.all_orderings(criteria) if order == ("all",) else [order]
    for order in found:
        if found.count(order) > 1:
            raise SettingError(f"--priority names {','.join(order)} twice")
    return found
