"""Dask's scheduler and workers on this machine."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Iterator
from typing import Any, Optional

from tff_pmc.cluster import tasks
from tff_pmc.cluster.options import ClusterSettingError

# The C library reads these before Python starts. With Dask's settings it would return
# every freed array to the system, and the next step would allocate it again.
_WORKER_ENVIRONMENT = {
    "MALLOC_TRIM_THRESHOLD_": str(2**33),
    "MALLOC_MMAP_THRESHOLD_": str(2**25),
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_CONFIG = {
    # Dask's status pages do not use TLS: no port stays open for them.
    "distributed.scheduler.preload": [tasks.__name__],
    "distributed.worker.preload": [tasks.__name__],
    "distributed.nanny.pre-spawn-environ": _WORKER_ENVIRONMENT,
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
    # Its thread may collect garbage while another holds a lock that TensorFlow needs to
    # free a graph: then both would wait forever.
    "distributed.worker.profile.enabled": False,
    # Every process wakes up this often; by default 50 times a second.
    "distributed.admin.tick.interval": "1s",
    # A worker that needs more memory than exists ends. It does not wait for memory,
    # because the C library returns none.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
}
CLOSE_SECONDS = 5
_POLL_SECONDS = 0.02
_START_SECONDS = 300  # Workers need 2 to 8, and under load many times that.


def start(
    workers: Optional[int] = None, security: Any = True, timeout: float = 60
) -> Any:
    """Starts a scheduler in this process, and workers of one thread each.

    By default it starts one worker per core that Dask counts, also in a container, and
    each may use all the memory that it finds. A worker that does not answer for
    `timeout` seconds is restarted.

    Raises:
        ClusterSettingError: the workers do not start.
    """
    import dask
    import distributed
    from dask.system import CPU_COUNT
    from distributed.system import MEMORY_LIMIT

    # Dask reads it whenever a worker is lost, so it must stay set. A worker whose
    # restart takes longer, by default 15 seconds, would be ended for good.
    dask.config.set({"distributed.deploy.lost-worker-timeout": f"{_START_SECONDS}s"})
    config = {**_CONFIG, "distributed.scheduler.worker-ttl": f"{timeout}s"}
    with dask.config.set(config), _block_interrupts():
        cluster = distributed.LocalCluster(
            n_workers=0,
            threads_per_worker=1,
            host="127.0.0.1",
            protocol="tls://",
            security=security,
            scheduler_kwargs={"dashboard": False},
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            memory_limit=MEMORY_LIMIT,
            silence_logs=logging.CRITICAL,
        )
        cluster.scale(workers or CPU_COUNT)
        try:
            # With `n_workers` it would wait forever for a worker that cannot start.
            cluster.wait_for_workers(workers or CPU_COUNT, _START_SECONDS)
        except Exception as error:
            # Their pending tasks are cancelled, which Dask would log.
            logging.getLogger("asyncio").setLevel(logging.CRITICAL)
            with contextlib.suppress(Exception):
                cluster.close(timeout=1)
            raise ClusterSettingError(
                "--cluster=local: its workers did not start within "
                f"{_START_SECONDS} seconds: check that memory and /dev/shm are not "
                "full, and put the script's code under "
                '`if __name__ == "__main__":`, because workers import it'
            ) from error
        return cluster


def close(cluster: Any) -> None:
    """Ends a cluster that `start` has started, and ignores errors."""
    # The workers' tasks are not needed, and Dask would let them finish. For a worker
    # that is killed while it starts, Dask waits forever unless its nanny saw the end.
    nannies = list(cluster.workers.values())
    deadline = time.monotonic() + CLOSE_SECONDS
    for nanny in nannies:
        nanny.close_gracefully()  # It does not restart the worker.
    while any(map(_kill_worker, nannies)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    with contextlib.suppress(Exception):
        cluster.close(timeout=CLOSE_SECONDS)


def _kill_worker(nanny: Any) -> bool:
    """Kills a nanny's worker; returns whether the nanny has yet to detect its end."""
    process = nanny.process
    if process is None or process.status.name in ("stopped", "failed"):
        return False
    with contextlib.suppress(ProcessLookupError, TypeError):  # It has no process now.
        os.kill(process.pid, signal.SIGKILL)
    return True


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Blocks Ctrl-C in threads that start meanwhile, and in processes they start.

    The terminal sends it to the workers, too, which must end with this process.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
