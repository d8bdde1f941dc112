"""The CNNs of Dual's experiments.

Dual ("Dual-Criterion Model Aggregation", Zhang, Yu, Westerlund 2024) prints none: these
two are our choice, small enough for a CPU.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, ClassVar

from tff_pmc._lazy import tf, tff
from tff_pmc.models.functional import (
    activation_of,
    classifier,
    conv,
    initial_weights,
    max_pool,
)
from tff_pmc.models.model_settings import MODELS, ModelSettings


def cifar_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Our CNN for Dual's CIFAR-10 experiment: 1,116,970 parameters.

    Four 3x3 convolutions with same padding, of 32, 32, 64 and 64 channels, 2x2 max
    pooling after the second and the fourth, a dense layer of 256 ReLU units and a
    linear layer of 10.

    Args:
        conv_activation: `relu` or `none`.
        initializer: see `mnist_cnn`.
        seed: the seed of the initial weights.

    Returns:
        A model whose input is uint8 `[n, 32, 32, 3]` and int32 labels `[n]`.

    Raises:
        ValueError: an unknown activation or initializer.
    """
    return _four_convolutions(32, 10, 1_116_970, conv_activation, initializer, seed)


def obstacle_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Our CNN for Dual's obstacle experiment: 4,260,642 parameters.

    `cifar_cnn` for images of 64 x 64 and two classes; see there for arguments and
    errors.
    """
    return _four_convolutions(64, 2, 4_260_642, conv_activation, initializer, seed)


def _four_convolutions(side, classes, parameters, conv_activation, initializer, seed):
    activation = activation_of(conv_activation)
    inputs = (side // 4) ** 2 * 64
    shapes = [
        *((3, 3, 3, 32), (32,)),
        *((3, 3, 32, 32), (32,)),
        *((3, 3, 32, 64), (64,)),
        *((3, 3, 64, 64), (64,)),
        *((inputs, 256), (256,)),
        *((256, classes), (classes,)),
    ]
    weights = initial_weights(shapes, initializer, seed)
    assert sum(w.size for w in weights) == parameters

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        del training  # The same forward pass trains and predicts.
        (k1, b1, k2, b2, k3, b3, k4, b4, k5, b5, k6, b6), _ = model_weights
        x = tf.cast(x, tf.float32) / 255.0
        x = activation(conv(x, k1, b1))
        x = max_pool(activation(conv(x, k2, b2)))
        x = activation(conv(x, k3, b3))
        x = max_pool(activation(conv(x, k4, b4)))
        x = tf.reshape(x, [-1, inputs])
        return tf.nn.relu(x @ k5 + b5) @ k6 + b6

    return classifier(weights, predict_on_batch, (side, side, 3))


@dataclasses.dataclass(frozen=True)
class CifarCnn(ModelSettings):
    """Our CNN for Dual's CIFAR-10 experiment: 1,116,970 parameters."""

    function: ClassVar[Callable[..., Any]] = cifar_cnn
    element_shape: ClassVar[tuple[int, ...]] = (32, 32, 3)


@dataclasses.dataclass(frozen=True)
class ObstacleCnn(ModelSettings):
    """Our CNN for Dual's obstacle experiment: 4,260,642 parameters."""

    function: ClassVar[Callable[..., Any]] = obstacle_cnn
    element_shape: ClassVar[tuple[int, ...]] = (64, 64, 3)


MODELS.register("cifar_cnn", CifarCnn)
MODELS.register("obstacle_cnn", ObstacleCnn)
