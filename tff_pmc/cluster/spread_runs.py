"""Runs that workers of a cluster compute at the same time.

The scheduler imports this module, too: functions import TensorFlow, and modules that
need it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Optional

from tqdm import tqdm

from leaf_data.errors import DataError, error_summary
from tff_pmc.cluster import tasks
from tff_pmc.cluster.connection import ClusterConnection, ClusterError
from tff_pmc.cluster.options import ClusterSettingError
from tff_pmc.record import files
from tff_pmc.record.plugin_files import plugin_sha256
from tff_pmc.record.record_error import FolderInUseError, LostRunError
from tff_pmc.record.resume_check import IMPORTED_PLUGINS

_CHECK_SECONDS = 1  # How often to check whether a run was cancelled.

_data_by_job: dict[Any, Any] = {}  # In a worker: the data that it loaded last.
_sha256_by_plugin: dict[str, str] = {}  # The plugins that a worker has imported.
# A run installs its context for the whole process, which may have several threads.
_run_lock = threading.Lock()


def run_on_worker(
    environment: tasks.WorkerEnvironment,
    plugins: Sequence[tuple[str, str]],
    directory: str,
    load: bytes,
    run_and_job: bytes,
) -> None:
    """Computes a run on a worker, or resumes it from its last checkpoint.

    `plugins` are the names of modules and their sha256s.
    """
    tasks.check_versions(environment)
    if plugins and directory not in sys.path:
        sys.path.insert(0, directory)
    for plugin in plugins:
        _import_plugin(*plugin)
    from tff_pmc.runtime import Runtime

    run, job = tasks.from_bytes(run_and_job)
    # An earlier worker may have started the run.
    job = job._replace(resume=True, title=None)
    with _run_lock:
        IMPORTED_PLUGINS.clear()
        IMPORTED_PLUGINS.update(plugins)
        data = _load_data(load, job)
        with Runtime("local") as running, _exit_if_cancelled():
            running.context.recorded = tasks.engine_record("runs", environment.threads)
            run(job, data)


def _load_data(load: bytes, job: Any) -> Any:
    """Loads the data of a run; a `DataError` if it is not the driver's."""
    key = load, job.stored
    if key not in _data_by_job:
        _data_by_job.clear()
        _, _data_by_job[key] = tasks.from_bytes(load)
    data = _data_by_job[key](job.settings)
    if job.stored not in (None, data.train_examples.store_part):
        raise DataError(
            f"{job.stored.path}: a worker sees another store than the driver"
        )
    if job.files not in (None, data.origin.files):
        raise DataError(
            f"{data.name}: a worker sees other files in {data.origin.folder} than the "
            "driver"
        )
    return data


def _import_plugin(name: str, sha256: str) -> None:
    """Imports a plugin; a `ClusterSettingError` if it is not the driver's module."""
    module = importlib.import_module(name)
    if _sha256_by_plugin.setdefault(name, plugin_sha256(name)) != sha256:
        raise ClusterSettingError(
            f"--plugin={name}: a worker has imported another module of this name, or "
            f"an earlier version ({module.__file__}): restart the workers"
        )


@contextlib.contextmanager
def _exit_if_cancelled() -> Iterator[None]:
    """Ends the worker during the block if its task is cancelled.

    Without it a run whose driver has ended would continue to its end, and lock its
    folder meanwhile. The worker's nanny starts another worker.
    """
    import distributed

    worker = distributed.get_worker()
    key, finished = worker.get_current_task(), threading.Event()

    def exit_when_cancelled() -> None:
        while not finished.wait(_CHECK_SECONDS):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                os._exit(1)

    threading.Thread(target=exit_when_cancelled, daemon=True).start()
    try:
        yield
    finally:
        finished.set()


def make_runs(
    connection: ClusterConnection,
    run: Callable[..., None],
    jobs: Iterable[Any],
    load: Callable[..., Any],
) -> Iterator[tuple[Any, Optional[LostRunError]]]:
    """Computes runs as tasks of a cluster; yields each job when its run is finished.

    A worker calls `run` with the job and its data, which `load` loads there. If a
    worker dies, another one resumes its run from the last checkpoint. Yields the job
    and, if the run was lost, the error.
    """
    # The id is new in each call, so that workers load data again: files may change.
    client, load_bytes = connection.client, tasks.to_bytes((uuid.uuid4().hex, load))
    fixed_arguments = (
        connection.environment,
        tuple(IMPORTED_PLUGINS.items()),
        os.getcwd(),
        load_bytes,
    )
    running = {}
    for job in jobs:
        absolute_job = job._replace(folder=os.path.abspath(job.folder))
        content = tasks.to_bytes((run, absolute_job))
        running[client.submit(run_on_worker, *fixed_arguments, content, pure=False)] = (
            job
        )
    with tqdm(total=len(running), desc="runs", unit="run", mininterval=1) as bar:
        try:
            while running:
                for future in connection.first_done(list(running)):
                    error = _lost_run_error(connection, future, running[future])
                    yield running.pop(future), error
                    bar.update()
        except BaseException:
            # A worker whose run is cancelled detects it, and ends.
            client.cancel(list(running), force=True)
            raise


def _lost_run_error(connection: ClusterConnection, future: Any, job: Any) -> Any:
    """Returns the error of a lost run, or None; raises all other errors."""
    from distributed.scheduler import KilledWorker

    if future.status == "finished":
        return None
    error = future.exception() if future.status == "error" else None
    if error is None or isinstance(error, KilledWorker):
        raise connection.lost_error(
            f"the run {job.settings.label} ended with the scheduler or its workers "
            f"({error_summary(error or future.status)})"
        )
    if isinstance(error, FolderInUseError):  # A stopped worker may continue to write.
        return LostRunError(
            f"{error}; if it is a stopped worker, kill it and resume with --resume"
        )
    if isinstance(error, LostRunError):
        return error
    if isinstance(error, tasks.EnvironmentMismatchError):
        raise ClusterError(f"a worker cannot be used: {error}") from error
    raise error


def write_probe_file(folder: str, data_dir: str) -> tuple[str, str]:
    """Writes a file on a worker; returns its path, and a problem of its folders."""
    # Files of such names are leftovers: the folder still counts as empty.
    path = os.path.join(folder, f"{uuid.uuid4().hex}.new")
    try:
        with open(path, "w"):
            pass
    except OSError as error:
        return path, f"{folder} cannot be written to ({error.strerror})"
    missing = data_dir and not os.path.isdir(data_dir)
    return path, f"--data_dir={data_dir} does not exist there" if missing else ""


def check_folders(
    connection: ClusterConnection, output_dir: str, data_dir: str
) -> None:
    """Raises a `ClusterSettingError` if this process does not see a worker's file."""
    output_dir = os.path.abspath(output_dir)
    data_dir = data_dir and os.path.abspath(data_dir)
    files.list_folder(output_dir)
    probes = connection.run_on_workers(write_probe_file, output_dir, data_dir)
    try:
        for worker, (path, problem) in probes.items():
            if not problem and not _wait_for_file(path):
                problem = f"files that it writes into {output_dir} do not appear here"
            if problem:
                raise ClusterSettingError(
                    f"--spread=runs: the worker {worker} does not share the folders: "
                    f"{problem}"
                )
    finally:
        for path, _ in probes.values():
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)


def _wait_for_file(path: str, seconds: float = 5) -> bool:
    """Waits for a file that a network may show late; returns whether it exists."""
    deadline = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.1)
    return os.path.exists(path)
