"""Several runs under the same seeds, and the reports on all of them."""

from __future__ import annotations

import collections
import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import leaf_data
from tff_pmc.experiments import reporting
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.record import files
from tff_pmc.experiments.record.folder_of_runs import folder_of_runs
from tff_pmc.experiments.running import loop
from tff_pmc.experiments.running.jobs import Job, Load, Runner, one_after_another
from tff_pmc.experiments.running.loop import Shown
from tff_pmc.reports import losses, read
from tff_pmc.settings import RunSettings


def run_all(
    runs: Sequence[RunSettings],
    load: Load,
    output_dir: str,
    *,
    resume: bool = False,
    runner: Optional[Runner] = None,
    tensorboard: bool = False,
) -> str:
    """Makes runs and reports on all of them.

    Partition, initial weights, cohorts and batches are the same in every run:
    the orderings are compared on paired seeds.

    Args:
        runs: the settings of each run.
        load: a function that gives the federation of a run's settings.
        output_dir: the folder for one folder a run, `results.csv` and `accuracy.png`.
        resume: go on with what the folder holds; finished runs are kept.
        runner: makes the runs; by default `one_after_another`.
        tensorboard: whether each round is released to TensorBoard.

    Returns:
        The tables, as text for the terminal.

    Raises:
        SettingError: the settings do not fit the data.
        RecordError: the folder is in use or holds something else.
    """
    runner = runner or one_after_another(load)
    with contextlib.ExitStack() as held:
        shown = [
            Shown(f"run {number} of {len(runs)}: {one.label}", tensorboard=tensorboard)
            for number, one in enumerate(runs, 1)
        ]
        for _ in runner(_jobs(runs, load, output_dir, resume, held, shown)):
            pass
        return report(output_dir, runs)


def _jobs(
    runs: Sequence[RunSettings],
    load: Load,
    output_dir: str,
    resume: bool,
    held: contextlib.ExitStack,
    shown: Sequence[Shown],
) -> list[Job]:
    """The jobs of runs that are reported together, whose folder is held from now on."""
    data = load(runs[0])
    for settings in runs:
        loop.prepare(settings, data)  # Refused before a folder is made.
    held.enter_context(folder_of_runs(output_dir, _plan(runs, data), resume=resume))
    return [
        Job(settings, output_dir, resume, how) for settings, how in zip(runs, shown)
    ]


def run_seeds(
    runs: Sequence[RunSettings],
    seeds: Sequence[int],
    load: Load,
    output_dir: str,
    *,
    resume: bool = False,
    runner: Optional[Runner] = None,
    tensorboard: bool = False,
) -> str:
    """Makes all runs under each of several seeds, and reports on their differences.

    Args:
        runs: the settings of each run; each seed replaces all of their seeds.
        seeds: at least two.
        load: a function that gives the federation of a run's settings, whose
            partition the seed decides.
        output_dir: the folder for a folder `seed_N` of each seed, and for the
            experiment's reports over several seeds.
        resume: go on with what the folder holds.
        runner: makes the runs; by default `one_after_another`.
        tensorboard: whether each round is released to TensorBoard.

    Returns:
        The reports, as text for the terminal.

    Raises:
        SettingError: the settings do not fit the data.
        RecordError: the folder is in use or holds something else.
    """
    data = load(runs[0])
    loop.prepare(runs[0], data)  # Refused before a folder is made.
    plan = _plan(runs, data)
    for group in plan["settings"].values():
        for flag in runs[0].seed_flags if isinstance(group, dict) else ():
            group.pop(flag, None)
    plan["data"].pop("options", None)  # The seed is among them.
    plan["settings"]["seeds"] = list(seeds)
    folders = {seed: os.path.join(output_dir, f"seed_{seed}") for seed in seeds}
    by_folder = {
        folder: [settings.seeded(seed) for settings in runs]
        for seed, folder in folders.items()
    }
    runner = runner or one_after_another(load)
    with contextlib.ExitStack() as held:
        held.enter_context(folder_of_runs(output_dir, plan, resume=resume))

        def jobs() -> Iterator[Job]:
            total, numbers = len(runs) * len(seeds), itertools.count(1)
            for seed, folder in folders.items():
                begun = resume and files.read_json(folder) is not None
                own = by_folder[folder]
                shown = [
                    Shown(
                        f"run {next(numbers)} of {total}, seed {seed}: {one.label}",
                        tensorboard=tensorboard,
                    )
                    for one in own
                ]
                yield from _jobs(own, load, folder, begun, held, shown)

        finished: collections.Counter[str] = collections.Counter()
        for job in runner(jobs()):
            finished[job.output_dir] += 1
            if finished[job.output_dir] == len(runs):
                report(job.output_dir, by_folder[job.output_dir])
        paths = {
            seed: [
                os.path.join(folder, settings.folder) for settings in by_folder[folder]
            ]
            for seed, folder in folders.items()
        }
        experiment = EXPERIMENTS[runs[0].experiment]
        what = reporting.label_word(experiment)
        if losses.measures_loss(paths[seeds[0]][0]):
            lost = {s: list(map(losses.read_loss_run, p)) for s, p in paths.items()}
            return losses.write_seeds(lost, output_dir, what)
        by_seed = {seed: list(map(read.read_run, p)) for seed, p in paths.items()}
        return reporting.write_seeds(experiment, by_seed, output_dir)


def report(output_dir: str, runs: Sequence[RunSettings]) -> str:
    """Writes the tables and plots of a folder of runs; returns the tables as text."""
    experiment = EXPERIMENTS[runs[0].experiment]
    folders = [os.path.join(output_dir, settings.folder) for settings in runs]
    if losses.measures_loss(folders[0]):
        what = reporting.label_word(experiment)
        return losses.report(folders, output_dir, what, experiment.reports)
    made = [read.read_run(folder) for folder in folders]
    return reporting.write(experiment, made, output_dir)


def _plan(
    runs: Sequence[RunSettings], data: leaf_data.FederatedDataset
) -> dict[str, Any]:
    """Describes the runs: the settings that all share, and the labels of the runs."""
    plan = loop.describe(runs[0], data)
    for name in ("label", "system", "note"):
        del plan[name]
    recorded = [settings.as_record() for settings in runs]
    plan["settings"] = {
        group: value if isinstance(value, str) else _common(group, recorded)
        for group, value in recorded[0].items()
    }
    for flag in ("priority", "adjustment"):
        for group in plan["settings"].values():
            if isinstance(group, dict):
                group.pop(flag, None)
    plan["settings"]["orderings"] = [settings.label for settings in runs]
    if EXPERIMENTS[runs[0].experiment].compares_systems:
        for name in ("clients", "options"):  # They differ, too.
            plan["data"].pop(name)
    return plan


def _common(group: str, recorded: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of a group that are the same in all runs."""
    return {
        flag: value
        for flag, value in recorded[0][group].items()
        if all(flag in one[group] and one[group][flag] == value for one in recorded)
    }
