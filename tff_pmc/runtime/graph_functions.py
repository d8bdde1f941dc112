"""The functions of a TensorFlow graph: which are called, and their names.

TensorFlow numbers the names of functions by a counter of the process. So a function
gets another name when it is traced again, and in another process the same name may
belong to another function.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

# Stateful operations that keep no state between calls in our processes, where variables
# are reset in each call. (Random streams do keep state.)
_WITHOUT_MEMORY = re.compile(
    "Assert|If|While|StatefulPartitionedCall|TensorDataset|DatasetToSingleElement|"
    "PrintV2|VarHandleOp|(Assign|Read)VariableOp|ResourceApply.*"
)


def called_functions(graph: tf.compat.v1.GraphDef) -> dict[str, Any]:
    """Returns the functions that the graph may call, by name, in call order."""
    functions = {
        function.signature.name: function for function in graph.library.function
    }
    called: dict[str, Any] = {}
    bodies = [graph.node]
    for nodes in bodies:
        for node in nodes:
            values = [node.attr[name] for name in sorted(node.attr)]
            names = [f.name for v in values for f in [v.func, *v.list.func]]
            for name in [node.op, *names]:
                if name in functions:
                    called[name] = functions.pop(name)
                    bodies.append(called[name].node_def)
    return called


def rename_functions(graph: tf.compat.v1.GraphDef, names: Mapping[str, str]) -> None:
    """Renames functions of a graph in place, with all references to them.

    Args:
        graph: the graph.
        names: the new name of each function of the graph's library, by old name.
    """

    def rename(attributes: Any) -> None:
        for value in attributes.values():
            for function in [value.func, *value.list.func]:
                if function.name in names:
                    function.name = names[function.name]
                    rename(function.attr)
            if value.s and value.s.decode(errors="replace") in names:
                value.s = names[value.s.decode()].encode()

    functions = graph.library.function
    for function in functions:
        function.signature.name = names[function.signature.name]
        rename(function.attr)
    for gradient in graph.library.gradient:
        for field in ("function_name", "gradient_func"):
            name = getattr(gradient, field)
            setattr(gradient, field, names.get(name, name))
    for node in itertools.chain(
        graph.node, *(function.node_def for function in functions)
    ):
        node.op = names.get(node.op, node.op)
        rename(node.attr)


def digest(serialized: Any) -> Optional[bytes]:
    """Returns a digest of a TFF computation; None if a call depends on earlier calls.

    Computations with equal digests differ only in the names of their functions, such as
    those of a process that is built again for the run with the next seed.
    """
    canonical = type(serialized)()
    canonical.CopyFrom(serialized)
    for part in _graphs(canonical):
        graph = tf.compat.v1.GraphDef()
        part.graph_def.Unpack(graph)
        called = called_functions(graph)
        if any(
            map(
                _is_stateful,
                (graph.node, *(function.node_def for function in called.values())),
            )
        ):
            return None
        for name, function in called.items():
            for argument in function.signature.input_arg:
                argument.name = argument.name.replace(name, "")
        gradients = graph.library.gradient
        library = type(graph.library)(function=called.values(), gradient=gradients)
        graph.library.CopyFrom(library)
        rename_functions(graph, {name: f"{n}" for n, name in enumerate(called)})
        part.graph_def.value = graph.SerializeToString(deterministic=True)
        part.ClearField("cache_key")
    return hashlib.sha256(canonical.SerializeToString(deterministic=True)).digest()


def _graphs(message: Any) -> Iterator[Any]:
    """Yields the TensorFlow graphs of a serialized computation."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for part in value if field.label == field.LABEL_REPEATED else [value]:
            if field.message_type.name == "TensorFlow":
                yield part
            else:
                yield from _graphs(part)


def _is_stateful(nodes: Any) -> bool:
    """Returns whether an operation of these nodes keeps state between calls."""
    definitions = [op_def_registry.get(node.op) for node in nodes]
    stateful = {
        definition.name
        for definition in definitions
        if definition is not None and definition.is_stateful
    }
    return not all(map(_WITHOUT_MEMORY.fullmatch, stateful))
