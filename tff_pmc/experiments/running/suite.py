"""Several runs under the same seeds, or under each of several, and their reports."""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional

import leaf_data
from tff_pmc.experiments import reporting
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.running import loop
from tff_pmc.experiments.running.jobs import Job, Load, Runner, one_after_another
from tff_pmc.record import files, read
from tff_pmc.record.same_run import folder_of_runs
from tff_pmc.reports import losses, output
from tff_pmc.settings import RunSettings


def run_all(
    runs: Sequence[RunSettings],
    load: Load,
    output_dir: str,
    *,
    seeds: Sequence[int] = (),
    resume: bool = False,
    runner: Optional[Runner] = None,
    tensorboard: bool = False,
) -> str:
    """Makes runs and reports on all of them, and on their differences under seeds.

    Partition, initial weights, cohorts and batches are the same in every run of a
    seed: the orderings are compared on paired seeds.

    Args:
        runs: the settings of each run.
        load: a function that gives the federation of a run's settings, whose
            partition the seed decides.
        output_dir: the folder for one folder a run, `results.csv` and `accuracy.png`;
            under several seeds for a folder `seed_N` of these for each seed, and for
            the experiment's reports over several seeds.
        seeds: at least two, each of which replaces all seeds of the runs; or none, for
            the runs' own.
        resume: go on with what the folder holds; finished runs are kept.
        runner: makes the runs; by default `one_after_another`.
        tensorboard: whether each round is released to TensorBoard.

    Returns:
        The tables, as text for the terminal.

    Raises:
        SettingError: the settings do not fit the data.
        RecordError: the folder is in use or holds something else.
    """
    data = load(runs[0])
    for settings in runs:
        loop.prepare(settings, data)  # Refused before a folder is made.
    if not seeds:
        by_folder, names = {output_dir: list(runs)}, [""]
    else:
        by_folder = {
            os.path.join(output_dir, f"seed_{seed}"): [
                settings.seeded(seed) for settings in runs
            ]
            for seed in seeds
        }
        names = [f", seed {seed}" for seed in seeds]
    total = len(names) * len(runs)

    def jobs() -> Iterator[Job]:
        number = 0
        for name, (folder, own) in zip(names, by_folder.items()):
            # Of several seeds some may not have been begun.
            begun = resume and (not seeds or files.read_json(folder) is not None)
            plan = _plan(own, load(own[0]))
            held.enter_context(folder_of_runs(folder, plan, resume=begun))
            for settings in own:
                number += 1
                title = f"run {number} of {total}{name}: {settings.label}"
                progress = loop.Progress(title, tensorboard=tensorboard)
                yield Job(settings, folder, begun, progress)

    with contextlib.ExitStack() as held:
        if seeds:
            plan = _without_seeds(_plan(runs, data), runs[0], seeds)
            held.enter_context(folder_of_runs(output_dir, plan, resume=resume))
        finished: collections.Counter[str] = collections.Counter()
        text = ""
        for job in (runner or one_after_another(load))(jobs()):
            folder = job.output_dir
            finished[folder] += 1
            if finished[folder] == len(runs):
                text = report(folder, by_folder[folder])
        return _report_seeds(seeds, by_folder, output_dir) if seeds else text


def report(output_dir: str, runs: Sequence[RunSettings]) -> str:
    """Writes the tables and plots of a folder of runs; returns the tables as text."""
    experiment = EXPERIMENTS[runs[0].experiment]
    folders = [os.path.join(output_dir, settings.folder) for settings in runs]
    if losses.measures_loss(folders[0]):
        what = reporting.label_word(experiment)
        lost = list(map(losses.read_loss_run, folders))
        return output.write(losses.of_runs(lost, what, experiment.reports), output_dir)
    made = [read.read_run(folder) for folder in folders]
    return reporting.write(experiment, made, output_dir)


def _report_seeds(
    seeds: Sequence[int], by_folder: Mapping[str, Sequence[RunSettings]], goal: str
) -> str:
    """Writes the tables and plots over several seeds; returns the tables as text."""
    paths = {
        seed: [os.path.join(folder, settings.folder) for settings in runs]
        for seed, (folder, runs) in zip(seeds, by_folder.items())
    }
    (first, *_), *_ = by_folder.values()
    experiment = EXPERIMENTS[first.experiment]
    if losses.measures_loss(paths[seeds[0]][0]):
        lost = {s: list(map(losses.read_loss_run, p)) for s, p in paths.items()}
        what = reporting.label_word(experiment)
        return output.write(losses.of_seeds(lost, what), goal)
    by_seed = {seed: list(map(read.read_run, p)) for seed, p in paths.items()}
    return reporting.write_seeds(experiment, by_seed, goal)


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


def _without_seeds(
    plan: dict[str, Any], settings: RunSettings, seeds: Sequence[int]
) -> dict[str, Any]:
    """The plan of runs under several seeds, which has the seeds in one place."""
    for group in plan["settings"].values():
        for flag in settings.seed_flags if isinstance(group, dict) else ():
            group.pop(flag, None)
    plan["data"].pop("options", None)  # The seed is among them.
    plan["settings"]["seeds"] = list(seeds)
    return plan


def _common(group: str, recorded: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The settings of a group that are the same in all runs."""
    return {
        flag: value
        for flag, value in recorded[0][group].items()
        if all(flag in one[group] and one[group][flag] == value for one in recorded)
    }
