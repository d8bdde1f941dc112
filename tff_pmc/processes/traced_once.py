"""TensorFlow functions of one process, which are called in every round."""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf


def traced_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function that TensorFlow traces in its first call, and not in later ones.

    Within a graph, such as that of a TFF computation, it is a part of the graph.

    Every process has functions of its own, for its own model, and each is traced once.
    `tf.function` alone counts the tracings of all functions of the same code together:
    it takes the first calls of several processes for one function that is traced again
    and again, and warns of it.

    Args:
        function: takes structures of tensors, or of what becomes tensors, and returns
            one. For arguments of other types or shapes it is traced anew; their
            structure is the same in all calls.
    """
    in_graph = tf.function(function)
    traced: dict[tuple[tf.TensorSpec, ...], Callable[..., Any]] = {}

    def call(*arguments: Any) -> Any:
        if not tf.executing_eagerly():
            return in_graph(*arguments)
        tensors = [tf.convert_to_tensor(leaf) for leaf in tf.nest.flatten(arguments)]
        specs = tuple(tf.TensorSpec(leaf.shape, leaf.dtype) for leaf in tensors)
        if specs not in traced:
            # Without the values, which would be kept as long as the function is.
            structure = tf.nest.map_structure(lambda _: 0, arguments)

            def flat(*leaves: tf.Tensor) -> Any:
                return function(*tf.nest.pack_sequence_as(structure, leaves))

            traced[specs] = tf.function(flat).get_concrete_function(*specs)
        return traced[specs](*tensors)

    return call
