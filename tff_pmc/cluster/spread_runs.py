"""Runs that are made at the same time by the workers of a cluster.

The scheduler also imports this module: TensorFlow, and what needs it, is imported by
the functions.
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

from leaf_data.errors import DataError, one_line
from tff_pmc.cluster import tasks
from tff_pmc.cluster.connection import ClusterConnection, ClusterError
from tff_pmc.cluster.options import ClusterSettingError
from tff_pmc.record import files
from tff_pmc.record.plugin_files import plugin_sha256
from tff_pmc.record.record_error import InUseError, LostRunError
from tff_pmc.record.same_run import PLUGINS

_LOOK_SECONDS = 1  # How often to look whether a run is still wanted.

_data_by_job: dict[Any, Any] = {}  # Of a worker: what loads data, the last it was sent.
_sha256_by_plugin: dict[str, str] = {}  # What a worker has imported, and its sha256.
# A run installs its context for the whole process, which may have several threads.
_run_lock = threading.Lock()


def run_on_worker(
    terms: tasks.WorkerEnvironment,
    plugins: Sequence[tuple[str, str]],
    directory: str,
    load: bytes,
    run_and_job: bytes,
) -> None:
    """Makes a run on a worker, or resumes it: its checkpoints show how far it is.

    `plugins` are the names of modules and their sha256s.
    """
    tasks.check_versions(terms)
    if plugins and directory not in sys.path:
        sys.path.insert(0, directory)
    for plugin in plugins:
        _import_plugin(*plugin)
    from tff_pmc.runtime import Runtime

    run, job = tasks.from_bytes(run_and_job)
    # A worker before this one may have begun it.
    job = job._replace(resume=True, title=None)
    with _run_lock:
        PLUGINS.clear()
        PLUGINS.update(plugins)
        data = _load_data(load, job)
        with Runtime("local") as running, _exit_if_cancelled():
            running.context.recorded = tasks.engine_record("runs", terms.threads)
            run(job, data)


def _load_data(load: bytes, job: Any) -> Any:
    """Loads the data of a run; a `DataError` where it is not the driver's."""
    key = load, job.stored
    if key not in _data_by_job:
        _data_by_job.clear()
        _, _data_by_job[key] = tasks.from_bytes(load)
    data = _data_by_job[key](job.settings)
    if job.stored not in (None, data.train_examples.stored):
        raise DataError(f"{job.stored.path}: a worker sees another store")
    if job.files not in (None, data.origin.files):
        raise DataError(
            f"{data.name}: a worker sees other files in {data.origin.folder}"
        )
    return data


def _import_plugin(name: str, sha256: str) -> None:
    """Imports a plugin; one that was imported for another driver stays what it was."""
    found = importlib.import_module(name)
    if _sha256_by_plugin.setdefault(name, plugin_sha256(name)) != sha256:
        raise ClusterSettingError(
            f"--plugin={name}: a worker has imported another module of this name, or "
            f"an earlier one ({found.__file__}): start the workers anew"
        )


@contextlib.contextmanager
def _exit_if_cancelled() -> Iterator[None]:
    """Ends the worker in mid-run if its driver is gone; its nanny starts another.

    The run would continue to its end, and lock its folder meanwhile.
    """
    import distributed

    worker = distributed.get_worker()
    key, over = worker.get_current_task(), threading.Event()

    def look() -> None:
        while not over.wait(_LOOK_SECONDS):
            task = worker.state.tasks.get(key)
            if task is None or task.state == "cancelled":
                os._exit(1)

    threading.Thread(target=look, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def make_runs(
    connection: ClusterConnection,
    run: Callable[..., None],
    jobs: Iterable[Any],
    load: Callable[..., Any],
) -> Iterator[tuple[Any, Optional[LostRunError]]]:
    """Makes runs as tasks of a cluster, and gives each when it is finished.

    `run` makes a job's run of the data that `load` gives there. A run whose worker dies
    is begun again by another, which resumes it from its last checkpoint.
    """
    # A worker keeps what it loads for one call, and not for the next: files change.
    client, sent = connection.client, tasks.to_bytes((uuid.uuid4().hex, load))
    same = connection.environment, tuple(PLUGINS.items()), os.getcwd(), sent
    running = {}
    for job in jobs:
        placed = job._replace(folder=os.path.abspath(job.folder))
        content = tasks.to_bytes((run, placed))
        running[client.submit(run_on_worker, *same, content, pure=False)] = job
    with tqdm(total=len(running), desc="runs", unit="run", mininterval=1) as bar:
        try:
            while running:
                for future in connection.first_done(list(running)):
                    lost = _lost_run_error(connection, future, running[future])
                    yield running.pop(future), lost
                    bar.update()
        except BaseException:
            # A worker that makes one sees that it is not wanted any more, and ends.
            client.cancel(list(running), force=True)
            raise


def _lost_run_error(connection: ClusterConnection, future: Any, job: Any) -> Any:
    """Returns why a run was lost, if it was; raises all other errors."""
    from distributed.scheduler import KilledWorker

    if future.status == "finished":
        return None
    error = future.exception() if future.status == "error" else None
    if error is None or isinstance(error, KilledWorker):
        raise connection.lost_error(
            f"the run {job.settings.label} ended with the scheduler or its workers "
            f"({one_line(error or future.status)})"
        )
    if isinstance(error, InUseError):  # It may wake up: no other may write.
        return LostRunError(
            f"{error}, perhaps a worker that was stopped: end it, and --resume"
        )
    if isinstance(error, LostRunError):
        return error
    if isinstance(error, tasks.EnvironmentMismatchError):
        raise ClusterError(f"a worker cannot be used: {error}") from error
    raise error


def write_probe_file(folder: str, data_dir: str) -> tuple[str, str]:
    """Writes a file from a worker; its path, and what is wrong with folders there."""
    # Such names are known for leftovers: the folder still counts as empty.
    path = os.path.join(folder, f"{uuid.uuid4().hex}.new")
    try:
        with open(path, "w"):
            pass
    except OSError as error:
        return path, f"{folder} cannot be written to ({error.strerror})"
    missing = data_dir and not os.path.isdir(data_dir)
    return path, f"--data_dir={data_dir} is not there" if missing else ""


def check_folders(
    connection: ClusterConnection, output_dir: str, data_dir: str
) -> None:
    """Asks each worker for a file that has to be seen here."""
    output_dir = os.path.abspath(output_dir)
    data_dir = data_dir and os.path.abspath(data_dir)
    files.list_folder(output_dir)
    found = connection.run_on_workers(write_probe_file, output_dir, data_dir)
    try:
        for worker, (path, wrong) in found.items():
            if not wrong and not _wait_for_file(path):
                wrong = f"what it writes into {output_dir} is not seen here"
            if wrong:
                raise ClusterSettingError(
                    f"--spread=runs: the worker {worker} does not share the folders: "
                    f"{wrong}"
                )
    finally:
        for path, _ in found.values():
            with contextlib.suppress(FileNotFoundError):
                os.remove(path)


def _wait_for_file(path: str, seconds: float = 5) -> bool:
    """Waits for a file that a network may show late; returns whether it came."""
    deadline = time.monotonic() + seconds
    while not os.path.exists(path) and time.monotonic() < deadline:
        time.sleep(0.1)
    return os.path.exists(path)
