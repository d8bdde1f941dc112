"""Runs that are made side by side by the workers of a cluster."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tqdm import tqdm

from tff_pmc.experiments.running import run_task
from tff_pmc.experiments.running.jobs import Federations, Job
from tff_pmc.record import files
from tff_pmc.runtime import cluster_tasks
from tff_pmc.runtime.cluster_connection import ClusterConnection
from tff_pmc.runtime.cluster_errors import LOSSES, ClusterError
from tff_pmc.settings.cluster_options import ClusterSettingError

_POLL_SECONDS = 0.5
_ASK_SECONDS = 60


class SpreadRuns:
    """A `jobs.Runner` whose runs are tasks of a cluster.

    As many are begun as there are workers; when one ends, the next is begun. A run
    whose worker dies is begun again by another, which goes on from its last checkpoint.
    """

    def __init__(
        self,
        connection: ClusterConnection,
        federations: Federations,
        output_dir: str,
        plugins: Sequence[str] = (),
    ) -> None:
        """Takes the cluster, what loads the data there, and the modules to import."""
        self._connection = connection
        self._federations = cluster_tasks.to_bytes(federations)
        self._plugins = tuple(plugins)
        data_dir = federations.data_dir
        self._check_folders(
            os.path.abspath(output_dir), os.path.abspath(data_dir) if data_dir else ""
        )

    def __call__(self, jobs: Iterable[Job]) -> Iterator[Job]:
        """Makes the runs; each is given when it is finished."""
        waiting = list(jobs)
        running: dict[Any, Job] = {}
        bar = tqdm(total=len(waiting), desc="runs", unit="run", mininterval=1)
        try:
            while waiting or running:
                for future in [one for one in running if one.done()]:
                    self._check(future, running[future])
                    yield running.pop(future)
                    bar.update()
                free = self._num_workers() - len(running) if waiting else 0
                for job in waiting[: max(free, 0)]:
                    waiting.remove(job)
                    running[self._begin(job)] = job
                time.sleep(_POLL_SECONDS)
        except BaseException:
            self._connection.stop(list(running))
            raise
        finally:
            bar.close()

    def _num_workers(self) -> int:
        try:
            return len(self._connection.workers())
        except Exception as error:
            raise ClusterError(
                f"--cluster={self._connection.address}: the scheduler is gone ({error})"
            ) from error

    def _begin(self, job: Job) -> Any:
        job = job._replace(output_dir=os.path.abspath(job.output_dir))
        order = run_task.RunOrder(
            self._connection.terms,
            self._plugins,
            os.getcwd(),
            self._federations,
            cluster_tasks.to_bytes(job),
        )
        return self._connection.client.submit(run_task.make_run, order, pure=False)

    def _check(self, future: Any, job: Job) -> None:
        from distributed.scheduler import KilledWorker

        if future.status == "finished":
            return
        error = future.exception() if future.status == "error" else None
        if error is None or isinstance(error, KilledWorker):
            words = " ".join(str(error or future.status).split())[:300]
            raise ClusterError(
                f"--cluster={self._connection.address}: the run {job.settings.label} "
                f"ended with its workers ({words})"
            )
        raise error

    def _check_folders(self, output_dir: str, data_dir: str) -> None:
        """Writes a file that every worker must find, and answer."""
        files.list_folder(output_dir)
        text = uuid.uuid4().hex
        # These names are known for leftovers: the folder still counts as empty.
        token = os.path.join(output_dir, f"{text}.new")
        client = self._connection.client
        answers = {}
        try:
            with open(token, "w") as file:
                file.write(text)
            asked = {}
            for number, worker in enumerate(self._connection.workers()):
                answers[worker] = f"{token[: -len('.new')]}_{number}.new"
                asked[worker] = client.submit(
                    *(run_task.look_at_folders, token, text, answers[worker], data_dir),
                    workers=[worker],
                    pure=False,
                )
            for worker, future in asked.items():
                try:
                    wrong = future.result(timeout=_ASK_SECONDS)
                except LOSSES as error:
                    wrong = f"it does not answer ({type(error).__name__} {error})"
                if wrong is None and not _comes(answers[worker]):
                    wrong = f"what it writes into {output_dir} is not seen here"
                if wrong is not None:
                    raise ClusterSettingError(
                        f"--spread=runs: the worker {worker} does not share the "
                        f"folders: {wrong}"
                    )
        finally:
            for path in [token, *answers.values()]:
                if os.path.exists(path):
                    os.remove(path)


def _comes(path: str, seconds: float = 5) -> bool:
    """Whether a file is there, or comes: a file system of a network may be late."""
    deadline = time.monotonic() + seconds
    while not os.path.exists(path):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True
