"""The sweep: runs several jobs, here or on a cluster, and reports on them."""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Optional

import leaf_data
from leaf_data.examples import StorePart
from leaf_data.formats.data_files import expand_path
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.experiments import experiment_reports
from tff_pmc.experiments.callbacks import Callback
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.running import loop
from tff_pmc.record import files
from tff_pmc.record.record_error import LostRunError, RecordError
from tff_pmc.record.results import read_results
from tff_pmc.record.resume_check import EXAMPLES, claim_folder
from tff_pmc.settings import RunSettings

LoadDataset = Callable[[RunSettings], leaf_data.FederatedDataset]


class RunJob(NamedTuple):
    """One run of a sweep.

    Attributes:
        settings: the settings of the run.
        folder: the run's folder.
        title: the name of the run's progress bar; None for no bar.
        resume: whether to continue the run in the folder.
        callbacks: the callbacks of this run.
        stored, files: the store and the files' sha256s that a worker must find when it
            loads the data; None if unknown.
    """

    settings: RunSettings
    folder: str
    title: Optional[str] = ""
    resume: bool = False
    callbacks: Sequence[Callback] = ()
    stored: Optional[StorePart] = None
    files: Optional[tuple[tuple[str, str], ...]] = None


FinishedJob = tuple[RunJob, Optional[LostRunError]]
"""A finished run, and the error if it was lost."""


def run_job(job: RunJob, data: leaf_data.FederatedDataset) -> None:
    """Runs one job; workers of a cluster call it, too."""
    loop.run(
        job.settings,
        data,
        job.folder,
        resume=job.resume,
        title=job.title,
        callbacks=job.callbacks,
    )


def sweep(
    jobs: Iterable[RunJob],
    *,
    load: LoadDataset,
    remote_runner: Optional[Callable[..., Iterator[FinishedJob]]] = None,
    callbacks: Sequence[Callback] = (),
) -> Iterator[FinishedJob]:
    """Runs jobs, and yields each when it is finished.

    Args:
        jobs: the jobs; each is taken when the previous ones are finished or handed to
            `remote_runner`.
        load: returns the federation of a run's settings.
        remote_runner: runs the jobs on other machines: it is called with the jobs and
            `load`, and yields each job when it is finished, as an engine's
            `remote_runner` does. By default the jobs run here, one after another.
        callbacks: the callbacks of all runs; they are called before those of a job.
    """
    complete = (job._replace(callbacks=(*callbacks, *job.callbacks)) for job in jobs)
    if remote_runner is not None:
        yield from remote_runner(complete, load)
        return
    for job in complete:
        error = None
        try:
            run_job(job, load(job.settings))
        except LostRunError as lost_run_error:
            error = lost_run_error
        yield job, error


def run_all(
    runs: Sequence[RunSettings],
    load: LoadDataset,
    output_dir: str,
    *,
    seeds: Sequence[int] = (),
    baseline: str = "",
    resume: bool = False,
    remote_runner: Optional[Callable[..., Iterator[FinishedJob]]] = None,
    callbacks: Sequence[Callback] = (),
    command: str = "",
) -> str:
    """Runs all settings under each seed, and reports on all runs.

    All runs of a seed share partition, initial weights, cohorts and batches, so that
    orderings are compared on paired seeds. A lost run affects neither the other runs
    nor their reports; a `LostRunError` is raised at the end. `load`,
    `remote_runner` and `callbacks` are those of `sweep`; `command` is recorded, so that
    the runs can be repeated.
    """
    output_dir = expand_path(output_dir)
    for settings in runs:  # Before a folder is made; rows may differ in their data.
        data = load(settings)
        RunContext.from_settings(settings, data)
        for callback in callbacks:
            callback.check(settings, data)
    by_folder = {output_dir: list(runs)}
    if seeds:
        by_folder = {
            os.path.join(output_dir, f"seed_{seed}"): [
                settings.with_seed(seed) for settings in runs
            ]
            for seed in seeds
        }
    total = len(by_folder) * len(runs)

    def jobs() -> Iterator[RunJob]:
        number = 0
        for seed, (folder, of_folder) in zip(seeds or [None], by_folder.items()):
            # Some of several seeds may not have started.
            resumable = resume and (seed is None or bool(files.read_run_json(folder)))
            data = load(of_folder[0])
            plan = {**_plan(of_folder, data, baseline=baseline), "command": command}
            stack.enter_context(claim_folder(folder, plan, resume=resumable))
            name = "" if seed is None else f", seed {seed}"
            for settings in list(of_folder):  # Lost runs are removed from the list.
                number += 1
                same_data = settings.data == of_folder[0].data
                yield RunJob(
                    settings,
                    os.path.join(folder, settings.folder_name),
                    title=f"run {number} of {total}{name}: {settings.label}",
                    resume=resumable,
                    stored=data.train_examples.store_part if same_data else None,
                    files=data.origin.files if same_data else None,
                )

    with contextlib.ExitStack() as stack:
        if seeds:
            plan = {**_plan(runs, load(runs[0]), seeds, baseline), "command": command}
            if resume:
                _check_has_seeds(output_dir)
            stack.enter_context(claim_folder(output_dir, plan, resume=resume))
        finished: collections.Counter[str] = collections.Counter()
        text, lost = "", []
        finished_jobs = sweep(
            jobs(), load=load, remote_runner=remote_runner, callbacks=callbacks
        )
        for job, error in finished_jobs:
            folder = os.path.dirname(job.folder)
            finished[folder] += 1
            if error is not None:
                where = f"{os.path.basename(folder)}, " if seeds else ""
                lost.append(f"{where}{error}")
                by_folder[folder].remove(job.settings)
            finished_settings = by_folder[folder]
            if finished[folder] == len(runs) and finished_settings:
                text = write_reports(folder, finished_settings)
        if lost:
            raise LostRunError("; ".join(lost))
        # Each seed has its reports already.
        return write_reports(output_dir, runs, per_seed=()) if seeds else text


def write_reports(
    output_dir: str,
    runs: Sequence[RunSettings],
    per_seed: Optional[Sequence[int]] = None,
) -> str:
    """Writes the tables and plots of a folder of runs; returns the tables as text.

    `runs` are those that were not lost; `per_seed` is that of
    `experiment_reports.write`.
    """
    folders = {settings.folder_name for settings in runs}
    results = read_results(output_dir)
    is_finished = [os.path.basename(path) in folders for path in results.runs["path"]]
    experiment = EXPERIMENTS[runs[0].experiment]
    return experiment_reports.write(
        experiment, results.only(is_finished), output_dir, per_seed=per_seed
    )


def _check_has_seeds(output_dir: str) -> None:
    """Raises a `RecordError` if the runs of a folder were started without `--seeds`."""
    before = files.read_run_json(output_dir)
    if before and "seeds" not in files.flatten_groups(before.get("settings", {})):
        raise RecordError(
            f"{output_dir} cannot be resumed with --seeds: its runs were started with "
            "one seed: remove --seeds, or choose another folder"
        )


def _plan(
    runs: Sequence[RunSettings],
    data: leaf_data.FederatedDataset,
    seeds: Sequence[int] = (),
    baseline: str = "",
) -> dict[str, Any]:
    """Returns what `run.json` says of several runs: shared settings, labels, seeds."""
    described = loop.describe(runs[0], data)["data"]
    named = {
        "orderings": [settings.label for settings in runs],
        **({"seeds": list(seeds)} if seeds else {}),
        **({"baseline": baseline} if baseline else {}),
    }
    if runs[0].row_notes is not None:  # A later row may differ in any setting.
        shared = {"experiment": runs[0].experiment, "protocol": runs[0].protocol}
        return {"settings": {**shared, **named}, "data": {"name": described["name"]}}
    varying = {"priority", "adjustment", *(runs[0].seed_flags if seeds else ())}
    # The seed is among the options of the data; algorithms may differ in their data.
    if EXPERIMENTS[runs[0].experiment].compares_algorithms:
        del described["clients"], described["options"], described[EXAMPLES]
    elif seeds:
        del described["options"]
    first, *others = (settings.to_record() for settings in runs)
    shared: dict[str, Any] = {}
    for group, values in first.items():
        shared[group] = values
        if isinstance(values, dict):
            shared[group] = {
                flag: value
                for flag, value in values.items()
                if flag not in varying
                and all(
                    (flag, value) in record.get(group, {}).items() for record in others
                )
            }
    return {"settings": {**shared, **named}, "data": described}
