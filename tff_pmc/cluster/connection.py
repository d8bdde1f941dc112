"""The way to the workers of a cluster: started here, or found at an address."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging as std_logging
import os
import signal
import time
from collections.abc import Iterator
from typing import Any, Callable

from leaf_data.errors import one_line
from tff_pmc.cluster import local_cluster, probe, tasks
from tff_pmc.cluster.options import ClusterOptions, ClusterSettingError
from tff_pmc.cluster.watch import TIMEOUTS, Watch
from tff_pmc.runtime import EngineError

WORKERS_SECONDS = 30
"""How long to wait for the first worker."""

LOSSES = (
    asyncio.CancelledError,
    concurrent.futures.CancelledError,
    KeyError,
    OSError,
    *TIMEOUTS,
)
"""What Dask raises when data or a connection went with a worker."""

_CLOSE_SECONDS = 5
_POLL_SECONDS = 0.1
_ASK_SECONDS = 300  # A worker that is asked for its versions imports TensorFlow first.


class ClusterError(EngineError):
    """The cluster, or every worker that tried, ended while a computation needed it."""


class ClusterConnection:
    """A client of a Dask scheduler, and the terms that its workers have met."""

    def __init__(self, options: ClusterOptions) -> None:
        """Starts a cluster or connects to one; a `ClusterSettingError` says why not."""
        options.check()
        probe.check(options)
        self.address = options.address
        self.terms = tasks.terms_of(options.threads)
        self._stores: set[tuple[str, str, str]] = set()  # What the workers see.
        self._cluster: Any = None
        self.client: Any = None
        self._watch: Any = None
        try:
            self._connect(options)
            self._watch = Watch(self.client, options.timeout)
            self._check_workers()
        except BaseException:
            self.close()
            raise

    def workers(self) -> list[str]:
        """The addresses of the workers; a `ClusterError` where no scheduler is left."""
        try:
            return sorted(self.client.scheduler_info()["workers"])
        except KeyError as error:  # The client is closed.
            raise self.lost("the scheduler is gone") from error

    def wait_for_a_worker(self, seconds: float = WORKERS_SECONDS) -> None:
        """Waits until there is a worker, or raises a `ClusterError`."""
        try:
            self.client.wait_for_workers(1, timeout=seconds)
        except (Exception, asyncio.CancelledError) as error:
            raise self.lost(f"no worker is left ({one_line(error)})") from error

    def lost(self, reason: str) -> ClusterError:
        """An error of this cluster with the reason, or a silent scheduler's."""
        return ClusterError(f"--cluster={self.address}: {self.silent() or reason}")

    def silent(self) -> str:
        """What is wrong with a scheduler that does not answer; empty for nothing."""
        return self._watch.lost if self._watch is not None else ""

    def still_there(self, futures: list[Any]) -> set[str]:
        """The keys of those futures whose data a worker has; or a `ClusterError`."""
        futures = [future for future in futures if future.status == "finished"]
        if not futures:
            return set()
        try:
            found = self.client.who_has(futures)
        except concurrent.futures.CancelledError:  # One was lost at this moment.
            return self.still_there(futures)
        except (Exception, asyncio.CancelledError) as error:
            raise self.lost(f"the scheduler is gone ({one_line(error)})") from error
        return {key for key, workers in found.items() if workers}

    def stop(self, futures: list[Any]) -> None:
        """Ends tasks that may be running; their workers begin anew."""
        keys = {future.key for future in futures}
        with contextlib.suppress(Exception):
            busy = [
                worker
                for worker, running in self.client.processing().items()
                if keys & set(running)
            ]
            self.client.cancel(futures, force=True)
            if busy and self._cluster is None:
                self.client.restart_workers(busy, timeout=30, raise_for_error=False)

    def close(self) -> None:
        """Leaves the cluster, and ends one that was started here."""
        client, cluster = self.client, self._cluster
        self.client = self._cluster = None
        if self._watch is not None:
            self._watch.close()
        with contextlib.suppress(Exception):
            if cluster is not None:
                # What they compute is needed by nobody, and would not end before it.
                for nanny in cluster.workers.values():
                    nanny.auto_restart = False
                    os.kill(nanny.pid, signal.SIGKILL)
        with contextlib.suppress(Exception):
            if client is not None:
                client.close(timeout=_CLOSE_SECONDS)
        with contextlib.suppress(Exception):
            if cluster is not None:
                cluster.close(timeout=_CLOSE_SECONDS)

    def _connect(self, options: ClusterOptions) -> None:
        import distributed

        # Those below have levels of their own.
        below = ("distributed.client", "distributed.gc", "tornado.application")
        for name in ("distributed", "tornado", *below):
            std_logging.getLogger(name).setLevel(std_logging.CRITICAL)
        place, where = options.place(), options.address
        if place is None:
            security = distributed.Security.temporary()
            workers = len(os.sched_getaffinity(0))
            where = self._cluster = local_cluster.start(workers, security)
        elif place.scheme == "tcp":
            security = distributed.Security(require_encryption=False)
        else:
            security = distributed.Security(
                require_encryption=True,
                tls_ca_file=options.tls_ca_file,
                tls_client_cert=options.tls_cert,
                tls_client_key=options.tls_key,
            )
        try:
            self.client = distributed.Client(
                where,
                security=security,
                timeout=probe.SECONDS,
                set_as_default=False,
                direct_to_workers=True,
                name="tff_pmc",
            )
            self.client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TIMEOUTS as error:
            raise ClusterSettingError(
                f"--cluster={options.address}: no worker came to the scheduler in "
                f"{WORKERS_SECONDS} seconds"
            ) from error
        except Exception as error:  # Whatever answers may say anything.
            raise ClusterSettingError(
                f"--cluster={options.address}: {one_line(error)}"
            ) from error

    def check_store(self, path: str, digest: str) -> None:
        """Refuses a worker that sees no such store, once for each worker and store."""
        from distributed.scheduler import KilledWorker

        new = [w for w in self.workers() if (w, path, digest) not in self._stores]
        for worker, error in self._ask(new, tasks.check_store, path, digest):
            if isinstance(error, (str, KilledWorker)):
                raise TimeoutError(f"{worker}: {error}")  # It is lost, and not refused.
            who = f"the worker {worker} needs the driver's store under the same path"
            raise self._unfit(who, error)
        self._stores.update((worker, path, digest) for worker in new)

    def _check_workers(self) -> None:
        """Asks every worker whether it is fit, which imports TensorFlow there."""
        check = tasks.check_versions
        for worker, error in self._ask(self.workers(), check, self.terms):
            who = f"the worker {worker} cannot be used"
            if "deserialization of the task graph" in str(error):
                # The scheduler reads what it hands on.
                who = "the scheduler cannot be used: it needs this package, too"
                error = getattr(error, "__cause__", None) or error
            raise self._unfit(who, error)

    def _ask(
        self, workers: list[str], check: Callable[..., None], *arguments: Any
    ) -> Iterator[tuple[str, Any]]:
        """The workers that fail a check, with the error or what became of it."""
        asked = {
            worker: self.client.submit(check, *arguments, workers=[worker], pure=False)
            for worker in workers
        }
        until = time.monotonic() + _ASK_SECONDS
        left = set(workers)
        while time.monotonic() < until and left & set(self.workers()):
            time.sleep(_POLL_SECONDS)
            left = {worker for worker in left if not asked[worker].done()}
        for worker, future in asked.items():
            if future.status != "finished":
                error = future.exception() if future.status == "error" else None
                yield worker, error or future.status

    def _unfit(self, who: str, error: Any) -> ClusterSettingError:
        reason = self.silent() or f"{who} ({one_line(error)})"
        return ClusterSettingError(f"--cluster={self.address}: {reason}")
