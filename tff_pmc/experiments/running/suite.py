"""Several runs under the same seeds, or under each of several, and their reports."""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import leaf_data
from leaf_data.examples import StorePart
from tff_pmc.experiments import reporting
from tff_pmc.experiments.experiment import EXPERIMENTS
from tff_pmc.experiments.running import loop
from tff_pmc.record import files
from tff_pmc.record.record_error import LostRunError, RecordError
from tff_pmc.record.results import read_results
from tff_pmc.record.same_run import check_same, folder_of_runs
from tff_pmc.settings import RunSettings
from tff_pmc.systems.setup import Setup

Load = Callable[[RunSettings], leaf_data.FederatedDataset]


class Job(NamedTuple):
    """One run to be made."""

    settings: RunSettings
    output_dir: str  # Of the runs that it is reported with.
    how: Mapping[str, Any]  # The options of `loop.run`.
    # What its data must be, where that is known: the store, and the files' sha256s.
    stored: Optional[StorePart] = None
    files: Optional[tuple[tuple[str, str], ...]] = None

    @property
    def folder(self) -> str:
        """The run's own folder."""
        return os.path.join(self.output_dir, self.settings.folder)


Done = tuple[Job, Optional[LostRunError]]
"""A run that was made, and why it ended early if it did."""


def run_all(
    runs: Sequence[RunSettings],
    load: Load,
    output_dir: str,
    *,
    seeds: Sequence[int] = (),
    baseline: str = "",
    resume: bool = False,
    spread: Optional[Callable[[Iterable[Job]], Iterator[Done]]] = None,
    tensorboard: bool = False,
) -> str:
    """Makes runs and reports on all of them, and on their differences under seeds.

    Partition, initial weights, cohorts and batches are the same in every run of a
    seed: the orderings are compared on paired seeds. `spread` makes runs elsewhere and
    gives each once it is finished. A run that ends early leaves the others and their
    own reports as they are, and is a `LostRunError` at the end.
    """
    data = load(runs[0])
    for settings in runs:
        Setup.of(settings, data)  # Refused before a folder is made.
    by_folder = {output_dir: list(runs)}
    if seeds:
        by_folder = {
            os.path.join(output_dir, f"seed_{seed}"): [
                settings.seeded(seed) for settings in runs
            ]
            for seed in seeds
        }
    total = len(by_folder) * len(runs)

    def jobs() -> Iterator[Job]:
        number = 0
        for place, (folder, own) in enumerate(by_folder.items()):
            # Of several seeds some may not have been begun.
            begun = resume and (not seeds or bool(_read_plan(folder)))
            data = load(own[0])
            plan = _plan(own, data)
            held.enter_context(folder_of_runs(folder, plan, resume=begun))
            name = f", seed {seeds[place]}" if seeds else ""
            for settings in list(own):  # Who is lost is taken out.
                number += 1
                title = f"run {number} of {total}{name}: {settings.label}"
                how = {"resume": begun, "title": title, "tensorboard": tensorboard}
                known = settings.data == own[0].data
                found = (data.train_examples.stored, data.origin.files) if known else ()
                yield Job(settings, folder, how, *found)

    with contextlib.ExitStack() as held:
        if seeds:
            plan = _plan(runs, data, seeds)
            plan["settings"].update({"baseline": baseline} if baseline else {})
            if resume:
                _into_its_seed(output_dir, plan, by_folder, load)
            held.enter_context(folder_of_runs(output_dir, plan, resume=resume))
        finished: collections.Counter[str] = collections.Counter()
        text, lost = "", []
        for job, error in spread(jobs()) if spread else _in_turn(jobs(), load):
            finished[job.output_dir] += 1
            if error is not None:
                where = f"{os.path.basename(job.output_dir)}, " if seeds else ""
                lost.append(f"{where}{error}")
                by_folder[job.output_dir].remove(job.settings)
            made = by_folder[job.output_dir]
            if finished[job.output_dir] == len(runs) and made:
                text = report(job.output_dir, made)
        if lost:
            raise LostRunError("; ".join(lost))
        # Each seed has its own reports already.
        return report(output_dir, runs, alone=()) if seeds else text


def _into_its_seed(
    output_dir: str,
    plan: Mapping[str, Any],
    by_folder: Mapping[str, Sequence[RunSettings]],
    load: Load,
) -> None:
    """Makes of runs that were begun without seeds those of the one that they had.

    What was killed in its middle goes on: `run.json` is the last that changes.
    """
    before = _read_plan(output_dir)
    if not before or "seeds" in files.by_flag(before.get("settings", {})):
        return

    def may_be(runs: Sequence[RunSettings]) -> bool:
        try:
            check_same(output_dir, before, _plan(runs, load(runs[0])))
        except RecordError:  # Another seed's.
            return False
        return True

    folder = next((place for place, runs in by_folder.items() if may_be(runs)), "")
    if not folder:
        return
    lock = files.take_lock(output_dir)
    try:
        os.makedirs(folder, exist_ok=True)
        stay = {files.RUN_JSON, files.LOCK, os.path.basename(folder)}
        for name in set(os.listdir(output_dir)) - stay:
            os.rename(os.path.join(output_dir, name), os.path.join(folder, name))
        files.write_json(folder, before)
        files.write_json(output_dir, plan)
    finally:
        os.close(lock)


def _in_turn(jobs: Iterable[Job], load: Load) -> Iterator[Done]:
    for job in jobs:
        error = None
        try:
            loop.run(job.settings, load(job.settings), job.folder, **job.how)
        except LostRunError as found:
            error = found
        yield job, error


def report(
    output_dir: str,
    runs: Sequence[RunSettings],
    alone: Optional[Sequence[int]] = None,
) -> str:
    """Writes the tables and plots of a folder of runs; returns the tables as text.

    `runs` are those whose reports are written, where some ended early; `alone` is that
    of `reporting.write`.
    """
    folders = {settings.folder for settings in runs}
    results = read_results(output_dir)
    made = [os.path.basename(path) in folders for path in results.runs["path"]]
    experiment = EXPERIMENTS[runs[0].experiment]
    return reporting.write(experiment, results.only(made), output_dir, alone=alone)


def _read_plan(folder: str) -> dict[str, Any]:
    """Returns the `run.json` of a folder; nothing where there is none."""
    return files.read_json(os.path.join(folder, files.RUN_JSON), missing={})


def _plan(
    runs: Sequence[RunSettings],
    data: leaf_data.FederatedDataset,
    seeds: Sequence[int] = (),
) -> dict[str, Any]:
    """Describes the runs: what all of them share, their labels, and their seeds."""
    described = loop.describe(runs[0], data)["data"]
    own = {"priority", "adjustment", *(runs[0].seed_flags if seeds else ())}
    # The seed is among the options of the data; systems may differ in their data.
    if EXPERIMENTS[runs[0].experiment].compares_systems:
        del described["clients"], described["options"]
    elif seeds:
        del described["options"]
    first, *others = (settings.as_record() for settings in runs)
    shared: dict[str, Any] = {}
    for group, values in first.items():
        shared[group] = values
        if isinstance(values, dict):
            shared[group] = {
                flag: value
                for flag, value in values.items()
                if flag not in own
                and all((flag, value) in one.get(group, {}).items() for one in others)
            }
    shared["orderings"] = [settings.label for settings in runs]
    if seeds:
        shared["seeds"] = list(seeds)
    return {"settings": shared, "data": described}
