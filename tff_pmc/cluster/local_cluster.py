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

# Read by the C library before Python starts. Dask's settings make every freed array
# go back to the system, and the next step allocates it again.
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
    # Every process looks at its clock this often, 50 times a second by default.
    "distributed.admin.tick.interval": "1s",
    # One that takes more than there is ends, and none waits for memory to come back:
    # the C library keeps it.
    "distributed.worker.memory.target": False,
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
}
CLOSE_SECONDS = 5
_POLL_SECONDS = 0.02
_START_SECONDS = 300  # For what hangs. Workers take 2 to 8, under load many times that.


def start(
    workers: Optional[int] = None, security: Any = True, timeout: float = 60
) -> Any:
    """Starts a scheduler in this process, and workers of one thread each.

    By default there are as many workers as Dask counts cores, of a container too, and
    each may take the memory that it finds. A worker that is silent for `timeout`
    seconds is started anew.

    Raises:
        ClusterSettingError: the workers do not come.
    """
    import dask
    import distributed
    from dask.system import CPU_COUNT
    from distributed.system import MEMORY_LIMIT

    # Read whenever a worker is lost, so it has to stay set. One that takes longer to
    # start anew, 15 seconds by default, is ended for good.
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
            # With `n_workers` it would wait for ever for one that cannot be started.
            cluster.wait_for_workers(workers or CPU_COUNT, _START_SECONDS)
        except Exception as error:
            # What they were about to do is given up, which Dask would log.
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
    """Ends a cluster that `start` has started, without a word of what goes wrong."""
    # What the workers compute is not needed, and Dask would let them finish it. For one
    # that is killed while it starts, Dask would wait for ever unless it knows its end.
    nannies = list(cluster.workers.values())
    deadline = time.monotonic() + CLOSE_SECONDS
    for nanny in nannies:
        nanny.close_gracefully()  # It starts no other worker.
    while any(map(_kill_worker, nannies)) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
    with contextlib.suppress(Exception):
        cluster.close(timeout=CLOSE_SECONDS)


def _kill_worker(nanny: Any) -> bool:
    """Kills the worker of a nanny; returns whether the nanny has yet to see its end."""
    process = nanny.process
    if process is None or process.status.name in ("stopped", "failed"):
        return False
    with contextlib.suppress(ProcessLookupError, TypeError):  # It has no process now.
        os.kill(process.pid, signal.SIGKILL)
    return True


@contextlib.contextmanager
def _block_interrupts() -> Iterator[None]:
    """Blocks Ctrl-C in the threads that begin meanwhile, and in what they start.

    The terminal also sends it to the workers: they end when this process ends them.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
