"""Digests by which computations are equal, although TensorFlow names them differently.

A process that is built again, as for the next seed's run, has the same graphs with
other numbers in the names of their functions. What is compiled of one serves the other.
"""

from __future__ import annotations

import hashlib
import re
from typing import Any, Optional

import tensorflow as tf
import tensorflow_federated as tff
from tensorflow.python.framework import op_def_registry

# Of the stateful operations these, in our processes, keep nothing from one call for the
# next, as random streams do: variables begin anew in each.
_WITHOUT_MEMORY = re.compile(
    "Assert|If|While|StatefulPartitionedCall|TensorDataset|DatasetToSingleElement|"
    "PrintV2|VarHandleOp|(Assign|Read)VariableOp|ResourceApply.*"
)


def digest(computation: tff.Computation) -> Optional[bytes]:
    """Digests what is computed; None where calls may depend on those before.

    Computations of one digest differ in nothing but the names of their functions.
    """
    found = type(tff.framework.serialize_computation(computation))()
    found.CopyFrom(tff.framework.serialize_computation(computation))
    try:
        _replace_graphs(found)
    except _MemoryError:
        return None
    return hashlib.sha256(found.SerializeToString(deterministic=True)).digest()


class _MemoryError(Exception):
    """A graph with an operation that keeps something."""


def _replace_graphs(message: Any) -> None:
    """Puts a digest in the place of each graph of a serialized computation."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in value if field.label == field.LABEL_REPEATED else [value]:
            if field.message_type.name == "TensorFlow":
                graph = tf.compat.v1.GraphDef()
                part.graph_def.Unpack(graph)
                part.graph_def.value = _Graph(graph).digest()
                part.ClearField("cache_key")
            else:
                _replace_graphs(part)


class _Graph:
    """A graph whose functions are called by the digests of what is in them."""

    def __init__(self, graph: tf.compat.v1.GraphDef) -> None:
        self._graph = graph
        self._functions = {one.signature.name: one for one in graph.library.function}
        self._digests: dict[str, str] = {}

    def digest(self) -> bytes:
        """Computes the digest of all that the graph has."""
        self._rename(self._graph.node)
        gradients = sorted(
            (self._digest_of(one.function_name), self._digest_of(one.gradient_func))
            for one in self._graph.library.gradient
        )
        self._graph.ClearField("library")
        content = self._graph.SerializeToString(deterministic=True)
        return hashlib.sha256(content + repr(gradients).encode()).digest()

    def _digest_of(self, name: str) -> str:
        """Returns the digest of a function, or its name where there is none."""
        if name not in self._functions:
            return name
        if name not in self._digests:
            self._digests[name] = "itself"  # Of a function that calls itself.
            function = self._functions[name]
            function.signature.name = ""
            for argument in function.signature.input_arg:
                argument.name = argument.name.replace(name, "")
            self._rename(function.node_def)
            self._rename_in(function.attr)
            content = function.SerializeToString(deterministic=True)
            self._digests[name] = hashlib.sha256(content).hexdigest()
        return self._digests[name]

    def _rename(self, nodes: Any) -> None:
        for node in nodes:
            declared = op_def_registry.get(node.op)
            kept = declared is not None and declared.is_stateful
            if kept and not _WITHOUT_MEMORY.fullmatch(node.op):
                raise _MemoryError(node.op)
            node.op = self._digest_of(node.op)
            self._rename_in(node.attr)

    def _rename_in(self, attributes: Any) -> None:
        for value in attributes.values():
            kind = value.WhichOneof("value")
            if kind == "func":
                value.func.name = self._digest_of(value.func.name)
            elif kind == "list":
                for function in value.list.func:
                    function.name = self._digest_of(function.name)
            elif kind == "s" and value.s.decode(errors="replace") in self._functions:
                value.s = self._digest_of(value.s.decode()).encode()
