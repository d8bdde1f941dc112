"""The map and the reduce of a MapReduceForm, over packs.

The sum of several packs is a tree whose shape depends only on their number. So the
order of float additions, and every bit of the result, does not depend on which thread
or worker ran which pack.
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
from tff_pmc.runtime.random_streams import add_random_streams, reset_stream

_STATEFUL_OPS = ("VarHandleOp", "HashTableV2", "MutableHashTableV2")
_NOT_OPTIMIZED = tf.compat.v1.ConfigProto()
_NOT_OPTIMIZED.graph_options.rewrite_options.disable_meta_optimizer = True
_graph_counter = itertools.count()
_thread_state = threading.local()


@contextlib.contextmanager
def allow_cancellation(
    manager: Optional[cancellation.CancellationManager],
) -> Iterator[None]:
    """Lets the manager cancel the graphs that this thread calls.

    TensorFlow's own cancellation context belongs to the process: the first thread to
    leave it would end it for all others.
    """
    _thread_state.manager = manager
    try:
        yield
    finally:
        _thread_state.manager = None


def current_cancellation_manager() -> Optional[cancellation.CancellationManager]:
    """Returns the manager that may cancel this thread's calls, or None."""
    return getattr(_thread_state, "manager", None)


def _call(function: Any, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Calls an imported function so that it can be cancelled.

    A function without arguments, such as an initial state, consists mostly of constants
    and is called once: TensorFlow's optimizer would only copy them.
    """
    eager_context = context.context()
    options = eager_context.function_call_options
    if not arguments:
        options = context.FunctionCallOptions(config_proto=_NOT_OPTIMIZED)
    return execute.execute_with_cancellation(
        function.name,
        num_outputs=len(function.outputs),
        inputs=[*arguments, *function.captured_inputs],
        attrs=tuple(itertools.chain(*options.as_attrs().items())),
        ctx=eager_context,
        cancellation_manager=current_cancellation_manager()
        or cancellation.CancellationManager(),
    )


def to_variant_tensor(dataset: tf.data.Dataset) -> tf.Tensor:
    """Returns the variant tensor of a dataset, which is read without autotuning.

    The thread that tunes is cancelled when short data end, and TensorFlow warns each
    time: "Optimization loop failed: CANCELLED".
    """
    options = tf.data.Options()
    options.autotune.enabled = False
    return tf.data.experimental.to_variant(dataset.with_options(options))


class GraphParts(NamedTuple):
    """The serialized parts of a TensorFlow computation, from which it is imported.

    Attributes:
        graph_def: the serialized `GraphDef`.
        feeds: the names of its arguments' tensors, in order.
        fetches: the names of its results' tensors, in order.
        initialize_op: the name of the operation that initializes its variables; empty
            if it has none.
    """

    graph_def: bytes
    feeds: tuple[str, ...]
    fetches: tuple[str, ...]
    initialize_op: str


class ImportedGraph:
    """A TensorFlow computation that is called with tensors and returns tensors.

    Arguments and results are flat lists in the order of TFF's types. A sequence, which
    may be an argument but not a result, is a dataset or its variant tensor.
    """

    def __init__(
        self, parts: GraphParts, *, foreign: bool = False, seeded: bool = False
    ) -> None:
        """Imports the graph.

        Args:
            parts: the parts of the graph.
            foreign: whether it comes from another process.
            seeded: whether the seed of a call determines its random numbers.

        Raises:
            ValueError: TensorFlow cannot import the graph.
        """
        graph = tf.compat.v1.GraphDef.FromString(parts.graph_def)
        if foreign:
            mark = hashlib.sha256(parts.graph_def).hexdigest()[:16]
            _make_function_names_unique(graph, mark)
        feeds, fetches = list(parts.feeds), list(parts.fetches)
        self._has_results = bool(fetches)
        self._initialize = None
        number = next(_graph_counter)
        self._lock = threading.Lock()
        signature = list(_argument_specs(graph, feeds))
        if parts.initialize_op:
            _make_variable_names_unique(graph, number)
        self.streams = add_random_streams(graph, number) if seeded else {}
        if self.streams:  # This process may have functions of the same names.
            _make_function_names_unique(graph, f"of_{number}")
        if parts.initialize_op:
            whole_graph = tf.compat.v1.wrap_function(
                lambda: tf.import_graph_def(graph, name=""), []
            )
            self._initialize = whole_graph.prune(
                [], whole_graph.graph.as_graph_element(parts.initialize_op)
            )
            # All feeds stay, even unused ones: a model may use nothing but its data.
            graph = _prune(graph, [*fetches, *feeds])

        def import_graph(*arguments):
            results = tf.import_graph_def(
                graph, dict(zip(feeds, arguments)), fetches, name=""
            )
            # Identities, because a fed tensor cannot be fetched itself.
            return [tf.identity(tensor) for tensor in results]

        self._function = tf.compat.v1.wrap_function(import_graph, signature)

    def __call__(
        self, arguments: Sequence[tf.Tensor], seed: bytes = b""
    ) -> list[tf.Tensor]:
        """Runs the graph; each call initializes its variables, as a session does."""
        if not self._has_results:
            return []
        arguments = [
            to_variant_tensor(a) if isinstance(a, tf.data.Dataset) else a
            for a in arguments
        ]
        if self._initialize is None and not self.streams:
            return _call(self._function, arguments)
        with self._lock:
            for name, stream_seed in self.streams.items():
                reset_stream(name, seed + stream_seed)
            if self._initialize is not None:
                self._initialize()
            return _call(self._function, arguments)


def _argument_specs(
    graph: tf.compat.v1.GraphDef, feeds: Sequence[str]
) -> Iterable[tf.TensorSpec]:
    """Yields the type of each tensor that is fed: TFF feeds only placeholders."""
    nodes = {node.name: node for node in graph.node}
    for name in feeds:
        attributes = nodes[name.split(":")[0]].attr
        shape = tf.TensorShape(attributes["shape"].shape)
        yield tf.TensorSpec(shape, tf.as_dtype(attributes["dtype"].type))


def _prune(
    graph: tf.compat.v1.GraphDef, tensors: Sequence[str]
) -> tf.compat.v1.GraphDef:
    """Removes operations that initialize variables, which each call would repeat."""
    names = sorted({name.split(":")[0] for name in tensors})
    # Without its decorator, which warns that the function is deprecated.
    return tf.compat.v1.graph_util.extract_sub_graph.__wrapped__(graph, names)


def _make_variable_names_unique(graph: tf.compat.v1.GraphDef, number: int) -> None:
    """Makes names of variables unique: in TFF's worker each call is a new session."""
    functions = (function.node_def for function in graph.library.function)
    for node in itertools.chain(graph.node, *functions):
        if node.op in _STATEFUL_OPS:
            shared = node.attr["shared_name"].s.decode() or node.name
            node.attr["shared_name"].s = f"tff_pmc_{number}_{shared}".encode()


def _make_function_names_unique(graph: tf.compat.v1.GraphDef, mark: str) -> None:
    """Makes names of functions unique: every process numbers them from the start."""
    names = [function.signature.name for function in graph.library.function]
    rename_functions(graph, {name: f"{name}_{mark}" for name in names})


_T = TypeVar("_T")


class PackGraphs(NamedTuple):
    """The graphs of a MapReduceForm that process and sum packs.

    `work` maps a pack's tensors and the server's message to the pack's result. `zero`
    is the empty sum; `accumulate` adds a result to a sum, and `merge` adds two sums.
    The last `num_integers` tensors of a result are not accumulated: they are the
    integers of TFF's secure sums, and are added. If the computation has a state
    (`seeded`), the server's message seeds the random draws of `work`; otherwise random
    streams continue from call to call.
    """

    work: GraphParts
    zero: GraphParts
    accumulate: GraphParts
    merge: GraphParts
    num_integers: int
    seeded: bool


class PackSums:
    """Computes sums over packs: flat lists of accumulated tensors, then of integers."""

    def __init__(self, graphs: PackGraphs, *, foreign: bool = False) -> None:
        self._work = ImportedGraph(graphs.work, foreign=foreign, seeded=graphs.seeded)
        self._zero, self._accumulate, self._merge = (
            ImportedGraph(parts, foreign=foreign) for parts in graphs[1:4]
        )
        self._num_integers = graphs.num_integers

    def sum_pack(
        self, pack: Sequence[tf.Tensor], message: Sequence[tf.Tensor], index: int
    ) -> list[tf.Tensor]:
        """Computes the sum of one pack from its tensors and the server's message.

        Its random draws are seeded by the server's message and the pack's index.
        """
        seed = hashlib.blake2b(str(index).encode())
        for tensor in message if self._work.streams else ():
            seed.update(tf.io.serialize_tensor(tensor).numpy())
        client_result = self._work([*pack, *message], seed.digest())
        num_accumulated = len(client_result) - self._num_integers
        total = self._accumulate([*self._zero([]), *client_result[:num_accumulated]])
        return [*total, *client_result[num_accumulated:]]

    def merge(
        self, first: Sequence[tf.Tensor], second: Sequence[tf.Tensor]
    ) -> list[tf.Tensor]:
        """Merges two sums."""
        num_accumulated = len(first) - self._num_integers
        total = self._merge([*first[:num_accumulated], *second[:num_accumulated]])
        return [
            *total,
            *(a + b for a, b in zip(first[num_accumulated:], second[num_accumulated:])),
        ]


def merge_in_tree(sums: Iterable[_T], merge: Callable[[_T, _T], _T]) -> _T:
    """Merges one or more sums in pairs, pairs of pairs, and so on.

    Merges each sum as soon as its neighbour is computed, so that few are in memory.
    """
    waiting: list[tuple[int, _T]] = []
    for subtotal in sums:
        height = 0
        while waiting and waiting[-1][0] == height:
            subtotal = merge(waiting.pop()[1], subtotal)
            height += 1
        waiting.append((height, subtotal))
    _, total = waiting.pop()
    while waiting:
        total = merge(waiting.pop()[1], total)
    return total
