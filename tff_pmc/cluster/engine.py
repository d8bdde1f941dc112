"""The engine that spreads the clients of a round over the workers of a cluster.

The number of packs determines the tree of their sum, so results equal those of
`LocalEngine` with as many threads, to the bit.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any, Callable, Optional, Union

import tensorflow as tf
from absl import logging

from leaf_data.examples import StorePart
from tff_pmc.clients.stored_packs import StoredPack
from tff_pmc.cluster import spread_runs, tasks
from tff_pmc.cluster.connection import (
    WORKER_LOSS_ERRORS,
    ClusterConnection,
    ClusterError,
)
from tff_pmc.cluster.options import LOCAL, ClusterOptions
from tff_pmc.cluster.worker_packs import PacksOnWorkers
from tff_pmc.runtime.local import LocalEngine
from tff_pmc.runtime.map_reduce import SumPacks
from tff_pmc.runtime.pack_sums import (
    PackGraphs,
    current_cancellation_manager,
    merge_in_tree,
)

ATTEMPTS = 5
"""How often a round's sums are tried before the computation fails."""

_RETRY_SECONDS = 0.5

Tensors = Sequence[Any]


class ClusterEngine(LocalEngine):
    """Runs computations in this process, and the work of clients on a cluster."""

    def __init__(
        self, cluster: Union[str, ClusterOptions] = LOCAL, *, private: bool = True
    ) -> None:
        """Connects to the cluster, or starts one on this machine (about 8 seconds)."""
        super().__init__(private=private)
        if isinstance(cluster, str):
            cluster = ClusterOptions(cluster)
        self._options = cluster
        self.connection = ClusterConnection(cluster, _raise_if_cancelled)
        self._cache = (
            collections.OrderedDict()
        )  # Compilations are bound to this cluster.
        self.packs = PacksOnWorkers(self.connection)  # All computations share them.
        self._lock = threading.Lock()
        self._record("clients")

    def spreads_runs(self, number: int) -> bool:
        """Returns whether each of this number of runs is computed by one worker."""
        shares = self._options.spreads_runs(number, len(self.connection.workers()))
        self._record("runs" if shares else "clients")
        return shares

    def check_folders(
        self, output_dir: str, data_dir: str, stored: Optional[StorePart]
    ) -> None:
        """Raises a `ClusterSettingError` if a worker does not see folders or store."""
        if stored is not None:
            self.connection.check_store(stored.path, stored.digest)
        spread_runs.check_folders(self.connection, output_dir, data_dir)

    def remote_runner(self, run: Callable[..., None]) -> Callable[..., Any]:
        """Returns a function that computes jobs on workers by `run`; see `sweep`."""
        return functools.partial(spread_runs.make_runs, self.connection, run)

    def close(self) -> None:
        """Disconnects from the cluster, and ends it if it was started here."""
        super().close()
        self.connection.close()

    def _record(self, spread: str) -> None:
        self.context.recorded = tasks.engine_record(
            spread, self.connection.environment.threads
        )

    def _sum_packs(self, graphs: PackGraphs) -> SumPacks:
        return _Computation(self.packs, self._lock, graphs)


class _LostError(Exception):
    """Raised if a task, or data that it needs, is lost with a worker."""


class _Computation:
    """Sums the packs of one computation, whose graphs it sends once."""

    def __init__(
        self, packs: PacksOnWorkers, lock: threading.Lock, graphs: PackGraphs
    ) -> None:
        self._graphs = tasks.to_bytes(graphs)
        self._on_workers: dict[str, Any] = {}  # Each worker's copy of the graphs.
        self._packs, self._lock = packs, lock
        self._connection = packs.connection

    def __call__(self, packs: Iterator[Tensors], message: Tensors) -> list[tf.Tensor]:
        """Computes the sum, again if its data is lost, or raises a `ClusterError`.

        Dask itself recomputes single tasks that are lost.
        """
        pack_list, arrays = list(packs), [tensor.numpy() for tensor in message]
        with self._lock:
            for attempt in range(1, ATTEMPTS + 1):
                self._connection.wait_for_a_worker()
                try:
                    with _detect_worker_loss():
                        total = self._attempt(pack_list, arrays)
                        if total.status == "finished":
                            return list(map(tf.constant, self._gather(total)))
                    _raise_failure(total)
                except _LostError as error:
                    reason = error
                if attempt < ATTEMPTS:
                    logging.warning(
                        "A worker of the cluster was lost (%s): the round's sums are "
                        "computed again, attempt %d of %d.",
                        reason,
                        attempt + 1,
                        ATTEMPTS,
                    )
                    time.sleep(_RETRY_SECONDS)
                    self._packs.trim()
        raise self._connection.lost_error(
            f"workers were lost in each of {ATTEMPTS} attempts to compute one round's "
            f"sums ({reason})"
        )

    def _attempt(self, packs: list[Tensors], message: list[Any]) -> Any:
        """Starts the sum and returns its future once it is done or has failed."""
        connection = self._connection
        futures: list[Any] = []

        def submit(worker: str, function: Callable[..., Any], *arguments: Any) -> Any:
            fixed = connection.environment, self._on_workers[worker]
            futures.append(connection.submit(worker, function, *fixed, *arguments))
            return futures[-1], worker

        def merge(first: Any, second: Any) -> Any:
            # On a worker that has one of the sums: the scheduler would choose any.
            return submit(first[1], tasks.merge, first[0], second[0])

        for path, digest in _stores(packs):
            connection.check_store(path, digest)
        workers = connection.workers()
        if not workers:
            raise OSError("no worker is left")
        self._on_workers = connection.copy(self._graphs, workers, self._on_workers)
        copies = connection.copy(message, workers)
        try:
            sums = {
                index: submit(
                    pack.worker,
                    tasks.sum_pack,
                    pack.future,
                    copies[pack.worker],
                    index,
                )
                for index, pack in self._packs.place(packs, workers)
            }
            total, _ = merge_in_tree((sums[n] for n in range(len(packs))), merge)
            connection.first_done([total])
        except BaseException:
            with contextlib.suppress(Exception):
                connection.call(connection.client.cancel, futures)
            raise
        self._packs.trim()
        return total

    def _gather(self, total: Any) -> list[Any]:
        """Fetches a finished sum; an `OSError` if it was lost with its worker."""

        def check() -> None:
            if total.status != "finished":
                raise OSError(f"the sum is {total.status}")

        connection = self._connection
        sums: list[Any] = connection.call(connection.client.gather, total, check=check)
        return sums


@contextlib.contextmanager
def _detect_worker_loss() -> Iterator[None]:
    """Turns errors that the loss of a worker causes into a `_LostError`."""
    try:
        yield
    except WORKER_LOSS_ERRORS as error:
        _raise_if_cancelled()
        raise _LostError(f"{type(error).__name__} {error}".strip()) from error


def _raise_if_cancelled() -> None:
    manager = current_cancellation_manager()
    if manager is not None and manager.is_cancelled:
        raise CancelledError("the call was cancelled")


def _raise_failure(total: Any) -> None:
    """Raises the error of a sum that did not finish."""
    from distributed.scheduler import KilledWorker

    if total.status != "error":
        raise _LostError(f"its data was {total.status}")
    error = total.exception()
    if isinstance(error, (KilledWorker, CancelledError)):
        raise _LostError("it died in a task") from error
    if isinstance(error, tasks.EnvironmentMismatchError):
        raise ClusterError(f"a worker cannot be used: {error}") from error
    raise error


def _stores(packs: Sequence[Tensors]) -> set[tuple[str, str]]:
    """Returns the path and the checksum of each store that packs refer to."""
    return {
        tensor.reference.stored[:2]
        for pack in packs
        for tensor in pack
        if isinstance(tensor, StoredPack)
    }
