"""What a worker of a cluster does with a whole run.

The scheduler imports this module, too, when it is told of a task: everything else is
imported by the functions.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional

from tff_pmc.runtime import cluster_tasks

_federations: dict[bytes, Any] = {}


class RunOrder(NamedTuple):
    """A run to be made.

    Attributes:
        terms: what the worker must have.
        plugins: the modules that `--plugin` named.
        directory: the folder in which they are looked for.
        federations: `Federations`, as Dask sends it.
        job: `jobs.Job`, as Dask sends it.
    """

    terms: cluster_tasks.Terms
    plugins: Sequence[str]
    directory: str
    federations: bytes
    job: bytes


def make_run(order: RunOrder) -> None:
    """Makes a run, or goes on with it: its checkpoints say how far it is."""
    cluster_tasks.check_versions(order.terms)
    if order.plugins and order.directory not in sys.path:
        sys.path.insert(0, order.directory)
    for module in order.plugins:
        importlib.import_module(module)
    from tff_pmc.experiments.running import loop
    from tff_pmc.runtime import Runtime
    from tff_pmc.runtime.cluster import cluster_record

    if order.federations not in _federations:
        _federations.clear()
        _federations[order.federations] = cluster_tasks.from_bytes(order.federations)
    job = cluster_tasks.from_bytes(order.job)
    data = _federations[order.federations](job.settings)
    with Runtime("local") as running:
        running.context.recorded = cluster_record("runs", order.terms.threads)
        # A worker before this one may have begun it.
        progress = job.progress._replace(bar=False)
        loop.run(job.settings, data, job.folder, resume=True, progress=progress)


def look_at_folders(token: str, text: str, answer: str, data_dir: str) -> Optional[str]:
    """Whether this worker sees the folders of the process that asks."""
    try:
        with open(token) as file:
            if file.read() != text:
                return f"{os.path.dirname(token)} is another folder there"
    except OSError as error:
        return f"{os.path.dirname(token)} is not there ({error.strerror})"
    try:
        with open(answer, "w"):
            pass
    except OSError as error:
        return f"{os.path.dirname(token)} cannot be written to ({error.strerror})"
    if data_dir and not os.path.isdir(data_dir):
        return f"--data_dir={data_dir} is not there"
    return None
