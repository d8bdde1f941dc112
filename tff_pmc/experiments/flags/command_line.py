"""The settings of the runs that the flags describe (no TensorFlow).

All that is wrong with the flags is reported here, before seconds are spent on
TensorFlow and data.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import pkgutil
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from declared_settings import SettingError
from leaf_data.dataset import DATASETS
from tff_pmc.algorithms import ALGORITHMS
from tff_pmc.experiments.callbacks import CALLBACKS, Callback
from tff_pmc.experiments.experiment import (
    Experiment,
    Variant,
    experiment_values,
    get_experiment,
)
from tff_pmc.experiments.flags.command import (
    COMMAND_FLAGS,
    ENGINE_OPTIONS,
    LR_SEARCH,
    Command,
)
from tff_pmc.experiments.flags.rows import has_candidates, name_rows, parse_row
from tff_pmc.models import fitting_model
from tff_pmc.settings import AggregationSettings, RunSettings, flag_values
from tff_pmc.settings.flag_values import call_naming_flag
from tff_pmc.settings.row_names import RowName, find_baseline
from tff_pmc.settings.run_settings import owners_clause

Values = Mapping[str, Any]
"""Values by flag."""


def _reject(flags: str, given_flags: Iterable[str], why: str) -> None:
    """Raises a `SettingError` for the first of some flags that is given."""
    for flag in flags.split():
        if flag in given_flags:
            raise SettingError(f"--{flag} {why}")


def parse_command(values_by_flag: Values) -> Command:
    """Parses and checks the flags of the command."""
    command = Command.from_flag_values(values_by_flag)
    if command.data_dir and not os.path.isdir(command.data_dir):
        raise SettingError(f"--data_dir={command.data_dir} is not a folder")
    on = [flag for flag in COMMAND_FLAGS if getattr(command, flag, False)]
    actions = ("inspect", "compare", "tables", "export", "export_model")
    for action in (action for action in actions if action in on):
        others = " ".join(other for other in actions if other != action)
        reason = f"cannot be combined with --{action}, which starts no run"
        _reject(f"{others} callbacks tensorboard resume", on, reason)
    if command.inspect:
        reason = "--inspect describes one seed: use --seed instead"
        _reject("seeds", on, f"cannot be combined with --inspect: {reason}")
        reason = "cannot be combined with --inspect, which writes nothing"
        _reject("output_dir", on, reason)
    if command.resume and not command.output_dir:
        raise SettingError("--resume needs the --output_dir of the run")
    if not command.tables:
        _reject("format", values_by_flag, "only applies to --tables")
    if command.experiment != LR_SEARCH:
        searches = "search_for held_out learning_rates"
        _reject(searches, values_by_flag, f"only applies to --experiment={LR_SEARCH}")
    elif command.rows or command.baseline:
        reason = f"does not apply to --experiment={LR_SEARCH}, which compares rates"
        _reject("rows baseline", values_by_flag, reason)
    return command


def cluster_options(command: Command, values_by_flag: Values) -> Any:
    """Returns the `ClusterOptions` of the command, or None for another engine."""
    if "cluster" not in ENGINE_OPTIONS:
        return None
    kind = pkgutil.resolve_name(ENGINE_OPTIONS["cluster"])
    given_flags = " ".join(flag for flag in kind.flags() if flag in values_by_flag)
    if command.engine != "cluster":
        if not given_flags:
            return None
        if "engine" in values_by_flag or "cluster" not in values_by_flag:
            reason = (
                f"only applies to --engine=cluster, not to --engine={command.engine}"
            )
            _reject(given_flags, values_by_flag, reason)
    options: Any = kind.from_flag_values(values_by_flag)
    if command.experiment == LR_SEARCH and options.spread == "runs":
        raise SettingError(
            f"--spread=runs cannot be combined with --experiment={command.experiment}, "
            "whose runs depend on earlier ones: use --spread=clients"
        )
    options.check()
    return options


def build_callbacks(command: Command, values_by_flag: Values) -> list[Callback]:
    """Builds the callbacks that are named, or of which a flag is given."""
    names = [*command.callbacks, *["tensorboard"] * command.tensorboard]
    kinds = {name: CALLBACKS[name] for name in names}
    for name, kind in CALLBACKS.items():
        named = {flag for callback in kinds.values() for flag in callback.flags()}
        if ({*kind.flags()} - named) & {*values_by_flag}:
            kinds.setdefault(name, kind)
    return [kind.from_flag_values(values_by_flag) for kind in kinds.values()]


def build_run_settings(
    command: Command, values_by_flag: Values, attributes: Sequence[str] = ()
) -> list[RunSettings]:
    """Builds the settings of each run, with the attributes of the client table."""
    runs = _runs(command, values_by_flag, attributes)
    if "experiment" not in values_by_flag:
        runs = [dataclasses.replace(run, is_default_experiment=True) for run in runs]
    if command.seeds:
        seeds = " ".join(flag for settings in runs for flag in settings.seed_flags)
        reason = "cannot be combined with --seeds, which sets every seed"
        _reject(f"seed {seeds}", values_by_flag, reason)
    if command.baseline:
        names = [
            RowName(r.label, r.algorithm.name, r.algorithm_name, r.data.note)
            for r in runs
        ]
        call_naming_flag("--baseline", find_baseline, names, command.baseline)
    if command.seed is None:
        return runs
    return [
        settings.with_seed(command.seed, but_for=values_by_flag) for settings in runs
    ]


def _runs(
    command: Command, values_by_flag: Values, attributes: Sequence[str]
) -> list[RunSettings]:
    """Builds the settings of each run, without `--seed`."""
    callback_flags = {flag for kind in CALLBACKS.values() for flag in kind.flags()}
    command_flags = COMMAND_FLAGS | callback_flags
    values = {
        flag: values_by_flag[flag]
        for flag in values_by_flag
        if flag not in command_flags
    }
    if attributes:
        values["client_attributes"] = tuple(attributes)
    searching = command.experiment == LR_SEARCH
    name = command.search_for if searching else command.experiment
    start = experiment_values(name, command.protocol)
    named = {flag: getattr(command, flag) for flag in ("dataset", "model", "selection")}
    start.update({flag: value for flag, value in named.items() if value})
    if command.dataset and not command.model:
        start["model"] = fitting_model(command.dataset, start["model"])
    data = DATASETS[start["dataset"]]
    for flag, taken in ("cache_dir", data.cached), ("data_dir", data.reads_folder):
        if getattr(command, flag) and not taken:
            raise SettingError(
                f"--{flag} does not apply to {start['dataset']}: remove it"
            )
    experiment = get_experiment(name)
    if command.rows:
        experiment = experiment.with_rows(command.rows)
    if searching:
        return _rate_search_runs(experiment, command, start, values, values_by_flag)
    if values.get("judge_on") != "local_validation":
        reason = (
            f"only applies to --judge_on=local_validation or --experiment={LR_SEARCH}"
        )
        _reject("validation_fraction", values, reason)
    if any(row.text for row in experiment.rows):
        return _row_runs(experiment, command, start, values)
    build_runs = _algorithm_runs if experiment.compares_algorithms else _ordering_runs
    # OWA, Choquet and the product do not depend on the order of the criteria, and a
    # flag may remove the difference between two variants.
    by_label: dict[str, RunSettings] = {}
    for settings in build_runs(experiment, command, start, values):
        by_label.setdefault(settings.label, settings)
    return list(by_label.values())


def _rate_search_runs(
    experiment: Experiment,
    command: Command,
    start: Values,
    values: Values,
    values_by_flag: Values,
) -> list[RunSettings]:
    """Builds the runs of the learning-rate search: DS with each rate."""
    if experiment.compares_algorithms:
        raise SettingError(
            f"--search_for={command.search_for} compares algorithms, but the search "
            "trains DS only: name an experiment that compares orderings"
        )
    _reject(
        "priority algorithms adjustment learning_rate judge_on record_clients "
        "evaluate_clients seeds",
        values_by_flag,
        f"cannot be combined with --experiment={LR_SEARCH}, which trains DS once for "
        "each of --learning_rates",
    )
    names = [f"{rate:g}" for rate in command.learning_rates]  # Of their folders.
    if len(set(names)) < len(names):
        raise SettingError(
            f"--learning_rates: a rate is given twice: {', '.join(names)}"
        )
    search_values = {
        **values,
        "priority": ("DS",),
        "adjustment": "fixed",
        "evaluate_clients": 0,
        "record_clients": "all",
        # The published scripts that search have it, whatever those that evaluate have.
        "reach": values.get("reach", "at_least"),
    }
    return [
        RunSettings.from_flag_values(
            {**search_values, "learning_rate": rate}, inherited=start
        )
        for rate in command.learning_rates
    ]


def _row_runs(
    experiment: Experiment, command: Command, start: Values, values: Values
) -> list[RunSettings]:
    """Builds the runs of rows that are written as `--rows` takes them."""
    _reject(
        "algorithms priority adjustment inspect",
        [*values, *[f for f in ("algorithms", "inspect") if getattr(command, f)]],
        "cannot be combined with rows: --rows has all that is run",
    )
    rows = [parse_row(row) for row in experiment.rows]
    row_values = []
    for row in rows:
        algorithm = ALGORITHMS[row.algorithm]
        common = {**values, **row.changes}
        if algorithm.takes_priority and "priority" not in common:
            criteria = {**start, **common}.get(
                "criteria", AggregationSettings().criteria
            )
            common["priority"] = (criteria,)
        row_values += _variants_of_algorithm(experiment, row.algorithm, start, common)
    settings = name_rows(rows, row_values, functools.partial(_build_run, start=start))
    _reject_unused(row_values, settings)
    return settings


def _algorithm_runs(
    experiment: Experiment, command: Command, start: Values, values: Values
) -> list[RunSettings]:
    """Builds the runs of an experiment that compares algorithms."""
    _reject(
        "priority adjustment criteria normalization criteria_ranges inspect",
        [*values, *["inspect"] * command.inspect],
        f"cannot be used with the experiment {command.experiment}, which compares "
        "algorithms: choose with --algorithms",
    )
    variants = list(experiment.rows)
    if command.algorithms:
        variants += experiment.on_demand
        others = {*command.algorithms} - {variant.algorithm for variant in variants}
        variants = [
            variant for variant in variants if variant.algorithm in command.algorithms
        ]
        for name in sorted(others):
            variants.append(Variant(name, {"adjustment": _default_adjustment(name)}))
    for flag in set(DATASETS[start["dataset"]].flags()) & set(values):
        # If the variants differ in their data, its flags select among them.
        variant_values = {
            variant.changes[flag] for variant in variants if flag in variant.changes
        }
        if variant_values and values[flag] not in variant_values:
            raise SettingError(
                f"--{flag}={values[flag]}: {command.experiment} has no run with this "
                f"value; it has {', '.join(map(str, sorted(variant_values)))}"
            )
        variants = [
            variant
            for variant in variants
            if variant.changes.get(flag) in (None, values[flag])
        ]
    settings = _build_settings(
        [{**variant.values, **values} for variant in variants], start
    )
    if not any(run.adjustment.searches for run in settings):
        reason = f"has no effect: no requested run of {command.experiment} searches"
        _reject("judge_on", values, reason)
    return settings


def _ordering_runs(
    experiment: Experiment, command: Command, start: Values, values: Values
) -> list[RunSettings]:
    """Builds the runs of an experiment that compares orderings of criteria."""
    algorithms = list(command.algorithms) or [start["algorithm"]]
    runs = [
        run
        for name in algorithms
        for run in _variants_of_algorithm(experiment, name, start, values)
    ]
    reason = f"has no effect on the algorithm {', '.join(algorithms)}: remove it"
    if not any(ALGORITHMS[name].takes_priority for name in algorithms):
        _reject("priority", values, reason)
    if not any(has_candidates(name) for name in algorithms):
        _reject("adjustment", values, reason)
    settings = _build_settings(runs, start)
    if not any(run.adjustment.searches for run in settings):
        unused = [flag for name in algorithms for flag in ALGORITHMS[name].search_flags]
        # Counterfactuals are judged, too, and held-out examples are never trained on.
        judges = any(run.counterfactual.kinds for run in settings)
        if values.get("judge_on") != "local_validation" and not judges:
            unused.append("judge_on")
        reason = "needs an --adjustment that searches: backtracking or best_of_all"
        _reject(" ".join(unused), values, reason)
    return settings


def _variants_of_algorithm(
    experiment: Experiment, name: str, start: Values, values: Values
) -> list[dict[str, Any]]:
    """Returns the values of an algorithm's runs: each ordering and adjustment."""
    criteria = {**start, **values}.get("criteria", AggregationSettings().criteria)
    common = {**values, "algorithm": name}
    priorities = common.pop("priority", None)
    policies_given = common.pop("adjustment", None)
    algorithm = ALGORITHMS[name]
    if not algorithm.takes_priority:
        policies_tried = policies_given or [
            start.get("adjustment", _default_adjustment(name))
        ]
        searches = [policy for policy in policies_tried if policy != "fixed"]
        policy = searches[0] if searches and has_candidates(name) else "fixed"
        return [{**common, "priority": criteria[:1], "adjustment": policy}]
    policies = policies_given or [start.get("adjustment", "fixed")]
    adjusted = any(policy != "fixed" for policy in policies)
    if priorities is not None:
        orders = _orderings(priorities, criteria)
    elif (policies_given and adjusted) or algorithm.combines_criteria:
        orders = [criteria]
    else:
        alone = criteria if adjusted else criteria[:1]
        orderings = experiment.orderings or [start.get("priority", alone)]
        orders = [alone] if "criteria" in values else list(orderings)
    if all(len(order) == 1 for order in orders):
        reason = "no --priority has two criteria"
        if policies_given and adjusted and "fixed" not in policies:
            words = f"--adjustment={','.join(policies)} has nothing to search"
            raise SettingError(f"{words}: {reason}")
        if algorithm.combines_criteria:
            raise SettingError(f"--algorithms={name} has nothing to combine: {reason}")
    # An ordering of one criterion leaves nothing to adjust.
    pairs = [(o, p if len(o) > 1 else "fixed") for p in policies for o in orders]
    return [{**common, "priority": o, "adjustment": policy} for o, policy in pairs]


def _default_adjustment(name: str) -> str:
    """Returns the adjustment of an algorithm where no flag or experiment sets one.

    Dual is its search: without it, it would be FedAvg under another name.
    """
    alone = not ALGORITHMS[name].takes_priority and has_candidates(name)
    return "best_of_all" if alone else "fixed"


def _orderings(
    orders_given: Sequence[tuple[str, ...]], criteria: Sequence[str]
) -> list[tuple[str, ...]]:
    """Parses the orderings of `--priority`, `all` spelled out; each is allowed once."""
    orders: list[tuple[str, ...]] = []
    for order in orders_given:
        if order == ("all",):
            orders += call_naming_flag(
                "--priority=all", flag_values.all_orderings, criteria
            )
        else:
            orders.append(order)
    for order in orders:
        if orders.count(order) > 1:
            raise SettingError(f"--priority names {','.join(order)} twice")
    return orders


def _build_settings(runs: Sequence[Values], start: Values) -> list[RunSettings]:
    """Builds the settings of runs, each with the flags of its algorithm."""
    settings = [_build_run(values, start) for values in runs]
    _reject_unused(runs, settings)
    return settings


def _build_run(values: Values, start: Values) -> RunSettings:
    """Builds the settings of a run, without the flags of other algorithms."""
    kind = ALGORITHMS[values.get("algorithm", start["algorithm"])]
    others = {f for other in ALGORITHMS.values() for f in other.flags()}
    kept = {f: v for f, v in values.items() if f not in others - {*kind.flags()}}
    return RunSettings.from_flag_values(kept, inherited=start)


def _reject_unused(runs: Sequence[Values], settings: Sequence[RunSettings]) -> None:
    """Raises a `SettingError` for a flag that has an effect on none of the runs."""
    kinds = ALGORITHMS.values()
    algorithm_flags = {flag for kind in kinds for flag in kind.flags()}
    unused_by_some = {flag for kind in kinds for flag in kind.unused_flags}
    used: set[str] = set()
    for run in settings:
        kind = ALGORITHMS[run.algorithm_name]
        used.update(kind.flags(), unused_by_some - {*kind.unused_flags})
    names = ", ".join(dict.fromkeys(run.algorithm_name for run in settings))
    first_run = (*runs, {})[0]
    for flag in sorted((algorithm_flags | unused_by_some) - used):
        owners = owners_clause(flag)
        _reject(flag, first_run, f"has no effect on the algorithm {names}{owners}")
    measured = {
        code.partition("^")[0] for run in settings for code in run.criterion_codes
    }
    if "MD" not in measured:
        _reject("model_divergence", first_run, "needs MD in --criteria")
