"""A pack as bytes that travel: the same pack gives the same bytes.

A dataset travels as its graph, which holds the tensors that it slices. Needs TensorFlow
and not TFF.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Union

import numpy as np
import tensorflow as tf

# Attributes that are names, made of a count of what the process has traced.
_NAMES = ("metadata", "_user_specified_name")
_FAIL, _IGNORE = 2, 1  # What `DatasetToGraphV2` does with state outside of the graph.


class Part(NamedTuple):
    """One tensor of a pack: a dataset's graph, or an array.

    A dataset that had to be read (`was_read`) may give other elements the next time.
    """

    is_dataset: bool
    content: Union[bytes, np.ndarray]
    was_read: bool = False


def encoded(pack: Sequence[tf.Tensor]) -> list[Part]:
    """The tensors of a pack as what travels.

    A dataset that depends on more than its graph, on a Python function or a random
    stream of the process, is read here, and its elements travel.
    """
    return [
        _dataset(tensor) if tensor.dtype == tf.variant else Part(False, tensor.numpy())
        for tensor in pack
    ]


def decoded(parts: Sequence[Part]) -> list[tf.Tensor]:
    """The tensors of a pack that travelled."""
    return [
        tf.raw_ops.DatasetFromGraph(graph_def=part.content)
        if part.is_dataset
        else tf.constant(part.content)
        for part in parts
    ]


def num_bytes(parts: Sequence[Part]) -> int:
    """The bytes of what travels, without Python's own."""
    return sum(
        len(part.content) if part.is_dataset else np.asarray(part.content).nbytes
        for part in parts
    )


def digest(parts: Sequence[Part]) -> str:
    """A digest of what travels: equal for equal packs."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        if part.is_dataset:
            found.update(part.content)
            continue
        array = np.asarray(part.content)
        found.update(f"{array.dtype} {array.shape}".encode())
        plain = array.dtype.kind != "O"
        found.update(array.tobytes() if plain else repr(array.tolist()).encode())
    return found.hexdigest()


def _dataset(variant: tf.Tensor) -> Part:
    was_read = False
    try:
        graph = _to_graph(variant, _FAIL)
    except tf.errors.OpError:
        was_read = True
        graph = _to_graph(_of_elements(variant), _FAIL)
    _name_by_place(graph)
    return Part(True, graph.SerializeToString(deterministic=True), was_read)


def _to_graph(variant: tf.Tensor, policy: int) -> tf.compat.v1.GraphDef:
    content = tf.raw_ops.DatasetToGraphV2(
        input_dataset=variant,
        external_state_policy=policy,
        strip_device_assignment=True,
    )
    return tf.compat.v1.GraphDef.FromString(content.numpy())


def _of_elements(variant: tf.Tensor) -> tf.Tensor:
    """A dataset of the elements of another, whatever their shapes."""
    graph = _to_graph(variant, _IGNORE)
    nodes = {node.name: node for node in graph.node}
    (result,) = (node for node in graph.node if node.op == "_Retval")
    attributes = nodes[result.input[0].split(":")[0]].attr
    types = [tf.as_dtype(t) for t in attributes["output_types"].list.type]
    shapes = [tf.TensorShape(s) for s in attributes["output_shapes"].list.shape]
    specs = tuple(map(tf.TensorSpec, shapes, types))
    columns: list[list[bytes]] = [[] for _ in specs]
    for element in tf.data.experimental.from_variant(variant, specs):
        for column, tensor in zip(columns, element):
            column.append(tf.io.serialize_tensor(tensor).numpy())

    def parsed(*row: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return tuple(
            tf.ensure_shape(tf.io.parse_tensor(text, spec.dtype), spec.shape)
            for text, spec in zip(row, specs)
        )

    rows = tuple(tf.constant(column, tf.string, [len(column)]) for column in columns)
    return tf.data.experimental.to_variant(
        tf.data.Dataset.from_tensor_slices(rows).map(parsed)
    )


def _name_by_place(graph: tf.compat.v1.GraphDef) -> None:
    """Names functions by where they are first used, and forgets their arguments' names.

    TensorFlow's names count what the process has traced before, so that two equal
    datasets would have other bytes.
    """
    functions = {f.signature.name: f for f in graph.library.function}
    names: dict[str, str] = {}

    def visit(nodes: Any) -> None:
        for node in nodes:
            for name in _NAMES:
                node.attr.pop(name, None)
            for name in _functions_of(node, functions):
                if name not in names:
                    names[name] = f"function_{len(names)}"
                    visit(functions[name].node_def)

    visit(graph.node)
    for nodes in (graph.node, *(f.node_def for f in functions.values())):
        for node in nodes:
            node.op = names.get(node.op, node.op)
            for _, value in node.attr.items():
                for called in (value.func, *value.list.func):
                    if called.name in names:
                        called.name = names[called.name]
    used = [functions[name] for name in names]
    for name, function in zip(names.values(), used):
        function.signature.name = name
        for _, argument in function.arg_attr.items():
            for attribute in _NAMES:
                argument.attr.pop(attribute, None)
    copies = [
        type(function).FromString(function.SerializeToString()) for function in used
    ]
    del graph.library.function[:]
    graph.library.function.extend(copies)


def _functions_of(node: Any, functions: dict[str, Any]) -> Iterator[str]:
    """The names of the functions that a node calls, in a fixed order."""
    if node.op in functions:
        yield node.op
    for _, value in sorted(node.attr.items()):
        called = []
        if value.HasField("func"):
            called = [value.func]
        elif value.HasField("list"):
            called = list(value.list.func)
        for one in called:
            if one.name in functions:
                yield one.name
