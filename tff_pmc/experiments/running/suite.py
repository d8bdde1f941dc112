"""Several runs under the same seeds, and the reports on all of them."""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import leaf_data
from tff_pmc.experiments.experiment import EXPERIMENTS, Experiment
from tff_pmc.experiments.record import files, same_run
from tff_pmc.experiments.running import loop
from tff_pmc.reports import REPORTS, SEED_REPORTS, plots, read, tables
from tff_pmc.settings import RunSettings

Load = Callable[[RunSettings], leaf_data.FederatedDataset]


class Job(NamedTuple):
    """One run to be made.

    Attributes:
        settings: of the run.
        output_dir: the folder of the runs that it is reported with.
        resume: whether to go on with what its folder holds.
    """

    settings: RunSettings
    output_dir: str
    resume: bool

    @property
    def folder(self) -> str:
        """The run's own folder."""
        return os.path.join(self.output_dir, self.settings.folder)


Runner = Callable[[Iterable[Job]], Iterator[Job]]
"""Makes runs, and gives each of them once it is finished."""


def one_after_another(load: Load) -> Runner:
    """What makes the runs in this process, in their order.

    Args:
        load: a function that gives the federation of a run's settings.
    """

    def make(jobs: Iterable[Job]) -> Iterator[Job]:
        for job in jobs:
            settings = job.settings
            loop.run(settings, load(settings), job.folder, resume=job.resume)
            yield job

    return make


def run_all(
    runs: Sequence[RunSettings],
    load: Load,
    output_dir: str,
    *,
    resume: bool = False,
    runner: Optional[Runner] = None,
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

    Returns:
        The tables, as text for the terminal.

    Raises:
        SettingError: the settings do not fit the data.
        RecordError: the folder is in use or holds something else.
    """
    runner = runner or one_after_another(load)
    with contextlib.ExitStack() as held:
        for _ in runner(_jobs(runs, load, output_dir, resume, held)):
            pass
        return report(output_dir, runs)


def _jobs(
    runs: Sequence[RunSettings],
    load: Load,
    output_dir: str,
    resume: bool,
    held: contextlib.ExitStack,
) -> list[Job]:
    """The jobs of runs that are reported together, whose folder is held from now on."""
    data = load(runs[0])
    for settings in runs:
        loop.prepare(settings, data)  # Refused before a folder is made.
    held.enter_context(folder_of_runs(output_dir, _plan(runs, data), resume=resume))
    return [Job(settings, output_dir, resume) for settings in runs]


def run_seeds(
    runs: Sequence[RunSettings],
    seeds: Sequence[int],
    load: Load,
    output_dir: str,
    *,
    resume: bool = False,
    runner: Optional[Runner] = None,
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
            for folder, own in by_folder.items():
                begun = resume and files.read_json(folder) is not None
                yield from _jobs(own, load, folder, begun, held)

        finished: collections.Counter[str] = collections.Counter()
        for job in runner(jobs()):
            finished[job.output_dir] += 1
            if finished[job.output_dir] == len(runs):
                report(job.output_dir, by_folder[job.output_dir])
        by_seed = {
            seed: [
                read.read_run(os.path.join(folder, settings.folder))
                for settings in by_folder[folder]
            ]
            for seed, folder in folders.items()
        }
        experiment = EXPERIMENTS[runs[0].experiment]
        plots.write_seeds(by_seed, output_dir, what=_what(experiment))
        texts = [
            SEED_REPORTS[name](by_seed, output_dir, baseline=experiment.baseline)
            for name in experiment.seed_reports
        ]
    return "\n\n".join(filter(None, texts))


@contextlib.contextmanager
def folder_of_runs(
    output_dir: str, plan: Mapping[str, Any], *, resume: bool
) -> Iterator[None]:
    """A folder for several runs, held by this process alone.

    Args:
        output_dir: a folder that is empty or not there yet, or, to resume, one of
            the same plan.
        plan: the shared settings and the labels of the runs, for `run.json`.
        resume: whether the folder holds runs to go on with.

    Raises:
        RecordError: the folder holds something else, or is in use.
    """
    if resume:
        same_run.check_same(output_dir, files.read_json(output_dir), plan)
        files.check_plain(output_dir)
    else:
        files.make_empty_folder(output_dir)
    lock = files.take_lock(output_dir)
    try:
        files.sweep(output_dir)
        if not resume:
            files.write_json(output_dir, plan)
        yield
    finally:
        os.close(lock)


def report(output_dir: str, runs: Sequence[RunSettings]) -> str:
    """Writes the tables and plots of a folder of runs; returns the tables as text."""
    made = [read.read_run(os.path.join(output_dir, s.folder)) for s in runs]
    experiment = EXPERIMENTS[runs[0].experiment]
    tables.write(made, output_dir)  # `results.csv`, whatever is shown of it.
    plots.write(made, output_dir, what=_what(experiment))
    texts = [REPORTS[name](made, output_dir) for name in experiment.reports]
    return "\n\n".join(filter(None, texts))


def _what(experiment: Experiment) -> str:
    """The word for what the labels of an experiment's runs name."""
    return "system" if experiment.compares_systems else "priority"


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
