"""Adadelta as a client optimizer, which TFF does not have.

"ADADELTA: An Adaptive Learning Rate Method" (Zeiler 2012), Algorithm 1, with a rate
before the step, as in Keras.
"""

from __future__ import annotations

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

_RATE, _RHO, _EPSILON = "learning_rate", "rho", "epsilon"
_GRADIENTS, _STEPS = "squared_gradients", "squared_steps"


def build_adadelta(
    learning_rate: float = 1.0, rho: float = 0.95, epsilon: float = 1e-7
) -> tff.learning.optimizers.Optimizer:
    """Builds Adadelta: the step is as large as the last steps were.

    With running means `E[.]` of squares, of decay rho, and a gradient g:

        E[g^2] <- rho E[g^2] + (1 - rho) g^2
        step = sqrt(E[step^2] + epsilon) / sqrt(E[g^2] + epsilon) * g
        E[step^2] <- rho E[step^2] + (1 - rho) step^2
        w <- w - learning_rate * step

    Multiplying the loss by a number changes the steps through epsilon alone; the first
    steps are about its root. Zeiler has no learning rate, which is 1; Keras had 1 until
    its version 2.3, and 0.001 later. The other defaults are Keras's.
    """
    if learning_rate < 0:
        raise ValueError(f"learning_rate must be 0 or more, got {learning_rate}")
    if not 0 <= rho < 1:
        raise ValueError(f"rho must be in [0, 1), got {rho}")
    if not epsilon > 0:
        raise ValueError(f"epsilon must be above 0, got {epsilon}")
    return _Adadelta(learning_rate, rho, epsilon)


class _Adadelta(tff.learning.optimizers.Optimizer):
    """See `build_adadelta`."""

    def __init__(self, learning_rate: float, rho: float, epsilon: float) -> None:
        self._hparams = collections.OrderedDict(
            [(_RATE, learning_rate), (_RHO, rho), (_EPSILON, epsilon)]
        )

    def initialize(self, specs: Any) -> Any:
        def zeros():
            return tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), specs)

        return collections.OrderedDict(
            self._hparams, **{_GRADIENTS: zeros(), _STEPS: zeros()}
        )

    def next(self, state: Any, weights: Any, gradients: Any) -> tuple[Any, Any]:
        rate, rho, epsilon = (state[name] for name in self._hparams)

        def of_leaf(w, mean_gradient, mean_step, gradient):
            if gradient is None:  # What the loss does not depend on stays.
                return w, mean_gradient, mean_step
            gradient = tf.convert_to_tensor(gradient)  # Also of indexed slices.
            mean_gradient = rho * mean_gradient + (1 - rho) * tf.square(gradient)
            step = tf.sqrt((mean_step + epsilon) / (mean_gradient + epsilon)) * gradient
            mean_step = rho * mean_step + (1 - rho) * tf.square(step)
            return w - rate * step, mean_gradient, mean_step

        flat = [
            of_leaf(*leaves)
            for leaves in zip(
                tf.nest.flatten(weights),
                tf.nest.flatten(state[_GRADIENTS]),
                tf.nest.flatten(state[_STEPS]),
                tf.nest.flatten(gradients),
            )
        ]
        weights, gradients, steps = (
            tf.nest.pack_sequence_as(weights, [leaves[part] for leaves in flat])
            for part in range(3)
        )
        state = collections.OrderedDict(state, **{_GRADIENTS: gradients, _STEPS: steps})
        return state, weights

    def get_hparams(self, state: Any) -> Any:
        return collections.OrderedDict((name, state[name]) for name in self._hparams)

    def set_hparams(self, state: Any, hparams: Any) -> Any:
        return collections.OrderedDict(state, **hparams)
