"""The engine that runs TFF's computations in this process.

The engine runs a federated computation in its MapReduceForm (`map_reduce.py`), and a
computation of TensorFlow alone directly. TFF's worker, which is started when it is
first needed, runs those that do not compile to that form, such as two dependent
aggregations.
"""

from __future__ import annotations

import collections
import functools
import os
import threading
import weakref
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Optional, TypeVar

import tensorflow as tf
import tensorflow_federated as tff
from absl import logging
from tensorflow.python.eager import cancellation

from tff_pmc.runtime import graph_functions, values
from tff_pmc.runtime.context import EngineContext
from tff_pmc.runtime.map_reduce import (
    MapReduceComputation,
    NotMapReduceError,
    SumPacks,
    graph_parts,
)
from tff_pmc.runtime.pack_sums import (
    ImportedGraph,
    PackGraphs,
    PackSums,
    allow_cancellation,
    current_cancellation_manager,
    merge_in_tree,
)
from tff_pmc.runtime.worker import WorkerEngine

# A signal waits at most this long: Python runs no handler while TensorFlow computes.
_POLL_SECONDS = 0.1
_CACHE_SIZE = 8  # Compiled computations: a process has one for rounds, one for tests.
PACKS_AT_ONCE = len(os.sched_getaffinity(0))
"""The number of packs that are trained at once: the cores of this process."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class LocalEngine:
    """Runs computations in this process; `private` is for the worker, if one starts.

    Its `context` is installed in TFF. All engines of this process share a cache of
    recent compilations, which serves a process that is built again, for the next seed
    or by running a notebook cell again.
    """

    # A program of TFF trains and evaluates concurrently.
    _compile_lock = threading.Lock()
    _cache: collections.OrderedDict[Any, Any] = collections.OrderedDict()

    def __init__(self, *, private: bool = True) -> None:
        self._private = private
        self.worker: Optional[WorkerEngine] = None
        self._compiled: dict[int, tuple[Optional[Callable[[Any], Any]], Any]] = {}
        self.context = LocalContext(self.run)

    def run(self, computation: tff.Computation, argument: Any) -> Any:
        """Runs a computation, which is compiled in its first call."""
        key = id(computation)
        with self._compile_lock:
            if key not in self._compiled:
                compiled = self._compile_or_reuse(computation)
                # Freed with the computation, because graphs hold memory.
                forget = functools.partial(self._compiled.pop, key)
                self._compiled[key] = compiled, weakref.ref(computation, forget)
            run_here, _ = self._compiled[key]
            if run_here is None and self.worker is None:
                self.worker = WorkerEngine(private=self._private)
        if run_here is not None:
            return run_here(argument)
        return self.worker.context.call(computation, argument)

    def close(self) -> None:
        """Ends the worker, if one was started."""
        self._compiled.clear()
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def _compile_or_reuse(
        self, computation: tff.Computation
    ) -> Optional[Callable[[Any], Any]]:
        """Compiles the computation, or reuses an equal one; see `_compile`."""
        signature = computation.type_signature
        has_clients = tff.types.contains(
            signature, lambda t: getattr(t, "placement", None) is tff.CLIENTS
        )
        digest = None
        if has_clients:  # Others, such as initial states, compile fast.
            serialized = tff.framework.serialize_computation(computation)
            digest = graph_functions.digest(serialized)
        if digest is None:
            return self._compile(computation)
        key = digest, signature  # The signature also has the Python types.
        if key not in self._cache:
            self._cache[key] = self._compile(computation)
        self._cache.move_to_end(key)
        while len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return self._cache[key]

    def _compile(self, computation: tff.Computation) -> Optional[Callable[[Any], Any]]:
        """Returns a function that runs the computation, or None for the worker."""
        signature = computation.type_signature
        try:
            if _contains(tff.SequenceType, signature.result):
                raise NotMapReduceError("its result has a sequence")
            if _contains(tff.FederatedType, signature):
                return MapReduceComputation(computation, self._sum_packs)
            return _run_tensorflow(computation)
        except NotMapReduceError as error:
            logging.warning(
                "TFF's worker runs a computation that has no MapReduceForm: %s",
                error,
            )
            return None

    def _sum_packs(self, graphs: PackGraphs) -> SumPacks:
        """Returns a function that sums packs in this process, one per core at once."""
        sums = PackSums(graphs)

        def sum_here(packs, message):
            manager = current_cancellation_manager()

            def sum_pack(indexed_pack):
                index, pack = indexed_pack
                with allow_cancellation(manager):
                    return sums.sum_pack(pack, message, index)

            return _sum_concurrently(sum_pack, enumerate(packs), sums.merge)

        return sum_here


class LocalContext(EngineContext):
    """Calls a function in a thread, so that Python handles signals while it runs."""

    def __init__(self, run: Callable[[tff.Computation, Any], Any]) -> None:
        super().__init__(engine="local")
        self._run = run

    def _call(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp`, and cancels its TensorFlow calls if it is interrupted."""
        values.check_argument(comp, arg)
        manager = cancellation.CancellationManager()
        outcome: dict[str, Any] = {}
        # Not `Thread.join`: after a signal in it a running thread counts as ended.
        finished = threading.Event()

        def call() -> None:
            try:
                with allow_cancellation(manager):
                    outcome["value"] = self._run(comp, arg)
            except BaseException as error:
                outcome["error"] = error
            finally:
                finished.set()

        threading.Thread(target=call, daemon=True).start()
        try:
            while not finished.wait(_POLL_SECONDS):
                pass
        except BaseException:
            manager.start_cancel()
            finished.wait()
            raise
        if "error" in outcome:
            raise outcome["error"]
        return outcome["value"]


def _sum_concurrently(
    function: Callable[[_T], _R], items: Iterator[_T], merge: Callable[[_R, _R], _R]
) -> _R:
    """Applies the function to the items concurrently and merges the results."""
    futures: collections.deque[Future[_R]] = collections.deque()
    with ThreadPoolExecutor(PACKS_AT_ONCE) as pool:
        try:
            return merge_in_tree(
                _results_in_order(pool, function, items, futures), merge
            )
        except tf.errors.CancelledError:
            # If a call fails, TensorFlow cancels those that run at the same time:
            # report the failure instead of the cancellation.
            for future in futures:
                error = future.exception()
                if error and not isinstance(error, tf.errors.CancelledError):
                    raise error from None
            raise


def _results_in_order(
    pool: ThreadPoolExecutor,
    function: Callable[[_T], _R],
    items: Iterator[_T],
    futures: collections.deque[Future[_R]],
) -> Iterator[_R]:
    """Yields the results in the order of the items; only few are computed ahead."""
    for item in items:
        futures.append(pool.submit(function, item))
        if len(futures) > PACKS_AT_ONCE:
            yield futures.popleft().result()
    while futures:
        yield futures.popleft().result()


def is_tensorflow_alone(computation: tff.Computation) -> bool:
    """Returns whether a computation is TensorFlow alone, like `get_model_weights`."""
    block = computation.to_building_block()
    is_alone = isinstance(block, tff.framework.CompiledComputation)
    return is_alone and not _contains(tff.SequenceType, block.type_signature.result)


def _contains(kind: type, type_: tff.Type) -> bool:
    return tff.types.contains(type_, lambda t: isinstance(t, kind))


def _run_tensorflow(computation: tff.Computation) -> Callable[[Any], Any]:
    """Returns a function that runs a computation of TensorFlow alone."""
    if not is_tensorflow_alone(computation):
        raise NotMapReduceError("it has no placements, and is not TensorFlow alone")
    graph = ImportedGraph(graph_parts(computation))
    signature = computation.type_signature

    def run(argument: Any) -> Any:
        tensors = []
        if signature.parameter is not None:
            tensors = values.to_tensors(argument, signature.parameter, "the argument")
        return values.to_python(graph(tensors), signature.result)

    return run
