"""Dask's scheduler and workers on this machine."""

from __future__ import annotations

import ast
import contextlib
import logging as std_logging
import os
import pathlib
import signal
import sys
import time
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Any

from tff_pmc.cluster import tasks
from tff_pmc.cluster.options import ClusterSettingError

# Read by the C library before Python starts. Dask's own settings make every freed array
# go back to the system, to be asked for again by the next step.
_WORKER_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_CONFIG = {
    # Dask's pages on the cluster are not behind TLS: no port is left open for them.
    "distributed.scheduler.preload": [tasks.__name__],
    "distributed.worker.preload": [tasks.__name__],
    "distributed.nanny.pre-spawn-environ": _WORKER_ENVIRONMENT,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Its thread may collect garbage while another holds what a TensorFlow graph needs
    # to be freed: then both wait for ever.
    "distributed.worker.profile.enabled": False,
    # Every process looks at its own clock this often, 50 times a second unless told.
    "distributed.admin.tick.interval": "1s",
}

_SECONDS = 300  # For what hangs. Workers take 2 to 8, under load many times that.


def start(workers: int, security: Any) -> Any:
    """Starts a scheduler in this process, and workers of one thread each.

    Raises:
        ClusterSettingError: a script asks for it where its workers, too, would; or they
            do not come.
    """
    _check_guarded()
    import dask
    import distributed

    _start_tracker()
    with dask.config.set(_CONFIG), _interrupts_blocked():
        cluster = distributed.LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            scheduler_kwargs={"dashboard": False},
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            memory_limit=0,
            security=security,
            silence_logs=std_logging.CRITICAL,
        )
        cluster.scale(workers)
        # With `n_workers` it would wait for ever for one that cannot be started.
        until = time.monotonic() + _SECONDS
        while len(cluster.scheduler_info["workers"]) < workers:
            if time.monotonic() > until:
                # What they were about to do is given up, and it would tell of that.
                std_logging.getLogger("asyncio").setLevel(std_logging.CRITICAL)
                with contextlib.suppress(Exception):
                    cluster.close(timeout=1)
                raise ClusterSettingError(
                    f"--cluster=local: its workers did not start in {_SECONDS} seconds "
                    "(is /dev/shm, or the memory, full?)"
                )
            time.sleep(0.05)
        return cluster


def _check_guarded() -> None:
    """Refuses a script that starts workers while it is imported, as each of them does.

    The line that the script is at has to be under an `if` that asks for `__name__`.
    Dask itself would start worker after worker, in silence.
    """
    main = sys.modules["__main__"]
    path = getattr(main, "__file__", None)
    frame = sys._getframe()
    while frame.f_globals is not vars(main) or frame.f_code.co_name != "<module>":
        if frame.f_back is None:
            return
        frame = frame.f_back
    try:
        tree = ast.parse(pathlib.Path(path).read_bytes())
    except (OSError, SyntaxError, TypeError, ValueError):
        return  # No script: workers import none.
    for node in ast.walk(tree):
        guards = isinstance(node, ast.If) and "__name__" in ast.dump(node.test)
        if guards and node.lineno <= frame.f_lineno <= node.end_lineno:
            return
    raise ClusterSettingError(
        f"{path}, line {frame.f_lineno}: the workers of a cluster on this machine "
        'import the script, too: put its code under `if __name__ == "__main__":`'
    )


def _start_tracker() -> None:
    """Starts what tracks semaphores in multiprocessing, before interrupts are blocked.

    Where the first worker starts it they are unblocked again. Workers are killed in the
    end, and it would then warn of what they left, which it clears away.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore:resource_tracker"
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """Blocks Ctrl-C in the threads that begin meanwhile, and in what they start.

    The terminal sends it to the workers, too: they end when this process says so.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
