"""The engine that spreads the clients of a round over the workers of a cluster.

The sum of packs is a tree that their number fixes, so results equal those of
`LocalEngine` with as many threads, to the bit.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from typing import Any, Callable, NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf
from absl import logging

from leaf_data.errors import one_line
from leaf_data.examples import StorePart
from tff_pmc.clients.stored_packs import StoredPack
from tff_pmc.cluster import spread_runs, tasks
from tff_pmc.cluster.connection import LOSSES, ClusterConnection, ClusterError
from tff_pmc.cluster.options import LOCAL, ClusterOptions
from tff_pmc.cluster.placed_packs import PacksOnWorkers
from tff_pmc.runtime.local import LocalEngine
from tff_pmc.runtime.pack_sums import PackGraphs, cancelling, merged_in_tree
from tff_pmc.runtime.round_form import SumPacks

ATTEMPTS = 5
"""How often a round's sums are made before the cluster is given up."""

_POLL_SECONDS = 0.1
_LOOK_SECONDS = 5  # How often to look whether the workers of a call are still there.

Tensors = Sequence[tf.Tensor]


class _Computation:
    """What sums the packs of one computation, whose graphs it sends once."""

    def __init__(
        self, packs: PacksOnWorkers, one_at_a_time: threading.Lock, graphs: PackGraphs
    ) -> None:
        self._graphs = tasks.to_bytes(graphs)
        self._on_workers: list[Any] = []  # The graphs' future, once there is one.
        self._packs, self._one_at_a_time = packs, one_at_a_time
        self._connection = packs.connection

    def __call__(self, packs: Iterator[Tensors], sent: Tensors) -> list[tf.Tensor]:
        """The sum, made again when workers are lost, in the end a `ClusterError`."""
        with self._one_at_a_time:
            try:
                return self._total(list(packs), [tensor.numpy() for tensor in sent])
            except Exception as error:
                if self._connection.silent():  # Which closed the client in mid-call.
                    raise self._connection.lost("") from error
                raise

    def _total(self, packs: list[Tensors], sent: list[np.ndarray]) -> list[tf.Tensor]:
        for attempt in range(1, ATTEMPTS + 1):
            self._connection.wait_for_a_worker()
            try:
                return self._attempt(packs, sent)
            except _LostError as error:
                reason = error
            if attempt < ATTEMPTS:
                logging.warning(
                    "A worker of the cluster was lost (%s): the round's sums are made "
                    "again, attempt %d of %d.",
                    reason,
                    attempt + 1,
                    ATTEMPTS,
                )
                time.sleep(0.5 * attempt)
                self._packs.forget_lost()
                if not self._connection.still_there(self._on_workers):
                    self._on_workers.clear()
        raise ClusterError(
            f"--cluster={self._connection.address}: workers were lost in each of "
            f"{ATTEMPTS} attempts to make one round's sums ({reason})"
        )

    def _attempt(self, packs: list[Tensors], sent: list[np.ndarray]) -> list[tf.Tensor]:
        client, terms = self._connection.client, self._connection.terms
        traffic = self._packs.traffic
        begun: list[Any] = []

        def submit(worker: str, function: Callable[..., Any], *arguments: Any) -> _Sum:
            arguments = (terms, self._on_workers[0], *arguments)
            begun.append(
                client.submit(function, *arguments, pure=False, workers=[worker])
            )
            return _Sum(begun[-1], worker)

        def merged(one: _Sum, other: _Sum) -> _Sum:
            # Where one of them is: the scheduler would take who has the time.
            return submit(one.worker, tasks.merge, one.future, other.future)

        try:
            with _losses():
                for path, digest in _stores(packs):
                    self._connection.check_store(path, digest)
                workers = self._connection.workers()
                if not self._on_workers:
                    self._on_workers += self._broadcast(self._graphs)
                    traffic.graphs += len(self._graphs) * len(workers)
                (at_workers,) = self._broadcast(sent)
                traffic.sent += _num_bytes(sent) * len(workers)
                of_packs = {
                    number: submit(
                        pack.worker,
                        tasks.sum_of_pack,
                        *(pack.future, at_workers, number),
                    )
                    for number, pack in self._packs.place(packs, workers)
                }
                total, _ = merged_in_tree(
                    (of_packs[number] for number in range(len(packs))), merged
                )
            self._wait(total, {each.worker for each in of_packs.values()})
            with _losses():
                found = total.result()
        except BaseException:
            with contextlib.suppress(Exception):
                client.cancel(begun)
            raise
        self._packs.trim()
        traffic.received += _num_bytes(found)
        return [tf.constant(array) for array in found]

    def _broadcast(self, value: Any) -> list[Any]:
        client = self._connection.client
        try:
            return list(client.scatter([value], broadcast=True, hash=False))
        except ValueError as error:  # The only worker that had it was lost.
            raise _LostError(one_line(error)) from error

    def _wait(self, total: Any, workers: set[str]) -> None:
        """Waits for the sum, and looks whether the workers are still there."""
        manager = cancelling()
        ended = threading.Event()
        total.add_done_callback(lambda _: ended.set())
        look_at = time.monotonic() + _LOOK_SECONDS
        while not ended.wait(_POLL_SECONDS):
            if manager is not None and manager.is_cancelled:
                raise CancelledError("the call was cancelled")
            if time.monotonic() > look_at:
                look_at = time.monotonic() + _LOOK_SECONDS
                with _losses():
                    gone = workers - set(self._connection.workers())
                if gone:
                    raise _LostError(f"{sorted(gone)[0]} is gone")
        if total.status == "error":
            _raise_of_task(total.exception())
        if total.status != "finished":
            raise _LostError(f"its data was {total.status}")


class _Sum(NamedTuple):
    """A sum to be, and the worker that makes it."""

    future: Any
    worker: str


class _LostError(Exception):
    """What a task needed, or the task itself, went with a worker."""


@contextlib.contextmanager
def _losses() -> Iterator[None]:
    """Tells the loss of a worker from other errors."""
    try:
        yield
    except LOSSES as error:
        raise _LostError(f"{type(error).__name__} {error}".strip()) from error


def _num_bytes(arrays: Sequence[Any]) -> int:
    return sum(np.asarray(array).nbytes for array in arrays)


def _raise_of_task(error: BaseException) -> None:
    from distributed.scheduler import KilledWorker

    if isinstance(error, (KilledWorker, CancelledError)):
        raise _LostError("it died of a task") from error
    if isinstance(error, tasks.TermsError):
        raise ClusterError(
            f"a worker of the cluster cannot be used: {error}"
        ) from error
    raise error


class ClusterEngine(LocalEngine):
    """Runs computations in this process, and their clients on a cluster."""

    def __init__(
        self, cluster: Union[str, ClusterOptions] = LOCAL, *, private: bool = True
    ) -> None:
        """Connects to the cluster; one on this machine is started (about 8 seconds)."""
        super().__init__(private=private)
        if isinstance(cluster, str):
            cluster = ClusterOptions(cluster)
        self._options = cluster
        self.connection = ClusterConnection(cluster)
        self.packs = PacksOnWorkers(self.connection)  # They serve all computations.
        self._one_at_a_time = threading.Lock()
        self.record("clients")

    def record(self, spread: str) -> None:
        """Says what is spread, `runs` or `clients`, for the versions in `run.json`."""
        self.context.recorded = tasks.recorded(spread, self.connection.terms.threads)

    def shares_runs(self, number: int) -> bool:
        """Whether so many runs are made by the workers, each by one of them."""
        if not self._options.spreads_runs(number, len(self.connection.workers())):
            return False
        self.record("runs")
        return True

    def check_folders(
        self, output_dir: str, data_dir: str, stored: Optional[StorePart]
    ) -> None:
        """Refuses a worker that does not see the folders, or the store of the data."""
        if stored is not None:
            self.connection.check_store(stored.path, stored.digest)
        spread_runs.check_folders(self.connection, output_dir, data_dir)

    def runs_by(self, run: Callable[..., None], load: Callable[..., Any]) -> Any:
        """What makes jobs by `run`, of the data that `load` gives, on the workers."""
        return functools.partial(spread_runs.make_runs, self.connection, run, load)

    def close(self) -> None:
        """Leaves the cluster, and ends one that was started here."""
        super().close()
        self.connection.close()

    def _sum_packs(self, graphs: PackGraphs) -> SumPacks:
        return _Computation(self.packs, self._one_at_a_time, graphs)


def _stores(packs: Sequence[Tensors]) -> set[tuple[str, str]]:
    """The path and the checksum of each store that is referred to."""
    return {
        tensor.reference.stored[:2]
        for pack in packs
        for tensor in pack
        if isinstance(tensor, StoredPack)
    }
