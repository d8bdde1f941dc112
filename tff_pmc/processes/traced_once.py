"""TensorFlow functions of one process, which are called in every round."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf


def traced_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function that TensorFlow traces in its first call and never again.

    Within a graph, such as that of a TFF computation, it is a part of the graph.

    Every process has functions of its own, for its own model, and each is traced once.
    `tf.function` alone counts the tracings of all functions of the same code, and takes
    several processes in a row for one function that is traced again and again. It also
    traces anew for arguments of other shapes, which no round has: here they are an
    error.

    Args:
        function: takes structures of tensors, or of what becomes tensors, of the same
            types and shapes in every call, and returns one.
    """
    in_graph = tf.function(function)
    traced: list[Callable[..., Any]] = []

    def call(*arguments: Any) -> Any:
        if not tf.executing_eagerly():
            return in_graph(*arguments)
        tensors = [tf.convert_to_tensor(leaf) for leaf in tf.nest.flatten(arguments)]
        if not traced:

            def flat(*leaves: tf.Tensor) -> Any:
                return function(*tf.nest.pack_sequence_as(arguments, leaves))

            specs = [tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in tensors]
            traced.append(tf.function(flat).get_concrete_function(*specs))
        return traced[0](*tensors)

    return call
