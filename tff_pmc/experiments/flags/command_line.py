"""The settings of the runs that the flags ask for (no TensorFlow).

Everything that is wrong with the flags is said here, before seconds are spent on
TensorFlow and data.
"""

from __future__ import annotations

import collections
import os
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from leaf_data.dataset import DATASETS
from leaf_data.declare import SettingError
from tff_pmc.experiments.experiment import (
    Experiment,
    Row,
    check_baseline,
    experiment,
    values_of,
)
from tff_pmc.experiments.flags.command import (
    COMMAND_FLAGS,
    ENGINE_OPTIONS,
    LR_SEARCH,
    Command,
)
from tff_pmc.experiments.flags.flag_definitions import Given
from tff_pmc.models import MODELS
from tff_pmc.selections import SELECTIONS
from tff_pmc.settings import AggregationSettings, RunSettings, flag_values
from tff_pmc.settings.flag_values import naming
from tff_pmc.systems import SYSTEMS

Values = Mapping[str, Any]
"""Values by flag."""


def command_of(given: Given) -> Command:
    """The command that the flags give."""
    command = Command.of_flags(given.values)
    if command.data_dir and not os.path.isdir(command.data_dir):
        raise SettingError(f"--data_dir={command.data_dir} is no folder")
    if "format" in given.values and not command.tables:
        raise SettingError("--format goes with --tables")
    for flag in ("search_for", "held_out", "learning_rates"):
        if flag in given.values and command.experiment != LR_SEARCH:
            raise SettingError(f"--{flag} goes with --experiment={LR_SEARCH}")
    return command


def cluster_of(command: Command, given: Values) -> Any:
    """The `ClusterOptions` of the call; None if another engine runs it."""
    if "cluster" not in ENGINE_OPTIONS:
        return None
    kind = pkgutil.resolve_name(ENGINE_OPTIONS["cluster"])
    asked = [flag for flag in kind.flags() if flag in given]
    if command.engine != "cluster":
        if not asked:
            return None
        if "engine" in given or "cluster" not in given:
            raise SettingError(
                f"--{asked[0]} goes with --engine=cluster, not with "
                f"--engine={command.engine}"
            )
    options: Any = kind.of_flags(given)
    if command.experiment == LR_SEARCH and options.spread == "runs":
        raise SettingError(
            f"--spread=runs does not go with --experiment={command.experiment}, whose "
            "runs depend on those before them: take --spread=clients"
        )
    options.check()
    return options


def runs_of(
    command: Command, given: Given, attributes: Sequence[str] = ()
) -> list[RunSettings]:
    """The settings of each run, with the attributes of the client table.

    A flag of a model or a system that no run has is passed over where a flag file gives
    it, so that a file for a whole table serves for one row of it, too. On the command
    line it is refused.
    """
    runs = _runs(command, given, attributes)
    if command.seeds:
        seed_flags = {flag for settings in runs for flag in settings.seed_flags}
        if command.seed is not None or seed_flags & set(given.values):
            raise SettingError(
                "--seeds sets all seeds of several runs: it does not go with another "
                "flag of a seed"
            )
        found = experiment(command.experiment)
        names = [r.system.name if found.compares_systems else r.label for r in runs]
        check_baseline(names, command.baseline)
    elif command.baseline:
        raise SettingError("--baseline goes with --seeds")
    if command.seed is None:
        return runs
    return [settings.seeded(command.seed, but_for=given.values) for settings in runs]


def _runs(
    command: Command, given: Given, attributes: Sequence[str]
) -> list[RunSettings]:
    """The settings of each run, before `--seed`."""
    kinds = (*SYSTEMS.values(), *MODELS.values(), *SELECTIONS.values())
    inherited = {flag for kind in kinds for flag in kind.flags()} & given.from_files
    values = {
        flag: value
        for flag, value in given.values.items()
        if flag not in inherited and flag not in COMMAND_FLAGS
    }
    if attributes:
        values["client_attributes"] = tuple(attributes)
    searching = command.experiment == LR_SEARCH
    name = command.search_for if searching else command.experiment
    start = values_of(name, command.protocol)
    start.update({flag: given.values[flag] for flag in inherited})
    for flag in ("dataset", "model", "selection"):
        if getattr(command, flag):
            start[flag] = getattr(command, flag)
    kind = DATASETS[start["dataset"]]
    for flag, taken in ("cache_dir", kind.cached), ("data_dir", kind.reads_folder):
        if getattr(command, flag) and not taken:
            raise SettingError(f"--{flag} is of no use with {start['dataset']}")
    found = experiment(name)
    if searching:
        return _of_search(found, command, start, values, given.values)
    if "validation_fraction" in values and values.get("judge_on") != "local_validation":
        raise SettingError(
            "--validation_fraction goes with --judge_on=local_validation or "
            f"--experiment={LR_SEARCH}"
        )
    if found.compares_systems:
        return _of_systems(found, command, start, values)
    return _of_orderings(found, command, start, values)


def _of_search(
    found: Experiment, command: Command, start: Values, values: Values, given: Values
) -> list[RunSettings]:
    """The runs of the search of a learning rate: DS with each rate."""
    if found.compares_systems:
        raise SettingError(
            f"--search_for={command.search_for} compares systems; the search runs DS"
        )
    refused = ("priority", "systems", "adjustment", "learning_rate", "judge_on")
    for flag in (*refused, "record_clients", "evaluate_clients", "seeds"):
        if flag in given:
            raise SettingError(
                f"--{flag} does not go with --experiment={LR_SEARCH}, which runs DS "
                "with each of --learning_rates"
            )
    names = [f"{rate:g}" for rate in command.learning_rates]  # Of their folders.
    if len(set(names)) < len(names):
        raise SettingError(f"--learning_rates: one is there twice: {', '.join(names)}")
    own = {**values, "priority": ("DS",)}
    return [
        RunSettings.of({**own, "learning_rate": rate}, inherited=start)
        for rate in command.learning_rates
    ]


def _of_systems(
    found: Experiment, command: Command, start: Values, values: Values
) -> list[RunSettings]:
    """The runs of an experiment that compares systems."""
    refused = ("priority", "adjustment", "criteria", "normalization", "criteria_ranges")
    for flag in (*refused, "inspect"):
        if flag in values or (flag == "inspect" and command.inspect):
            raise SettingError(
                f"--{flag} does not go with {command.experiment}, which compares "
                "systems: see --systems"
            )
    rows = _rows(found, command.systems)
    for flag in set(DATASETS[start["dataset"]].flags()) & set(values):
        # Where the rows differ in their data, a flag of it chooses among them.
        own = {row.changes[flag] for row in rows if flag in row.changes}
        if own and values[flag] not in own:
            raise SettingError(
                f"--{flag}={values[flag]}: {command.experiment} has no such run; it "
                f"has {', '.join(map(str, sorted(own)))}"
            )
        if own:
            rows = [r for r in rows if r.changes.get(flag) in (None, values[flag])]
    settings = _settings_of([{**row.values, **values} for row in rows], start)
    if "judge_on" in values and not any(r.adjustment.searches for r in settings):
        raise SettingError(
            f"--judge_on is of no use with the runs of {command.experiment} that are "
            "asked for"
        )
    return _each_once(settings)


def _rows(found: Experiment, systems: Sequence[str]) -> list[Row]:
    """The rows of the systems named, in the experiment's order, or all."""
    if not systems:
        return list(found.rows)
    listed = [*found.rows, *found.on_demand]
    others = set(systems) - {row.system for row in listed}
    rows = [row for row in listed if row.system in systems]
    return [*rows, *map(Row, sorted(others))]


def _of_orderings(
    found: Experiment, command: Command, start: Values, values: Values
) -> list[RunSettings]:
    """The runs of an experiment that compares orderings of criteria."""
    wanted = list(command.systems) or [start["system"]]
    runs = [run for name in wanted for run in _of_system(found, name, start, values)]
    for flag in ("priority", "adjustment"):
        if flag in values and not any(SYSTEMS[name].takes_priority for name in wanted):
            raise SettingError(
                f"--{flag} is of no use with the system {', '.join(wanted)}"
            )
    return _each_once(_settings_of(runs, start))


def _each_once(runs: Sequence[RunSettings]) -> list[RunSettings]:
    """The runs without those that an earlier one is, too.

    To OWA, Choquet and the product all orderings of the same criteria are one; and a
    flag may replace what set two rows apart.
    """
    by_label: dict[str, RunSettings] = {}
    for settings in runs:
        by_label.setdefault(settings.label, settings)
    return list(by_label.values())


def _of_system(
    found: Experiment, name: str, start: Values, values: Values
) -> Iterable[dict[str, Any]]:
    """The values of the runs of one system: each ordering with each adjustment."""
    criteria = {**start, **values}.get("criteria", AggregationSettings().criteria)
    common = {**values, "system": name}
    priorities = common.pop("priority", None)
    policies = common.pop("adjustment", ["fixed"])
    system = SYSTEMS[name]
    if not system.takes_priority:
        return [{**common, "priority": criteria[:1]}]
    adjusted = any(policy != "fixed" for policy in policies)
    if priorities is not None:
        orders = _orderings(priorities, criteria)
    elif adjusted or system.combines:
        orders = [criteria]
    else:
        own = () if "criteria" in values else found.orderings
        orders = list(own) or [criteria[:1]]
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
    """The orderings of `--priority`, `all` spelled out; each may be named once."""
    found: list[tuple[str, ...]] = []
    for order in given:
        if order == ("all",):
            found += naming("--priority=all", flag_values.all_orderings, criteria)
        else:
            found.append(order)
    for order, count in collections.Counter(found).items():
        if count > 1:
            raise SettingError(f"--priority names {','.join(order)} twice")
    return found


def _settings_of(runs: Sequence[Values], start: Values) -> list[RunSettings]:
    """The settings of runs, each with the flags of its own system."""
    of_systems = {flag for system in SYSTEMS.values() for flag in system.flags()}
    used: set[str] = set()
    settings = []
    for values in runs:
        own = SYSTEMS[values.get("system", start["system"])].flags()
        used.update(own)
        kept = {f: v for f, v in values.items() if f not in of_systems or f in own}
        settings.append(RunSettings.of(kept, inherited=start))
    for flag in runs[0] if runs else ():
        if flag in of_systems - used:
            names = ", ".join(dict.fromkeys(run.names["system"] for run in settings))
            raise SettingError(f"--{flag} is of no use with the system {names}")
    return settings
