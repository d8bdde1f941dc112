"""The engine that runs TFF's computations in this process.

A federated computation is run in its MapReduceForm (`round_form.py`), and TensorFlow
alone as it is. What does not compile to that form, two dependent aggregations for
example, is run by TFF's worker, which is started when it is first needed.
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
from tff_pmc.runtime.pack_sums import (
    ImportedGraph,
    PackGraphs,
    PackSums,
    cancelled_by,
    cancelling,
    merged_in_tree,
)
from tff_pmc.runtime.round_form import NotInFormError, RoundForm, SumPacks, graph_parts
from tff_pmc.runtime.worker import WorkerEngine

# The most that a signal waits: Python runs no handler while TensorFlow computes.
_POLL_SECONDS = 0.1
_KEPT = 8  # Of what was compiled last: a process has a round and a test.
PACKS_AT_ONCE = len(os.sched_getaffinity(0))
"""How many packs are trained at once: as many as this process has cores."""

_T = TypeVar("_T")
_R = TypeVar("_R")


class LocalEngine:
    """Runs computations in this process; `private` is for the worker it may need.

    Its `context` is what is installed in TFF. What was compiled last serves all engines
    of this process, for a process that is built again: the next seed's, or that of a
    notebook's cell which is run again.
    """

    # A program of TFF trains and evaluates at once.
    _one_compiles = threading.Lock()
    _last: collections.OrderedDict[Any, Any] = collections.OrderedDict()

    def __init__(self, *, private: bool = True) -> None:
        self._private = private
        self.worker: Optional[WorkerEngine] = None
        self._compiled: dict[int, tuple[Optional[Callable[[Any], Any]], Any]] = {}
        self.context = LocalContext(self.run)

    def run(self, computation: tff.Computation, argument: Any) -> Any:
        """Runs a computation, compiled when it is first seen."""
        key = id(computation)
        with self._one_compiles:
            if key not in self._compiled:
                compiled = self._compiled_or_equal(computation)
                # Kept for as long as the computation is: graphs hold memory.
                forget = functools.partial(self._compiled.pop, key)
                self._compiled[key] = compiled, weakref.ref(computation, forget)
            run_here, _ = self._compiled[key]
            if run_here is None and self.worker is None:
                self.worker = WorkerEngine(private=self._private)
        if run_here is not None:
            return run_here(argument)
        return self.worker.context.call(computation, argument)

    def close(self) -> None:
        """Ends the worker, if there is one."""
        self._compiled.clear()
        if self.worker is not None:
            self.worker.close()
            self.worker = None

    def _compiled_or_equal(
        self, computation: tff.Computation
    ) -> Optional[Callable[[Any], Any]]:
        """Returns what runs it, compiled for it or an equal one (another seed's)."""
        signature = computation.type_signature
        at_clients = tff.types.contains(
            signature, lambda t: getattr(t, "placement", None) is tff.CLIENTS
        )
        content = None
        if at_clients:  # The others, initial states for one, are small.
            serialized = tff.framework.serialize_computation(computation)
            content = graph_functions.digest(serialized)
        if content is None:
            return self._compile(computation)
        key = content, signature  # The signature also has the Python types.
        if key not in self._last:
            self._last[key] = self._compile(computation)
        self._last.move_to_end(key)
        while len(self._last) > _KEPT:
            self._last.popitem(last=False)
        return self._last[key]

    def _compile(self, computation: tff.Computation) -> Optional[Callable[[Any], Any]]:
        """Compiles the computation to run here; None if the worker has to."""
        signature = computation.type_signature
        try:
            if _has(tff.SequenceType, signature.result):
                raise NotInFormError("a result is a sequence")
            if _has(tff.FederatedType, signature):
                return RoundForm(computation, self._sum_packs)
            return _run_tensorflow(computation)
        except NotInFormError as error:
            logging.warning(
                "TFF's worker runs a computation, because it has no MapReduceForm: %s",
                error,
            )
            return None

    def _sum_packs(self, graphs: PackGraphs) -> SumPacks:
        """Returns what sums packs in this process, as many at once as it has cores."""
        sums = PackSums(graphs)

        def sum_here(packs, sent):
            manager = cancelling()

            def of_pack(placed):
                place, pack = placed
                with cancelled_by(manager):
                    return sums.of_pack(pack, sent, place)

            return _sum_at_once(of_pack, enumerate(packs), sums.merge)

        return sum_here


class LocalContext(EngineContext):
    """Calls a function in a thread, so that a signal is handled while it runs."""

    def __init__(self, run: Callable[[tff.Computation, Any], Any]) -> None:
        super().__init__(engine="local")
        self._run = run

    def _call(self, comp: tff.Computation, arg: Any) -> Any:
        """Invokes `comp`; what it had begun is cancelled if it is interrupted."""
        values.check(comp, arg)
        manager = cancellation.CancellationManager()
        outcome: dict[str, Any] = {}
        # Not `Thread.join`: a signal in it makes a running thread look ended.
        ended = threading.Event()

        def call() -> None:
            try:
                with cancelled_by(manager):
                    outcome["value"] = self._run(comp, arg)
            except BaseException as error:
                outcome["error"] = error
            finally:
                ended.set()

        threading.Thread(target=call, daemon=True).start()
        try:
            while not ended.wait(_POLL_SECONDS):
                pass
        except BaseException:
            manager.start_cancel()
            ended.wait()
            raise
        if "error" in outcome:
            raise outcome["error"]
        return outcome["value"]


def _sum_at_once(
    function: Callable[[_T], _R], items: Iterator[_T], merge: Callable[[_R, _R], _R]
) -> _R:
    """Adds what the function makes of the items, several of them at once."""
    begun: collections.deque[Future[_R]] = collections.deque()
    with ThreadPoolExecutor(PACKS_AT_ONCE) as pool:
        try:
            return merged_in_tree(_in_order(pool, function, items, begun), merge)
        except tf.errors.CancelledError:
            # TensorFlow cancels the calls that run at the same time as one that
            # fails: report the failure and not the cancellation.
            for other in begun:
                error = other.exception()
                if error and not isinstance(error, tf.errors.CancelledError):
                    raise error from None
            raise


def _in_order(
    pool: ThreadPoolExecutor,
    function: Callable[[_T], _R],
    items: Iterator[_T],
    begun: collections.deque[Future[_R]],
) -> Iterator[_R]:
    """Yields the results in the items' order; few begin before they are needed."""
    for item in items:
        begun.append(pool.submit(function, item))
        if len(begun) > PACKS_AT_ONCE:
            yield begun.popleft().result()
    while begun:
        yield begun.popleft().result()


def is_tensorflow_alone(computation: tff.Computation) -> bool:
    """Returns whether the computation is TensorFlow alone, like `get_model_weights`."""
    block = computation.to_building_block()
    is_alone = isinstance(block, tff.framework.CompiledComputation)
    return is_alone and not _has(tff.SequenceType, block.type_signature.result)


def _has(kind: type, type_: tff.Type) -> bool:
    return tff.types.contains(type_, lambda t: isinstance(t, kind))


def _run_tensorflow(computation: tff.Computation) -> Callable[[Any], Any]:
    """Runs a computation without placements, which must be TensorFlow alone."""
    if not is_tensorflow_alone(computation):
        raise NotInFormError("it is neither TensorFlow alone nor has placements")
    graph = ImportedGraph(graph_parts(computation))
    signature = computation.type_signature

    def run(argument: Any) -> Any:
        given = []
        if signature.parameter is not None:
            given = values.to_tensors(argument, signature.parameter, "the argument")
        return values.to_python(graph(given), signature.result)

    return run
