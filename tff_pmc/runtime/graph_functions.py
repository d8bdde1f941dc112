"""The functions of a TensorFlow graph: which are called, and their names.

TensorFlow names functions by numbers that a process counts, so that the same function
has another name when it is traced again, and another function the name elsewhere.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import tensorflow as tf
from tensorflow.python.framework import op_def_registry

# Of the stateful operations these, in our processes, keep nothing from one call for the
# next, as random streams do: variables begin anew in each.
_WITHOUT_MEMORY = re.compile(
    "Assert|If|While|StatefulPartitionedCall|TensorDataset|DatasetToSingleElement|"
    "PrintV2|VarHandleOp|(Assign|Read)VariableOp|ResourceApply.*"
)


def called_functions(graph: tf.compat.v1.GraphDef) -> dict[str, Any]:
    """Returns the functions that may run, by name, in the order of their calls."""
    functions = {one.signature.name: one for one in graph.library.function}
    found: dict[str, Any] = {}
    bodies = [graph.node]
    for nodes in bodies:
        for node in nodes:
            values = [node.attr[name] for name in sorted(node.attr)]
            called = [f.name for v in values for f in [v.func, *v.list.func]]
            for name in [node.op, *called]:
                if name in functions:
                    found[name] = functions.pop(name)
                    bodies.append(found[name].node_def)
    return found


def rename_functions(graph: tf.compat.v1.GraphDef, names: Mapping[str, str]) -> None:
    """Renames all functions of a graph in place, wherever they are named.

    Args:
        graph: the graph.
        names: the new name of each function of its library, by the old one.
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
    for node in itertools.chain(graph.node, *(one.node_def for one in functions)):
        node.op = names.get(node.op, node.op)
        rename(node.attr)


def digest(serialized: Any) -> Optional[bytes]:
    """Returns a digest of a TFF computation; None where calls depend on those before.

    Computations of equal digest differ only in the names of their functions. Those of a
    process that is built again for the next seed's run are an example.
    """
    found = type(serialized)()
    found.CopyFrom(serialized)
    for part in _graphs(found):
        graph = tf.compat.v1.GraphDef()
        part.graph_def.Unpack(graph)
        called = called_functions(graph)
        if any(map(_keeps, (graph.node, *(one.node_def for one in called.values())))):
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
    return hashlib.sha256(found.SerializeToString(deterministic=True)).digest()


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


def _keeps(nodes: Any) -> bool:
    """Returns whether an operation of these nodes keeps something between calls."""
    declared = [op_def_registry.get(node.op) for node in nodes]
    kept = {one.name for one in declared if one is not None and one.is_stateful}
    return not all(map(_WITHOUT_MEMORY.fullmatch, kept))
