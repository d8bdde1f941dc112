"""A TensorFlow computation of TFF, taken apart so that it can travel without TFF."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.runtime.imported_graph import GraphParts


def graph_parts(
    computation: tff.Computation, results: Optional[slice] = None
) -> GraphParts:
    """The parts of a computation that is TensorFlow alone.

    Args:
        computation: the computation.
        results: which of its results, by place, are wanted; None for all.
    """
    serialized = tff.framework.serialize_computation(computation).tensorflow
    graph = tf.compat.v1.GraphDef()
    serialized.graph_def.Unpack(graph)
    feeds: list[str] = []
    if serialized.HasField("parameter"):
        feeds = list(_names(serialized.parameter))
    fetches = list(_names(serialized.result))[results or slice(None)]
    return GraphParts(
        graph.SerializeToString(deterministic=True),
        tuple(feeds),
        tuple(fetches),
        serialized.initialize_op,
    )


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
