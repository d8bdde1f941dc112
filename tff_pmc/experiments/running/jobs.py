"""The runs that are to be made, and what makes them in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import leaf_data
from tff_pmc.experiments.running import loop
from tff_pmc.experiments.running.loop import Shown
from tff_pmc.settings import RunSettings

Load = Callable[[RunSettings], leaf_data.FederatedDataset]


class Job(NamedTuple):
    """One run to be made.

    Attributes:
        settings: of the run.
        output_dir: the folder of the runs that it is reported with.
        resume: whether to go on with what its folder holds.
        shown: what is shown of it while it runs.
    """

    settings: RunSettings
    output_dir: str
    resume: bool
    shown: Shown = Shown()

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
            how: dict[str, Any] = {"resume": job.resume, "shown": job.shown}
            loop.run(job.settings, load(job.settings), job.folder, **how)
            yield job

    return make
