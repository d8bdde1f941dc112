"""The connection to the workers of a cluster: started here, or at an address."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import time
import types
from collections.abc import Mapping, Sequence
from typing import Any, Callable, Optional

from leaf_data.errors import one_line
from tff_pmc.cluster import local_cluster, tasks
from tff_pmc.cluster.options import LOCAL, ClusterOptions, ClusterSettingError
from tff_pmc.runtime import EngineError

WORKERS_SECONDS = 30
"""How long to wait for the first worker."""

# One class only from Python 3.11 on.
TIMEOUTS = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError)
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
WORKER_LOSS_ERRORS = (*CANCELLED, *TIMEOUTS, KeyError, OSError)
"""What Dask raises when data or a connection went with a worker."""

_CONNECT_SECONDS = 10
_LOOK_SECONDS = 1  # How often to look whether the scheduler is still there.
_POLL_SECONDS = 0.1  # How often a call looks whether its answer is still wanted.


class ClusterError(EngineError):
    """The cluster, or every worker that tried, ended while a computation needed it."""


class ClusterConnection:
    """A client of a Dask scheduler, and the terms that its workers have met."""

    def __init__(
        self,
        options: ClusterOptions,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """Starts a cluster or connects to one.

        Args:
            options: which cluster, and how to reach it.
            check_cancelled: raises a `CancelledError` if the computation that waits
                for the cluster was cancelled; by default none is.

        Raises:
            ClusterSettingError: the cluster cannot be started or used.
        """
        options.check()
        self._check_cancelled = check_cancelled
        self.address, self._timeout = options.address, options.timeout
        self.environment = tasks.local_environment(options.threads)
        self._stores: set[tuple[str, str]] = set()  # What the workers see.
        self._cluster: Any = None
        self.client: Any = None
        try:
            self._connect(options)
            self.run_on_workers(tasks.check_versions, self.environment)
        except BaseException:
            self.close()
            raise

    def workers(self) -> list[str]:
        """Returns the addresses of the workers, or raises a `ClusterError`."""
        try:
            return sorted(self.call(self.client.scheduler.identity)["workers"])
        except (KeyError, OSError) as error:  # The client is closed.
            self._check_cancelled()
            raise self.lost_error("the scheduler is gone") from error

    def wait_for_a_worker(self, seconds: float = WORKERS_SECONDS) -> None:
        """Waits until there is a worker, or raises a `ClusterError`."""
        self.check_scheduler()
        try:
            wait = self.client.wait_for_workers
            self.call(wait, 1, timeout=seconds, limit=seconds + self._timeout)
        except (Exception, asyncio.CancelledError) as error:
            self._check_cancelled()
            raise self.lost_error(f"no worker is left ({one_line(error)})") from error

    def lost_error(self, reason: str) -> ClusterError:
        """Makes an error of this cluster with the reason."""
        return ClusterError(f"--cluster={self.address}: {reason}")

    def check_scheduler(self) -> None:
        """Raises a `ClusterError` where the scheduler does not answer in time.

        One that is stopped keeps its connections: a call without a limit would wait.
        """
        try:
            self.client.sync(
                self.client.scheduler.identity, callback_timeout=self._timeout
            )
        except TIMEOUTS as error:
            raise self.lost_error(
                f"the scheduler did not answer for {self._timeout:g} seconds"
            ) from error
        except Exception:  # The connection is closed, which all calls see.
            return

    def call(
        self,
        method: Callable[..., Any],
        *arguments: Any,
        check: Callable[[], None] = lambda: None,
        limit: Optional[float] = None,
        **options: Any,
    ) -> Any:
        """Calls a method of the client, and gives up where the answer cannot come.

        Dask tries to reach a worker that has ended for half a minute, or for ever.

        Args:
            method: a method of the client.
            *arguments: its arguments.
            check: is called while the answer is awaited, and raises an error if there
                will be none.
            limit: how long to wait, in seconds; by default the cluster's timeout.
            **options: its keyword arguments.

        Raises:
            CancelledError: the computation that called was cancelled meanwhile.
            TimeoutError: the answer took longer than the limit.
            ClusterError: it did, because the scheduler does not answer.
        """

        async def answer() -> Any:
            return await method(*arguments, **options)

        limit = self._timeout if limit is None else limit
        deadline = time.monotonic() + limit
        loop = self.client.loop.asyncio_loop
        future = asyncio.run_coroutine_threadsafe(answer(), loop)
        try:
            while not concurrent.futures.wait([future], _POLL_SECONDS).done:
                self._check_cancelled()
                check()
                if time.monotonic() > deadline:
                    self.check_scheduler()
                    raise TimeoutError(f"no answer for {limit:g} seconds")
        except BaseException:
            future.cancel()
            raise
        return future.result()

    def send(self, value: Any, worker: str) -> Any:
        """Sends a value to a worker; returns its future.

        Raises:
            OSError: the worker was lost meanwhile.
        """

        def check() -> None:
            if worker not in self.workers():
                raise OSError(f"{worker} has left")

        (future,) = self.call(
            self.client.scatter, [value], workers=[worker], hash=False, check=check
        )
        return future

    def submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
        """Starts a task on a worker, or elsewhere if it is lost; returns its future."""
        return self.client.submit(
            function, *arguments, pure=False, workers=[worker], allow_other_workers=True
        )

    def copy(
        self,
        value: Any,
        workers: Sequence[str],
        copies: Mapping[str, Any] = types.MappingProxyType({}),
    ) -> dict[str, Any]:
        """Gives each worker a copy of a value, which workers hand on in a binary tree.

        A copy is a task: one that is lost is made again from its parent's. (Dask's own
        broadcast tries for ever to reach a worker that has ended.)

        Args:
            value: what is sent to the first worker.
            workers: the addresses of one worker or more.
            copies: those that there are already, by address.

        Returns:
            The futures of all copies by address.

        Raises:
            OSError: the first worker was lost meanwhile.
        """
        there = [w for w in workers if w in copies and copies[w].status == "finished"]
        futures = {worker: copies[worker] for worker in there}
        if not futures:
            futures[workers[0]] = self.send(value, workers[0])
        order = [*futures, *(worker for worker in workers if worker not in futures)]
        for index in range(len(futures), len(order)):
            parent = futures[order[(index - 1) // 2]]
            futures[order[index]] = self.submit(order[index], tasks.keep, parent)
        return futures

    def first_done(self, futures: Sequence[Any]) -> list[Any]:
        """Waits for futures that are done, however that is.

        Raises:
            CancelledError: the computation that called was cancelled meanwhile.
        """
        import distributed

        while not (done := [future for future in futures if future.done()]):
            try:
                with self.client.as_current(), contextlib.suppress(*CANCELLED):
                    distributed.wait(futures, _LOOK_SECONDS, "FIRST_COMPLETED")
            except TIMEOUTS:
                self._check_cancelled()
                self.check_scheduler()
        return done

    def check_store(self, path: str, digest: str) -> None:
        """Refuses a worker that sees no such store, once for each store."""
        if (path, digest) not in self._stores:
            self.run_on_workers(tasks.check_store, path, digest)
            self._stores.add((path, digest))

    def close(self) -> None:
        """Leaves the cluster, and ends one that was started here."""
        client, cluster = self.client, self._cluster
        self.client = self._cluster = None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=local_cluster.CLOSE_SECONDS)
        if cluster is not None:
            local_cluster.close(cluster)

    def _connect(self, options: ClusterOptions) -> None:
        import distributed

        # The loggers below have separate levels.
        below = ("distributed.client", "distributed.gc", "tornado.application")
        for name in ("distributed", "tornado", *below):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        where: Any = options.address
        if where == LOCAL:
            where = self._cluster = local_cluster.start(
                options.workers, timeout=options.timeout
            )
            security = where.security
        else:
            security = distributed.Security(
                require_encryption=not options.insecure,
                tls_ca_file=options.files["tls_ca_file"] or None,
                tls_client_cert=options.files["tls_cert"] or None,
                tls_client_key=options.files["tls_key"] or None,
            )
        try:
            self.client = distributed.Client(
                where,
                security=security,
                timeout=_CONNECT_SECONDS,
                set_as_default=False,
                direct_to_workers=True,
                name="tff_pmc",
            )
        except Exception as error:  # Whatever listens there may send anything.
            files = ", ".join(f"--{k}={v}" for k, v in options.files.items() if v)
            raise ClusterSettingError(
                f"--cluster={options.address}: no scheduler answers that is ours"
                f"{files and f' by {files}'} ({one_line(error)})"
            ) from error
        try:
            self.client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TIMEOUTS as error:
            raise ClusterSettingError(
                f"--cluster={options.address}: no worker came to the scheduler in "
                f"{WORKERS_SECONDS} seconds"
            ) from error

    def run_on_workers(
        self, function: Callable[..., Any], *arguments: Any
    ) -> dict[str, Any]:
        """Calls a function on each worker; returns the results, by its address.

        What the function raises there is wrong with the worker: it is raised here, as
        a `ClusterSettingError`.
        """
        try:
            found = self.call(self.client.run, function, *arguments, on_error="return")
        except TIMEOUTS as error:
            words = f"a worker did not answer for {self._timeout:g} seconds"
            raise self.lost_error(words) from error
        results = {}
        for worker, result in found.items():
            if not isinstance(result, Exception):
                results[worker] = result
            elif not isinstance(result, OSError):  # It died: its tasks check the next.
                raise ClusterSettingError(
                    f"--cluster={self.address}: the worker {worker} cannot be used: "
                    f"{one_line(result)}"
                )
        return results
