"""One TensorFlow computation of TFF, imported into this process."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Sequence
from typing import Optional

import tensorflow as tf
import tensorflow_federated as tff

_STATEFUL_OPS = ("VarHandleOp", "HashTableV2", "MutableHashTableV2")
_numbers = itertools.count()


class ImportedGraph:
    """A TensorFlow computation that is called with tensors and returns tensors.

    Both are flat lists in the order of TFF's types; a sequence, which may be an
    argument and no result, is the variant tensor of its dataset.
    """

    def __init__(
        self, computation: tff.Computation, results: Optional[slice] = None
    ) -> None:
        """Imports the graph, once.

        Args:
            computation: a computation that is TensorFlow alone.
            results: which of its results, by place, are wanted; None for all.

        Raises:
            ValueError: TensorFlow cannot import the graph.
        """
        serialized = tff.framework.serialize_computation(computation).tensorflow
        graph = tf.compat.v1.GraphDef()
        serialized.graph_def.Unpack(graph)
        feeds: list[str] = []
        if serialized.HasField("parameter"):
            feeds = list(_names(serialized.parameter))
        fetches = list(_names(serialized.result))[results or slice(None)]
        self._has_results = bool(fetches)
        self._begin = None
        self._one_at_a_time = threading.Lock()
        types = dict(_types(graph, feeds))
        signature = [types[name] for name in feeds]
        if serialized.initialize_op:
            _name_apart(graph, next(_numbers))
            whole = tf.compat.v1.wrap_function(
                lambda: tf.import_graph_def(graph, name=""), []
            )
            self._begin = whole.prune(
                [], whole.graph.as_graph_element(serialized.initialize_op)
            )
            graph = _only_what_is_needed(graph, fetches)

        def imported(*arguments):
            found = tf.import_graph_def(
                graph, dict(zip(feeds, arguments)), fetches, name=""
            )
            # Identities, because what is fed cannot be fetched as it is.
            return [tf.identity(tensor) for tensor in found]

        self._function = tf.compat.v1.wrap_function(imported, signature)

    def __call__(self, arguments: Sequence[tf.Tensor]) -> list[tf.Tensor]:
        """Runs the graph; one with variables begins anew each time, as in a session."""
        if not self._has_results:
            return []
        if self._begin is None:
            return list(self._function(*arguments))
        with self._one_at_a_time:
            self._begin()
            return list(self._function(*arguments))


def _names(binding: object) -> Iterable[str]:
    """The names of a binding's tensors, in order."""
    kind = binding.WhichOneof("binding")
    if kind == "tensor":
        yield binding.tensor.tensor_name
    elif kind == "struct":
        for element in binding.struct.element:
            yield from _names(element)
    elif kind == "sequence":
        yield binding.sequence.variant_tensor_name


def _types(
    graph: tf.compat.v1.GraphDef, feeds: Sequence[str]
) -> Iterable[tuple[str, tf.TensorSpec]]:
    """The type of each tensor that is fed: TFF feeds placeholders alone."""
    nodes = {node.name: node for node in graph.node}
    for name in feeds:
        attributes = nodes[name.split(":")[0]].attr
        shape = tf.TensorShape(attributes["shape"].shape)
        yield name, tf.TensorSpec(shape, tf.as_dtype(attributes["dtype"].type))


def _only_what_is_needed(
    graph: tf.compat.v1.GraphDef, fetches: Sequence[str]
) -> tf.compat.v1.GraphDef:
    """The graph without what sets its variables, which would be done in each call."""
    names = sorted({name.split(":")[0] for name in fetches})
    return tf.compat.v1.graph_util.extract_sub_graph(graph, names)


def _name_apart(graph: tf.compat.v1.GraphDef, number: int) -> None:
    """Gives the graph's variables names of their own: all graphs here share one space.

    In TFF's worker each call has a session, and with it variables, of its own.
    """
    functions = (function.node_def for function in graph.library.function)
    for node in itertools.chain(graph.node, *functions):
        if node.op in _STATEFUL_OPS:
            shared = node.attr["shared_name"].s.decode() or node.name
            node.attr["shared_name"].s = f"tff_pmc_{number}_{shared}".encode()
