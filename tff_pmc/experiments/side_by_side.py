"""Comparisons, tables and exports of runs that are on disk already.

Nothing here needs TensorFlow.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from leaf_data.declare import SettingError
from tff_pmc.experiments import reporting
from tff_pmc.experiments.experiment import EXPERIMENTS, experiment, values_of
from tff_pmc.experiments.flags.command import Command
from tff_pmc.reports import (
    compare,
    comparison_plot,
    escape,
    figures,
    losses,
    read_folder,
    reference_export,
)
from tff_pmc.reports.read import Run
from tff_pmc.reports.record_error import RecordError
from tff_pmc.reports.record_tables import has_table
from tff_pmc.settings import RunSettings


def text(command: Command, given: Mapping[str, Any]) -> str:
    """Carries out `--compare`, `--tables` or `--export`.

    Args:
        command: the command, of which one of the three is given.
        given: the values of all given flags.

    Returns:
        The text for the terminal.

    Raises:
        SettingError: flags do not go together.
        RecordError: a folder is no run, or a file of it is broken.
    """
    if (command.export or command.tables) and not command.output_dir:
        raise SettingError("--export and --tables need an --output_dir")
    try:
        return _text(command, given)
    except KeyError as error:
        # What only some of the tables need, a record may lack.
        raise RecordError(f"the records lack the column {error}") from error


def _text(command: Command, given: Mapping[str, Any]) -> str:
    if command.tables:
        return _tables(command, given)
    if command.export:
        reference_export.write(command.export, command.output_dir)
        return f"In the published code's form: {command.output_dir}"
    if len(command.compare) != 2:
        raise SettingError("--compare names two folders, as A,B")
    targets = None
    if "experiment" in given:
        start = RunSettings.of({}, inherited=values_of(command.experiment))
        targets = start.record.targets
    rows = compare.compare(
        *command.compare, targets, strictly_above=_strictly_above(given)
    )
    if command.output_dir:
        os.makedirs(command.output_dir, exist_ok=True)
        path = os.path.join(command.output_dir, "comparison.csv")
        escape.write_csv(rows, path, index=False)
        drawn = comparison_plot.comparison_plot(rows, *_names(*command.compare))
        if drawn:
            path = os.path.join(command.output_dir, comparison_plot.FILE)
            figures.save(drawn, path)
    return compare.comparison_text(rows)


def _names(a: str, b: str) -> list[str]:
    """Returns two folders' names without the part of their paths that they share."""
    paths = [os.path.abspath(path) for path in (a, b)]
    above = os.path.commonpath([os.path.dirname(path) for path in paths])
    return [os.path.relpath(path, above) for path in paths]


def _tables(command: Command, given: Mapping[str, Any]) -> str:
    """The tables and figures of an experiment, made of a folder of runs."""
    folders = read_folder.run_folders(command.tables)
    if all(has_table(f, "clients.csv") and losses.measures_loss(f) for f in folders):
        os.makedirs(command.output_dir, exist_ok=True)
        lost = [losses.read_loss_run(folder) for folder in folders]
        return losses.write(lost, command.output_dir)
    runs = read_folder.read_runs(command.tables)
    name = command.experiment if "experiment" in given else _own_experiment(runs)
    found = experiment(name or command.experiment)
    above = _strictly_above(given)
    return reporting.write(found, runs, command.output_dir, strictly_above=above)


def _own_experiment(runs: Sequence[Run]) -> str:
    """The named experiment that all runs are of; empty where there is none."""
    names = {str(run.settings.get("experiment", "")) for run in runs}
    name = names.pop() if len(names) == 1 else ""
    return name if name in EXPERIMENTS else ""


def _strictly_above(given: Mapping[str, Any]) -> bool | None:
    """Whether, by the flags, a target is reached only above it; None without them."""
    if "reach" in given:
        return bool(given["reach"] == "above")
    if "protocol" in given:
        return bool(given["protocol"] == "reference_code")
    return None
