"""The settings of the runs that the flags ask for (no TensorFlow).

Everything that is wrong with the flags is said here, before seconds are spent on
TensorFlow and data.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from leaf_data.dataset import DATASETS
from leaf_data.declare import SettingError
from tff_pmc.experiments.experiment import Experiment, experiment, values_of
from tff_pmc.experiments.flags.command import LR_SEARCH, Command
from tff_pmc.experiments.flags.ordering_runs import runs_of_orderings
from tff_pmc.experiments.flags.run_list import check_seeds
from tff_pmc.experiments.flags.system_runs import runs_of_systems
from tff_pmc.models import MODELS
from tff_pmc.settings import RunSettings
from tff_pmc.systems import SYSTEMS


def parse(
    given: Mapping[str, Any],
    attributes: Sequence[str] = (),
    from_files: Collection[str] = (),
) -> list[RunSettings]:
    """The settings of each run.

    Args:
        given: values by flag, as `flag_definitions.given` gives them.
        attributes: names of the attributes in the client table.
        from_files: the flags that a flag file gives. Those of a model or a system
            that no run has are passed over, so that a file for a whole table serves for
            one row of it, too; on the command line they are refused.

    Raises:
        SettingError: a value is wrong, or flags do not go together.
    """
    command = Command.of_flags(given)
    runs = _runs(command, given, attributes, from_files)
    seed_flags = {flag for settings in runs for flag in settings.seed_flags}
    if command.seeds and (command.seed is not None or seed_flags & set(given)):
        raise SettingError(
            "--seeds sets all seeds of several runs: it does not go with another flag "
            "of a seed"
        )
    if command.seeds:
        check_seeds(experiment(command.experiment), runs)
    if command.seed is None:
        return runs
    return [settings.seeded(command.seed, but_for=given) for settings in runs]


def _runs(
    command: Command,
    given: Mapping[str, Any],
    attributes: Sequence[str],
    from_files: Collection[str],
) -> list[RunSettings]:
    """The settings of each run, before `--seed`."""
    kinds = (*SYSTEMS.values(), *MODELS.values())
    of_kinds = {flag for kind in kinds for flag in kind.flags()} & {*from_files}
    own = {*Command.flags(), *of_kinds}
    values = {flag: value for flag, value in given.items() if flag not in own}
    if attributes:
        values["client_attributes"] = tuple(attributes)
    searching = command.experiment == LR_SEARCH
    name = command.search_for if searching else command.experiment
    start = {**values_of(name, command.protocol), **_chosen(given)}
    # Inherited values that are of no use are passed over.
    start.update((flag, given[flag]) for flag in of_kinds)
    if command.cache_dir and not DATASETS[start["dataset"]].cached:
        raise SettingError(
            f"--cache_dir is of no use with {start['dataset']}, which needs no cache"
        )
    found = experiment(name)
    if searching:
        return _of_search(found, command, start, values, given)
    if "validation_fraction" in given and given.get("judge_on") != "local_validation":
        raise SettingError(
            "--validation_fraction goes with --judge_on=local_validation or "
            f"--experiment={LR_SEARCH}"
        )
    if found.compares_systems:
        return runs_of_systems(found, command, start, values, given)
    return runs_of_orderings(found, command, start, values)


def _chosen(given: Mapping[str, Any]) -> dict[str, Any]:
    return {flag: given[flag] for flag in ("dataset", "model") if given.get(flag)}


def _of_search(
    found: Experiment,
    command: Command,
    start: Mapping[str, Any],
    values: dict[str, Any],
    given: Mapping[str, Any],
) -> list[RunSettings]:
    """The runs of the search of a learning rate: DS with each rate."""
    if found.compares_systems:
        raise SettingError(
            f"--search_for={command.search_for} compares systems; the search runs DS"
        )
    refused = ("priority", "systems", "adjustment", "learning_rate", "judge_on")
    for flag in (*refused, "seeds"):
        if flag in given:
            raise SettingError(
                f"--{flag} does not go with --experiment={LR_SEARCH}, which runs DS "
                "with each of --learning_rates"
            )
    return [
        RunSettings.of(
            {**values, "priority": ("DS",), "learning_rate": rate}, inherited=start
        )
        for rate in command.learning_rates
    ]
