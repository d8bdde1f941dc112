"""The CNNs of the character experiments: MNIST (PMC) and FEMNIST (DA)."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, ClassVar

from tff_pmc._lazy import tf, tff
from tff_pmc.models.functional import (
    CONV_ACTIVATIONS,
    check_choice,
    classifier,
    conv,
    initial_weights,
)
from tff_pmc.models.model_settings import MODELS, LinearModelSettings


def mnist_cnn(
    *,
    conv_activation: str = "none",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """The CNN of PMC's MNIST experiments: 1,663,370 parameters.

    Two 5x5 convolutions (32, 64 channels, same padding), each followed by 2x2
    max pooling, a dense layer of 512 ReLU units and a linear layer of 10.

    Args:
        conv_activation: `none` (the paper names ReLU for the dense layer only, and
            the authors' published code has linear convolutions) or `relu` (as in
            other implementations of McMahan's CNN).
        initializer: `glorot_uniform` (Keras's default) or `glorot_normal` (the
            authors' code) for the kernels; biases start at zero.
        seed: the seed of the initial weights.

    Returns:
        A model whose input is uint8 `[n, 28, 28]` (0 = background, 255 =
        ink) and int32 labels `[n]`, with the mean cross-entropy as its loss.

    Raises:
        ValueError: an unknown activation or initializer.
    """
    return _two_convolutions(512, 10, 1_663_370, conv_activation, initializer, seed)


def femnist_cnn(
    *,
    conv_activation: str = "none",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """The CNN of DA's FEMNIST experiment: 6,603,710 parameters.

    `mnist_cnn` with a dense layer of 2048 units and 62 classes (digits, upper
    and lower case), as LEAF has it; see there for arguments and errors. Its images
    have 255 = paper, 0 = ink.
    """
    return _two_convolutions(2048, 62, 6_603_710, conv_activation, initializer, seed)


def _two_convolutions(units, classes, parameters, conv_activation, initializer, seed):
    check_choice("conv_activation", conv_activation, CONV_ACTIVATIONS)
    activation = tf.nn.relu if conv_activation == "relu" else tf.identity
    shapes = [
        *((5, 5, 1, 32), (32,)),
        *((5, 5, 32, 64), (64,)),
        *((7 * 7 * 64, units), (units,)),
        *((units, classes), (classes,)),
    ]
    weights = initial_weights(shapes, initializer, seed)
    assert sum(w.size for w in weights) == parameters

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        del training  # The same forward pass trains and predicts.
        (k1, b1, k2, b2, k3, b3, k4, b4), _ = model_weights
        x = tf.cast(x[..., tf.newaxis], tf.float32) / 255.0
        x = tf.nn.max_pool2d(activation(conv(x, k1, b1)), 2, 2, "VALID")
        x = tf.nn.max_pool2d(activation(conv(x, k2, b2)), 2, 2, "VALID")
        x = tf.reshape(x, [-1, 7 * 7 * 64])
        return tf.nn.relu(x @ k3 + b3) @ k4 + b4

    return classifier(weights, predict_on_batch, (28, 28))


@dataclasses.dataclass(frozen=True)
class MnistCnn(LinearModelSettings):
    """The CNN of PMC's MNIST experiments: 1,663,370 parameters."""

    function: ClassVar[Callable[..., Any]] = mnist_cnn
    element_shape: ClassVar[tuple[int, ...]] = (28, 28)


@dataclasses.dataclass(frozen=True)
class FemnistCnn(LinearModelSettings):
    """The CNN of DA's FEMNIST experiment: 6,603,710 parameters."""

    function: ClassVar[Callable[..., Any]] = femnist_cnn
    element_shape: ClassVar[tuple[int, ...]] = (28, 28)


MODELS.register("mnist_cnn", MnistCnn)
MODELS.register("femnist_cnn", FemnistCnn)
