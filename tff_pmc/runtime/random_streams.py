"""Random numbers of a graph that depend only on a seed, which each call sets.

TensorFlow's random operations continue their streams from one call to the next, so that
a client's random numbers would depend on the clients trained before it.
"""

from __future__ import annotations

import hashlib

import tensorflow as tf
from absl import logging
from tensorflow.python.framework.auto_control_deps import LEGACY_RANDOM_OPS

from tff_pmc.runtime.graph_functions import called_functions

# Operations that draw from a stream of TensorFlow, and those that draw from a variable.
_DRAWS = {
    "RandomUniform": "StatefulUniform",
    "RandomUniformInt": "StatefulUniformInt",
    "RandomStandardNormal": "StatefulStandardNormalV2",
    "TruncatedNormal": "StatefulTruncatedNormal",
    "NonDeterministicInts": "StatefulUniformFullInt",
}
_PHILOX = 1  # TensorFlow's number of this algorithm.
_CPU = "/device:CPU:0"  # The device of the streams, so that GPUs draw the same numbers.


def add_random_streams(graph: tf.compat.v1.GraphDef, number: int) -> dict[str, bytes]:
    """Adds a stream to each random node; returns the seed of each stream by name."""
    streams: dict[str, bytes] = {}
    called = called_functions(graph).values()
    bodies = [graph.node, *(function.node_def for function in called)]
    for nodes, node in [(body, node) for body in bodies for node in body]:
        if node.op in LEGACY_RANDOM_OPS and node.op not in _DRAWS:
            words = (
                "equal settings will not give equal numbers: a client draws with %s, "
                "whose random stream cannot be seeded per call"
            )
            logging.log_first_n(logging.WARNING, words, 1, node.op)
        if node.op not in _DRAWS:
            continue
        name = f"tff_pmc_{number}_stream_{len(streams)}"
        seeds = [node.attr[seed].i for seed in ("seed", "seed2")]
        streams[name] = f" {len(streams)} {seeds}".encode()
        with tf.Graph().as_default(), tf.device(_CPU):
            operations = _stream(name).op, tf.constant(_PHILOX, tf.int64).op
        outputs = []
        for operation in operations:
            function = nodes.add()
            function.CopyFrom(operation.node_def)
            function.name = f"{node.name}_{function.name}"
            suffix = f":{operation.op_def.output_arg[0].name}:0"
            outputs.append(function.name + ("" if nodes is graph.node else suffix))
        node.op = _DRAWS[node.op]
        node.input[:] = [*outputs, *node.input]
        for old, new in (("Tout", "dtype"), ("T", "shape_dtype")):
            if old in node.attr:
                node.attr[new].CopyFrom(node.attr.pop(old))
        for seed in ("seed", "seed2"):
            node.attr.pop(seed, None)
    return streams


def _stream(name: str) -> tf.Tensor:
    return tf.raw_ops.VarHandleOp(dtype=tf.int64, shape=[3], shared_name=name)


def reset_stream(name: str, seed: bytes) -> None:
    """Resets a stream to the start of the numbers of this seed."""
    key = hashlib.blake2b(seed, digest_size=8).digest()
    state = [0, 0, int.from_bytes(key, "little", signed=True)]
    with tf.device(_CPU):
        tf.raw_ops.AssignVariableOp(
            resource=_stream(name), value=tf.constant(state, tf.int64)
        )
