"""The map and the reduce of a MapReduceForm, over packs.

The sum of several packs is a tree whose shape follows from their number alone, so that
the order of float additions, and with it every bit of the result, does not depend on
which thread or worker ran which pack.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, NamedTuple, Optional, TypeVar

import tensorflow as tf
from tensorflow.python.eager import cancellation, context, execute

from tff_pmc.runtime.graph_functions import rename_functions
from tff_pmc.runtime.random_streams import begin_stream, give_streams

_STATEFUL_OPS = ("VarHandleOp", "HashTableV2", "MutableHashTableV2")
_NOT_OPTIMIZED = tf.compat.v1.ConfigProto()
_NOT_OPTIMIZED.graph_options.rewrite_options.disable_meta_optimizer = True
_numbers = itertools.count()
_of_thread = threading.local()


@contextlib.contextmanager
def cancelled_by(manager: Optional[cancellation.CancellationManager]) -> Iterator[None]:
    """Lets the manager cancel the graphs that this thread calls.

    TensorFlow's context is the process's: the first thread to leave it would take
    it from all others.
    """
    _of_thread.manager = manager
    try:
        yield
    finally:
        _of_thread.manager = None


def cancelling() -> Optional[cancellation.CancellationManager]:
    """Returns what may cancel this thread's calls."""
    return getattr(_of_thread, "manager", None)


def _call(function: Any, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Calls an imported function, so that it can be cancelled.

    Without arguments, as an initial state, it is mostly constants and called once, and
    TensorFlow's optimizer would only copy them.
    """
    here = context.context()
    options = here.function_call_options
    if not arguments:
        options = context.FunctionCallOptions(config_proto=_NOT_OPTIMIZED)
    return execute.execute_with_cancellation(
        function.name,
        num_outputs=len(function.outputs),
        inputs=[*arguments, *function.captured_inputs],
        attrs=tuple(itertools.chain(*options.as_attrs().items())),
        ctx=here,
        cancellation_manager=cancelling() or cancellation.CancellationManager(),
    )


def variant_of(dataset: tf.data.Dataset) -> tf.Tensor:
    """Returns the tensor of a dataset that is read without autotuning.

    The thread that does it is cancelled with data that end soon, and TensorFlow warns
    of each: "Optimization loop failed: CANCELLED".
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.experimental.to_variant(dataset.with_options(options))


class GraphParts(NamedTuple):
    """A TensorFlow computation as what it takes to import it.

    The serialized `GraphDef`, the names of the tensors that are its arguments and its
    results, in order, and of what begins its variables anew (empty without any).
    """

    graph_def: bytes
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    initialize_op: str


class ImportedGraph:
    """A TensorFlow computation that is called with tensors and returns tensors.

    Both are flat lists in the order of TFF's types; a sequence, which may be an
    argument and no result, is a dataset or the variant tensor of one.
    """

    def __init__(
        self, parts: GraphParts, *, foreign: bool = False, seeded: bool = False
    ) -> None:
        """Imports the graph, once; a `ValueError` if TensorFlow cannot.

        A `foreign` one is of another process. What a `seeded` one draws at random
        follows from the seed of each call.
        """
        graph = tf.compat.v1.GraphDef.FromString(parts.graph_def)
        if foreign:
            mark = hashlib.sha256(parts.graph_def).hexdigest()[:16]
            _name_functions_apart(graph, mark)
        feeds, fetches = list(parts.feeds), list(parts.fetches)
        self._has_results = bool(fetches)
        self._begin = None
        number = next(_numbers)
        self._one_at_a_time = threading.Lock()
        signature = list(_types(graph, feeds))
        if parts.initialize_op:
            _name_apart(graph, number)
        self.streams = give_streams(graph, number) if seeded else {}
        if self.streams:  # This process may have the functions as they were.
            _name_functions_apart(graph, f"of_{number}")
        if parts.initialize_op:
            whole = tf.compat.v1.wrap_function(
                lambda: tf.import_graph_def(graph, name=""), []
            )
            self._begin = whole.prune(
                [], whole.graph.as_graph_element(parts.initialize_op)
            )
            # What is fed stays, used or not: a model's data may be all that is.
            graph = _only_what_is_needed(graph, [*fetches, *feeds])

        def imported(*arguments):
            found = tf.import_graph_def(
                graph, dict(zip(feeds, arguments)), fetches, name=""
            )
            # Identities, because what is fed cannot be fetched as it is.
            return [tf.identity(tensor) for tensor in found]

        self._function = tf.compat.v1.wrap_function(imported, signature)

    def __call__(
        self, arguments: Sequence[tf.Tensor], seed: bytes = b""
    ) -> list[tf.Tensor]:
        """Runs the graph; one with variables begins anew each time, as in a session."""
        if not self._has_results:
            return []
        arguments = [
            variant_of(a) if isinstance(a, tf.data.Dataset) else a for a in arguments
        ]
        if self._begin is None and not self.streams:
            return _call(self._function, arguments)
        with self._one_at_a_time:
            for name, own in self.streams.items():
                begin_stream(name, seed + own)
            if self._begin is not None:
                self._begin()
            return _call(self._function, arguments)


def _types(
    graph: tf.compat.v1.GraphDef, feeds: Sequence[str]
) -> Iterable[tf.TensorSpec]:
    """Returns the type of each tensor that is fed: TFF feeds placeholders alone."""
    nodes = {node.name: node for node in graph.node}
    for name in feeds:
        attributes = nodes[name.split(":")[0]].attr
        shape = tf.TensorShape(attributes["shape"].shape)
        yield tf.TensorSpec(shape, tf.as_dtype(attributes["dtype"].type))


def _only_what_is_needed(
    graph: tf.compat.v1.GraphDef, tensors: Sequence[str]
) -> tf.compat.v1.GraphDef:
    """Prunes the graph of what sets variables, which each call would repeat."""
    names = sorted({name.split(":")[0] for name in tensors})
    # Without its decorator, which warns in each process that it is of TensorFlow 1.
    return tf.compat.v1.graph_util.extract_sub_graph.__wrapped__(graph, names)


def _name_apart(graph: tf.compat.v1.GraphDef, number: int) -> None:
    """Gives variables different names: in TFF's worker each call is a new session."""
    functions = (function.node_def for function in graph.library.function)
    for node in itertools.chain(graph.node, *functions):
        if node.op in _STATEFUL_OPS:
            shared = node.attr["shared_name"].s.decode() or node.name
            node.attr["shared_name"].s = f"tff_pmc_{number}_{shared}".encode()


def _name_functions_apart(graph: tf.compat.v1.GraphDef, mark: str) -> None:
    """Gives functions different names: every process counts from the same number."""
    names = [one.signature.name for one in graph.library.function]
    rename_functions(graph, {name: f"{name}_{mark}" for name in names})


_T = TypeVar("_T")


class PackGraphs(NamedTuple):
    """The graphs of a form that are needed where the packs are.

    `work` makes of a pack's tensors and what the server sent what the pack answers, and
    `zero` the sum of no answers; `accumulate` adds an answer to a sum, `merge` two
    sums. The last `num_integers` of an answer's tensors are not accumulated but
    integers to be added: TFF's secure sums. In a computation with a state (`seeded`)
    what `work` draws at random follows from what was sent; elsewhere a stream
    continues.
    """

    work: GraphParts
    zero: GraphParts
    accumulate: GraphParts
    merge: GraphParts
    num_integers: int
    seeded: bool


class PackSums:
    """Sums of packs: what is accumulated, then the integers, as one flat list."""

    def __init__(self, graphs: PackGraphs, *, foreign: bool = False) -> None:
        self._work = ImportedGraph(graphs.work, foreign=foreign, seeded=graphs.seeded)
        self._zero, self._accumulate, self._merge = (
            ImportedGraph(parts, foreign=foreign) for parts in graphs[1:4]
        )
        self._num_integers = graphs.num_integers

    def of_pack(
        self, pack: Sequence[tf.Tensor], sent: Sequence[tf.Tensor], place: int
    ) -> list[tf.Tensor]:
        """Computes the sum of one pack, given its tensors and what the server sent.

        What it draws at random follows from what was sent and its place among them.
        """
        seed = hashlib.blake2b(str(place).encode())
        for tensor in sent if self._work.streams else ():
            seed.update(tf.io.serialize_tensor(tensor).numpy())
        answer = self._work([*pack, *sent], seed.digest())
        in_clear = len(answer) - self._num_integers
        total = self._accumulate([*self._zero([]), *answer[:in_clear]])
        return [*total, *answer[in_clear:]]

    def merge(
        self, first: Sequence[tf.Tensor], second: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        """Merges two sums."""
        in_clear = len(first) - self._num_integers
        total = self._merge([*first[:in_clear], *second[:in_clear]])
        return [*total, *(a + b for a, b in zip(first[in_clear:], second[in_clear:]))]


def merged_in_tree(sums: Iterable[_T], merge: Callable[[_T, _T], _T]) -> _T:
    """Merges at least one sum by pairs, pairs of pairs, and so on.

    Each is merged as soon as its neighbour is there, so that few are in memory.
    """
    waiting: list[tuple[int, _T]] = []
    for found in sums:
        height = 0
        while waiting and waiting[-1][0] == height:
            found = merge(waiting.pop()[1], found)
            height += 1
        waiting.append((height, found))
    _, total = waiting.pop()
    while waiting:
        total = merge(waiting.pop()[1], total)
    return total
