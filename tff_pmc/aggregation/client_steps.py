"""Steps that a client takes with its trained model before the model is aggregated.

A step is a TensorFlow function of the model that the client received, w, and of its
update `d_k = w - w_k`; it returns the update that goes to the aggregation in its place.
So it can act on the trained model, which a factory, that sees updates alone, cannot.
`processes.build_factory_fed_avg` takes one as `client_step=`.
"""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

ClientStep = Callable[[Any, Any], Any]
"""(received weights, update) -> update, all of one structure."""


def quantize_parameters(bits: int = 8) -> ClientStep:
    """Rounds the trained parameters: `round(theta (2^Q - 1)) / (2^Q - 1)`.

    It is the first formula of Quantization in Dual's Table I, whose second is the
    simple average of what the clients send (`aggregation.simple_average`). Q is a
    number of bits: the values are the multiples of `1 / (2^Q - 1)`, and a number half
    way between two becomes the even multiple, as NumPy and PyTorch round. No value
    is clipped, so that Q bits suffice for a parameter in [0, 1] alone.

    Args:
        bits: Q, from 1 to 16.

    Raises:
        ValueError: Q is something else.
    """
    if not 1 <= bits <= 16:
        raise ValueError(f"bits must be from 1 to 16, got {bits}")
    steps = float(2**bits - 1)

    def step(received: Any, update: Any) -> Any:
        flat = zip(tf.nest.flatten(received), tf.nest.flatten(update))
        quantized = [
            old - tf.round((old - moved) * steps) / steps for old, moved in flat
        ]
        return tf.nest.pack_sequence_as(update, quantized)

    return step
