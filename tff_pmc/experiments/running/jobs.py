"""The runs that are to be made, their data, and what makes them in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Optional

import leaf_data
from tff_pmc.experiments.running import loop
from tff_pmc.settings import RunSettings

Load = Callable[[RunSettings], leaf_data.FederatedDataset]


class Federations:
    """Loads the federation of a run; the last one is kept, as memory is limited.

    It travels to another process as the places it loads from, without what it holds.
    """

    def __init__(
        self, data_dir: str, cache_dir: str, table: leaf_data.ClientTable
    ) -> None:
        """Takes the folders, empty for the defaults, and the clients' attributes."""
        self.data_dir, self.cache_dir = data_dir, cache_dir
        self.table = table
        self._last: Optional[tuple[str, leaf_data.FederatedDataset]] = None

    def __call__(self, settings: RunSettings) -> leaf_data.FederatedDataset:
        """The federation of a run's settings."""
        key = repr(settings.data)
        if self._last is None or self._last[0] != key:
            self._last = None  # Before the next one is loaded.
            data = settings.data.load(self.data_dir or None, self.cache_dir or None)
            if self.table.values:
                data = data.with_client_table(self.table)
            self._last = key, data
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        places = {
            name: os.path.abspath(getattr(self, name)) if getattr(self, name) else ""
            for name in ("data_dir", "cache_dir")
        }
        return {**self.__dict__, **places, "_last": None}


class Job(NamedTuple):
    """One run to be made.

    Attributes:
        settings: of the run.
        output_dir: the folder of the runs that it is reported with.
        resume: whether to go on with what its folder holds.
        progress: how its progress is shown.
    """

    settings: RunSettings
    output_dir: str
    resume: bool
    progress: loop.Progress = loop.ALONE

    @property
    def folder(self) -> str:
        """The run's own folder."""
        return os.path.join(self.output_dir, self.settings.folder)


Runner = Callable[[Iterable[Job]], Iterator[Job]]
"""Makes runs, and gives each of them once it is finished."""


def one_after_another(load: Load) -> Runner:
    """What makes the runs in this process, in their order."""

    def make(jobs: Iterable[Job]) -> Iterator[Job]:
        for job in jobs:
            how: dict[str, Any] = {"resume": job.resume, "progress": job.progress}
            loop.run(job.settings, load(job.settings), job.folder, **how)
            yield job

    return make
