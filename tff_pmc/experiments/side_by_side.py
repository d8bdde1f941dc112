"""Comparisons, tables and exports of runs that are on disk (no TensorFlow)."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any

from leaf_data.declare import SettingError
from tff_pmc.experiments import reporting
from tff_pmc.experiments.experiment import (
    EXPERIMENTS,
    check_baseline,
    experiment,
    values_of,
)
from tff_pmc.experiments.flags.command import Command, OfflineOptions
from tff_pmc.record import files
from tff_pmc.record.read import Run
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.schema import has_table
from tff_pmc.reports import (
    compare,
    losses,
    output,
    paired,
    read_folder,
    reference_export,
    rounds_to_target,
)
from tff_pmc.settings import RunSettings

# Beside `OfflineOptions`, what says how runs on disk are read, and where to write.
_OTHERS = ("baseline", "experiment", "output_dir", "plugin", "protocol", "reach")


def text(command: Command, given: Mapping[str, Any]) -> str:
    """Carries out `--compare`, `--tables` or `--export`; returns their text."""
    for flag in sorted({*given} - {*OfflineOptions.flags(), *_OTHERS}):
        raise SettingError(
            f"--{flag} is of runs, and these are on disk already: leave it out"
        )
    if command.baseline and not command.tables:
        raise SettingError("--baseline goes with --tables, of runs of several seeds")
    if (command.export or command.tables) and not command.output_dir:
        name = "tables" if command.tables else "export"
        raise SettingError(
            f"--{name} needs a folder to write into: --{name}="
            f"{command.tables or command.export} --output_dir=NEW"
        )
    try:
        return _text(command, given)
    except KeyError as error:
        # What only some of the tables need, a record may lack.
        raise RecordError(f"the records lack the column {error}") from error


def _text(command: Command, given: Mapping[str, Any]) -> str:
    if command.tables:
        with tempfile.TemporaryDirectory() as aside:  # What is refused leaves nothing.
            shown = _tables(command, given, aside)
            files.put_all(aside, command.output_dir)
        return shown
    if command.export:
        reference_export.write(command.export, command.output_dir)
        return f"In the published code's form: {command.output_dir}"
    if len(command.compare) != 2:
        raise SettingError("--compare names two folders, as A,B")
    targets = None
    if "experiment" in given:
        start = RunSettings.of({}, inherited=values_of(command.experiment))
        targets = start.record.targets
    rows = compare.compare(*command.compare, targets, reach=_reach(given))
    if not command.output_dir:
        return compare.comparison_text(rows)
    made = compare.report(rows, *_names(*command.compare))
    files.make_empty_folder(command.output_dir)
    return output.write(made, command.output_dir)


def _names(a: str, b: str) -> list[str]:
    """Returns two folders' names without the part of their paths that they share."""
    paths = [os.path.abspath(path) for path in (a, b)]
    above = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [os.path.relpath(path, above) for path in paths]


def _tables(command: Command, given: Mapping[str, Any], goal: str) -> str:
    """The tables and figures of a folder of runs; of seeds, their differences, too."""
    seeds = read_folder.seed_folders(command.tables)
    if not seeds:
        if command.baseline:
            raise SettingError("--baseline goes with the runs of several seeds")
        return _of_runs(command, given, goal)
    by_seed = {seed: _by_rule(folder, given) for seed, folder in seeds.items()}
    first = next(iter(by_seed.values()))
    found = experiment(_name(command, given, first))
    names = [run.system if found.compares_systems else run.label for run in first]
    check_baseline(names, command.baseline)
    for seed, folder in seeds.items():
        own = os.path.join(goal, os.path.basename(folder))
        reporting.write(found, by_seed[seed], own)
    baseline = command.baseline or read_folder.baseline_of(command.tables)
    return reporting.write_seeds(found, by_seed, goal, baseline)


def _of_runs(command: Command, given: Mapping[str, Any], goal: str) -> str:
    """The tables and figures of a folder of runs."""
    folders = read_folder.run_folders(command.tables)
    if all(has_table(f, "clients.csv") and losses.measures_loss(f) for f in folders):
        lost = [losses.read_loss_run(folder) for folder in folders]
        paired.by_label(lost)
        return output.write(losses.of_runs(lost), goal)
    runs = _by_rule(command.tables, given)
    return reporting.write(experiment(_name(command, given, runs)), runs, goal)


def _by_rule(path: str, given: Mapping[str, Any]) -> Sequence[Run]:
    """The runs in a folder, by the rule of reaching a target that the flags say."""
    return rounds_to_target.by_one_rule(read_folder.read_runs(path), _reach(given))


def _name(command: Command, given: Mapping[str, Any], runs: Sequence[Run]) -> str:
    """The experiment that the flags name, else that of all runs, if it has a name."""
    names = {str(run.settings.get("experiment", "")) for run in runs}
    if "experiment" not in given and len(names) == 1 and names <= {*EXPERIMENTS}:
        return names.pop()
    return command.experiment


def _reach(given: Mapping[str, Any]) -> str:
    """The rule of reaching a target that the flags say; empty without them."""
    if "reach" in given:
        return str(given["reach"])
    if "protocol" in given:
        return "above" if given["protocol"] == "reference_code" else "at_least"
    return ""
