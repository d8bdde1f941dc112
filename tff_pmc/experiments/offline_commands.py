"""Comparisons, tables and exports of runs that are on disk (no TensorFlow)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from typing import Any

from declared_settings import SettingError
from tff_pmc.experiments import experiment_reports, load_model
from tff_pmc.experiments.experiment import (
    EXPERIMENTS,
    experiment_values,
    get_experiment,
)
from tff_pmc.experiments.flags.command import Command, OfflineOptions
from tff_pmc.record import files
from tff_pmc.record.record_error import RecordError
from tff_pmc.record.results import Results, read_results
from tff_pmc.reports import output
from tff_pmc.reports.statistics.row_titles import row_names
from tff_pmc.reports.tables import folder_comparison, reference_export
from tff_pmc.settings import RunSettings
from tff_pmc.settings.flag_values import call_naming_flag
from tff_pmc.settings.row_names import find_baseline

# Besides `OfflineOptions`: how runs are read, and where reports are written.
_OTHERS = ("baseline", "experiment", "output_dir", "plugin", "protocol", "reach")


def run_offline(command: Command, values_by_flag: Mapping[str, Any]) -> str:
    """Runs `--compare`, `--tables`, `--export` or `--export_model`; returns a text."""
    for flag in sorted({*values_by_flag} - {*OfflineOptions.flags(), *_OTHERS}):
        raise SettingError(
            f"--{flag} only applies to new runs, and this command reads existing ones: "
            "remove it"
        )
    if command.baseline and not (command.tables or command.compare):
        raise SettingError("--baseline needs --tables, --compare, or new runs")
    for name in ("tables", "export", "export_model"):
        if (folder := getattr(command, name)) and not command.output_dir:
            raise SettingError(
                f"--{name} needs an output folder: add --output_dir=NEW to "
                f"--{name}={folder}"
            )
    try:
        return _dispatch(command, values_by_flag)
    except KeyError as error:
        # A table may need a column that a record does not have.
        raise RecordError(
            f"the runs have no column {error}: another version wrote them, or they are "
            "damaged"
        ) from error


def _dispatch(command: Command, values_by_flag: Mapping[str, Any]) -> str:
    if command.tables:
        with tempfile.TemporaryDirectory() as new:  # An error leaves nothing behind.
            shown = _tables(command, values_by_flag, new)
            files.make_empty_folder(command.output_dir)
            shutil.copytree(new, command.output_dir, dirs_exist_ok=True)
        return shown
    if command.export:
        reference_export.write(command.export, command.output_dir)
        return f"Exported for the published evaluation script: {command.output_dir}"
    if command.export_model:
        load_model.export_model(command.export_model, command.output_dir)
        return f"The trained model: {command.output_dir}"
    if len(command.compare) != 2:
        raise SettingError("--compare takes exactly two folders: --compare=A,B")
    targets = None
    if "experiment" in values_by_flag:
        start = RunSettings.from_flag_values(
            {}, inherited=experiment_values(command.experiment)
        )
        targets = start.record.targets
    report = folder_comparison.report(
        *command.compare,
        targets,
        reach=_reach(values_by_flag),
        baseline=command.baseline,
        names=_names(*command.compare),
    )
    if not command.output_dir:
        return report.text
    files.make_empty_folder(command.output_dir)
    return output.write(report, command.output_dir)


def _names(a: str, b: str) -> list[str]:
    """Returns the paths of two folders from their common parent."""
    paths = [os.path.abspath(path) for path in (a, b)]
    above = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [os.path.relpath(path, above) for path in paths]


def _tables(command: Command, values_by_flag: Mapping[str, Any], goal: str) -> str:
    """Writes the tables and figures of a folder of runs; returns their text."""
    results = read_results(command.tables)
    experiment = get_experiment(_name(command, values_by_flag, results))
    if command.baseline:
        results.about["baseline"] = call_naming_flag(
            "--baseline", find_baseline, row_names(results), command.baseline
        )
    if reach := _reach(values_by_flag):
        results.runs["reach"] = reach
    return experiment_reports.write(experiment, results, goal)


def _name(command: Command, values_by_flag: Mapping[str, Any], results: Results) -> str:
    """Returns the name of `--experiment`, else that of the experiment of all runs.

    Runs of the published code have none; their tables are those of the default.
    """
    names = {*results.runs.get("experiment", [""])} - {""}
    if "experiment" in values_by_flag or len(names) != 1:
        return command.experiment
    name = str(names.pop())
    if name not in EXPERIMENTS:
        raise SettingError(
            f"--tables={command.tables} has runs of the experiment {name}, which is "
            "unknown here: give the --plugin that has it, or --experiment for the "
            "tables of another"
        )
    return name


def _reach(values_by_flag: Mapping[str, Any]) -> str:
    """Returns the rule by which a target is reached, or "" if no flag sets it."""
    if "reach" in values_by_flag:
        return str(values_by_flag["reach"])
    if "protocol" in values_by_flag:
        return "above" if values_by_flag["protocol"] == "reference_code" else "at_least"
    return ""
