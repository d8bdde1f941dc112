"""The two CNNs for MNIST that Keras's documentation has had, one after the other.

AdaFed ("Performance-based Adaptive Federated Learning", Giuseppi et al. 2022, section
4.0.1) takes the one with two convolutions and two dense layers, at
keras.io/examples/mnist_cnn. The other, with one dense layer, is at that place's
successor, "Simple MNIST convnet".
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, ClassVar

from leaf_data.declare import BELOW_1, setting
from tff_pmc._lazy import tf, tff
from tff_pmc.models.functional import (
    activation_of,
    classifier,
    conv,
    initial_weights,
    max_pool,
)
from tff_pmc.models.model_settings import MODELS, DroppingModelSettings, ModelSettings


def keras_mnist_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
    pooled_dropout: float = 0.25,
    dense_dropout: float = 0.5,
) -> tff.learning.models.FunctionalModel:
    """The CNN of Keras's example `mnist_cnn`: 1,199,882 parameters.

    Two 3x3 convolutions (32, 64 channels, no padding) with ReLU, 2x2 max pooling,
    dropout, a dense layer of 128 ReLU units, dropout, and a linear layer of 10, whose
    softmax is in the loss.

    Args:
        conv_activation: `relu`, as in Keras's example, or `none`.
        initializer: see `mnist_cnn`.
        seed: the seed of the initial weights.
        pooled_dropout: the share of the 9,216 pooled features dropped in training.
        dense_dropout: the share of the dense layer's 128 units dropped in training.

    Returns:
        A `PackedModel` whose input is uint8 `[n, 28, 28]` and int32 labels `[n]`. With
        a dropout it is for packed clients only, and has a forward pass of training.

    Raises:
        ValueError: an unknown activation or initializer; a dropout outside [0, 1).
    """
    activation = activation_of(conv_activation)
    _check_share("pooled_dropout", pooled_dropout)
    _check_share("dense_dropout", dense_dropout)
    features = 12 * 12 * 64
    shapes = [
        *((3, 3, 1, 32), (32,)),
        *((3, 3, 32, 64), (64,)),
        *((features, 128), (128,)),
        *((128, 10), (10,)),
    ]
    weights = initial_weights(shapes, initializer, seed)
    assert sum(w.size for w in weights) == 1_199_882

    def scores(trainable, x, drop):
        k1, b1, k2, b2, k3, b3, k4, b4 = trainable
        x = activation(conv(_scaled(x), k1, b1, "VALID"))
        x = max_pool(activation(conv(x, k2, b2, "VALID")))
        x = drop(tf.reshape(x, [-1, features]), pooled_dropout, 0)
        x = drop(tf.nn.relu(x @ k3 + b3), dense_dropout, 1)
        return x @ k4 + b4

    return _dropping("keras_mnist_cnn", weights, scores, pooled_dropout + dense_dropout)


def keras_simple_convnet(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
    dropout: float = 0.5,
) -> tff.learning.models.FunctionalModel:
    """The CNN of Keras's later example, "Simple MNIST convnet": 34,826 parameters.

    Two 3x3 convolutions (32, 64 channels, no padding), each followed by 2x2 max
    pooling, dropout and a linear layer of 10: a fast one for tests and first looks.

    Args:
        conv_activation: `relu`, as in Keras's example, or `none`.
        initializer: see `mnist_cnn`.
        seed: the seed of the initial weights.
        dropout: the share of the last layer's 1,600 inputs dropped in training.

    Returns:
        A `PackedModel`, as of `keras_mnist_cnn`.

    Raises:
        ValueError: an unknown activation or initializer; a dropout outside [0, 1).
    """
    activation = activation_of(conv_activation)
    _check_share("dropout", dropout)
    features = 5 * 5 * 64
    shapes = [
        *((3, 3, 1, 32), (32,)),
        *((3, 3, 32, 64), (64,)),
        *((features, 10), (10,)),
    ]
    weights = initial_weights(shapes, initializer, seed)
    assert sum(w.size for w in weights) == 34_826

    def scores(trainable, x, drop):
        k1, b1, k2, b2, kernel, bias = trainable
        x = max_pool(activation(conv(_scaled(x), k1, b1, "VALID")))
        x = max_pool(activation(conv(x, k2, b2, "VALID")))
        return drop(tf.reshape(x, [-1, features]), dropout, 0) @ kernel + bias

    return _dropping("keras_simple_convnet", weights, scores, dropout)


def _dropping(name: str, weights, scores, dropped: float):
    """The classifier of a network that drops units in training.

    Args:
        name: what errors call it.
        weights: the initial weights.
        scores: `(trainable, x, drop) -> scores`, where `drop(x, share, place)` drops a
            share of the units of the network's `place`-th dropout.
        dropped: 0 where no unit is dropped at all.
    """

    def keep(x, share, place):
        del share, place
        return x

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        if training and dropped:
            raise ValueError(
                f"{name} trains with dropout, which only packed clients do"
            )
        return scores(model_weights[0], x, keep)

    def forward_in_training(trainable, non_trainable, x, step_seed):
        def drop(x, share, place):
            seed = tf.random.experimental.stateless_fold_in(step_seed, place)
            return tf.nn.experimental.stateless_dropout(x, share, seed)

        return scores(trainable, x, drop), non_trainable

    return classifier(
        weights,
        predict_on_batch,
        (28, 28),
        forward_in_training=forward_in_training if dropped else None,
    )


def _scaled(x):
    return tf.cast(x[..., tf.newaxis], tf.float32) / 255.0


def _check_share(name: str, share: float) -> None:
    if not 0 <= share < 1:
        raise ValueError(f"{name} must be in [0, 1), got {share}")


@dataclasses.dataclass(frozen=True)
class KerasMnistCnn(ModelSettings):
    """The CNN of Keras's example `mnist_cnn`: 1,199,882 parameters."""

    function: ClassVar[Callable[..., Any]] = keras_mnist_cnn
    element_shape: ClassVar[tuple[int, ...]] = (28, 28)

    pooled_dropout: float = setting(
        0.25,
        "The share of the pooled features dropped in training; Keras's example has "
        "0.25.",
        flag="keras_pooled_dropout",
        within=BELOW_1,
    )
    dense_dropout: float = setting(
        0.5,
        "The share of the dense layer's units dropped in training; Keras's example has "
        "0.5.",
        flag="keras_dense_dropout",
        within=BELOW_1,
    )


@dataclasses.dataclass(frozen=True)
class KerasSimpleConvnet(DroppingModelSettings):
    """The CNN of Keras's later example, "Simple MNIST convnet": 34,826 parameters."""

    function: ClassVar[Callable[..., Any]] = keras_simple_convnet
    element_shape: ClassVar[tuple[int, ...]] = (28, 28)


MODELS.register("keras_mnist_cnn", KerasMnistCnn)
MODELS.register("keras_simple_convnet", KerasSimpleConvnet)
