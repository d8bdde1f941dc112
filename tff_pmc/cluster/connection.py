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

from leaf_data.errors import error_summary, shorten
from tff_pmc.cluster import local_cluster, tasks
from tff_pmc.cluster.options import LOCAL, ClusterOptions, ClusterSettingError
from tff_pmc.runtime import EngineError

WORKERS_SECONDS = 30
"""The seconds to wait for the first worker."""

# From Python 3.11 on these are one class.
TIMEOUTS = (TimeoutError, asyncio.TimeoutError, concurrent.futures.TimeoutError)
CANCELLED = (asyncio.CancelledError, concurrent.futures.CancelledError)
WORKER_LOSS_ERRORS = (*CANCELLED, *TIMEOUTS, KeyError, OSError)
"""The errors that Dask raises when data or a connection is lost with a worker."""

_CONNECT_SECONDS = 10
_CHECK_SECONDS = 1  # How often to check whether the scheduler still answers.
_POLL_SECONDS = 0.1  # How often a call checks whether it was cancelled.


class ClusterError(EngineError):
    """Raised if the cluster, or each worker that tried, ends during a computation."""


class ClusterConnection:
    """A client of a Dask scheduler, whose workers match the driver's environment."""

    def __init__(
        self,
        options: ClusterOptions,
        check_cancelled: Callable[[], None] = lambda: None,
    ) -> None:
        """Starts a cluster or connects to one.

        Args:
            options: the address of the cluster, and how to connect.
            check_cancelled: raises a `CancelledError` if the computation that waits
                for the cluster was cancelled; by default it never does.

        Raises:
            ClusterSettingError: the cluster cannot be started or used.
        """
        options.check()
        self._check_cancelled = check_cancelled
        self.address, self._timeout = options.address, options.timeout
        self.environment = tasks.local_environment(options.threads)
        self._stores: set[tuple[str, str]] = set()  # Those that all workers see.
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
            raise self.lost_error("the scheduler has ended") from error

    def wait_for_a_worker(self, seconds: float = WORKERS_SECONDS) -> None:
        """Waits until a worker is connected, or raises a `ClusterError`."""
        self.check_scheduler()
        try:
            wait = self.client.wait_for_workers
            self.call(wait, 1, timeout=seconds, limit=seconds + self._timeout)
        except (Exception, asyncio.CancelledError) as error:
            self._check_cancelled()
            raise self.lost_error(
                f"no worker is left ({error_summary(error)})"
            ) from error

    def lost_error(self, reason: str) -> ClusterError:
        """Returns a `ClusterError` that names this cluster and the reason."""
        return ClusterError(f"--cluster={self.address}: {reason}")

    def check_scheduler(self) -> None:
        """Raises a `ClusterError` if the scheduler does not answer in time.

        A stopped scheduler keeps its connections: a call without a limit would wait
        forever.
        """
        try:
            self.client.sync(
                self.client.scheduler.identity, callback_timeout=self._timeout
            )
        except TIMEOUTS as error:
            raise self.lost_error(
                f"the scheduler did not answer for {self._timeout:g} seconds"
            ) from error
        except Exception:  # The connection is closed, which all calls detect.
            return

    def call(
        self,
        method: Callable[..., Any],
        *arguments: Any,
        check: Callable[[], None] = lambda: None,
        limit: Optional[float] = None,
        **options: Any,
    ) -> Any:
        """Calls a method of the client, and gives up when no result can come.

        Dask itself tries to reach a worker that has ended for half a minute or forever.

        Args:
            method: a method of the client.
            *arguments: its arguments.
            check: a function that is called while the result is awaited, and raises an
                error if none will come; by default it does nothing.
            limit: how long to wait, in seconds; by default the cluster's timeout.
            **options: its keyword arguments.

        Raises:
            CancelledError: the calling computation was cancelled meanwhile.
            TimeoutError: the call took longer than the limit.
            ClusterError: the call took longer than the limit, because the scheduler
                does not answer.
        """

        async def call_method() -> Any:
            return await method(*arguments, **options)

        limit = self._timeout if limit is None else limit
        deadline = time.monotonic() + limit
        loop = self.client.loop.asyncio_loop
        future = asyncio.run_coroutine_threadsafe(call_method(), loop)
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
        """Sends a value to a worker; returns the future of the value.

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
        """Starts a task on a worker, or on another if it is lost; returns a future."""
        return self.client.submit(
            function, *arguments, pure=False, workers=[worker], allow_other_workers=True
        )

    def copy(
        self,
        value: Any,
        workers: Sequence[str],
        copies: Mapping[str, Any] = types.MappingProxyType({}),
    ) -> dict[str, Any]:
        """Copies a value to each worker; workers pass it on in a binary tree.

        A copy is a task: Dask recomputes a lost one from its parent's copy. (Dask's own
        broadcast tries forever to reach a worker that has ended.)

        Args:
            value: the value, which is sent to the first worker.
            workers: the addresses of one or more workers.
            copies: the futures of existing copies, by address; by default none.

        Returns:
            The futures of all copies by address.

        Raises:
            OSError: the first worker was lost meanwhile.
        """
        workers_with_copy = [
            w for w in workers if w in copies and copies[w].status == "finished"
        ]
        futures = {worker: copies[worker] for worker in workers_with_copy}
        if not futures:
            futures[workers[0]] = self.send(value, workers[0])
        order = [*futures, *(worker for worker in workers if worker not in futures)]
        for index in range(len(futures), len(order)):
            parent = futures[order[(index - 1) // 2]]
            futures[order[index]] = self.submit(order[index], tasks.keep, parent)
        return futures

    def first_done(self, futures: Sequence[Any]) -> list[Any]:
        """Waits until futures are done, successfully or not, and returns these.

        Raises:
            CancelledError: the calling computation was cancelled meanwhile.
        """
        import distributed

        while not (done := [future for future in futures if future.done()]):
            try:
                with self.client.as_current(), contextlib.suppress(*CANCELLED):
                    distributed.wait(futures, _CHECK_SECONDS, "FIRST_COMPLETED")
            except TIMEOUTS:
                self._check_cancelled()
                self.check_scheduler()
        return done

    def check_store(self, path: str, digest: str) -> None:
        """Raises a `ClusterSettingError` if a worker does not see this store."""
        if (path, digest) not in self._stores:
            self.run_on_workers(tasks.check_store, path, digest)
            self._stores.add((path, digest))

    def close(self) -> None:
        """Disconnects from the cluster, and ends it if it was started here."""
        client, cluster = self.client, self._cluster
        self.client = self._cluster = None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close(timeout=local_cluster.CLOSE_SECONDS)
        if cluster is not None:
            local_cluster.close(cluster)

    def _connect(self, options: ClusterOptions) -> None:
        import distributed

        # These loggers have levels of their own.
        loggers = ("distributed.client", "distributed.gc", "tornado.application")
        for name in ("distributed", "tornado", *loggers):
            logging.getLogger(name).setLevel(logging.CRITICAL)
        address: Any = options.address
        if address == LOCAL:
            address = self._cluster = local_cluster.start(
                options.workers, timeout=options.timeout
            )
            security = address.security
        else:
            security = distributed.Security(
                require_encryption=not options.insecure,
                tls_ca_file=options.files["tls_ca_file"] or None,
                tls_client_cert=options.files["tls_cert"] or None,
                tls_client_key=options.files["tls_key"] or None,
            )
        try:
            self.client = distributed.Client(
                address,
                security=security,
                timeout=_CONNECT_SECONDS,
                set_as_default=False,
                direct_to_workers=True,
                name="tff_pmc",
            )
        except Exception as error:  # A foreign server may send anything.
            files = ", ".join(f"--{k}={v}" for k, v in options.files.items() if v)
            raise ClusterSettingError(
                f"--cluster={options.address}: no compatible Dask scheduler "
                f"answered{files and f' with {files}'} ({error_summary(error)})"
            ) from error
        try:
            self.client.wait_for_workers(1, timeout=WORKERS_SECONDS)
        except TIMEOUTS as error:
            raise ClusterSettingError(
                f"--cluster={options.address}: no worker connected to the "
                f"scheduler within {WORKERS_SECONDS} seconds: start workers"
            ) from error

    def run_on_workers(
        self, function: Callable[..., Any], *arguments: Any
    ) -> dict[str, Any]:
        """Calls a function on each worker; returns the results by the worker's address.

        An error of the function on a worker is raised here as a `ClusterSettingError`.
        """
        try:
            outcomes = self.call(
                self.client.run, function, *arguments, on_error="return"
            )
        except TIMEOUTS as error:
            words = f"a worker did not answer for {self._timeout:g} seconds"
            raise self.lost_error(words) from error
        results = {}
        for worker, outcome in outcomes.items():
            if not isinstance(outcome, Exception):
                results[worker] = outcome
            elif not isinstance(
                outcome, OSError
            ):  # It died: tasks check its successor.
                raise ClusterSettingError(
                    f"--cluster={self.address}: the worker {worker} cannot be used: "
                    f"{shorten(outcome)}"
                )
        return results
