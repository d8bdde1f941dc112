"""The CNNs of Dual's and AdaFed's experiments.

Dual ("Dual-Criterion Model Aggregation", Zhang, Yu, Westerlund 2024) describes no CNN:
the two CNNs here are our choice, small enough for a CPU. AdaFed ("Performance-based
Adaptive Federated Learning", Giuseppi et al. 2022, section 4.0.1) uses the CNN with two
convolutions and two dense layers that was at keras.io/examples/mnist_cnn. The CNN with
one dense layer is from its successor there, "Simple MNIST convnet".
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, ClassVar

from declared_settings import BELOW_1, setting
from tff_pmc._lazy import tff
from tff_pmc.models.functional import Cnn
from tff_pmc.models.model_settings import MODELS, DropoutModelSettings, ModelSettings

_CIFAR = Cnn((32, 32, 3), 3, ((32, 32), (64, 64)), (256, 10), 1_116_970)
_OBSTACLE = Cnn((64, 64, 3), 3, ((32, 32), (64, 64)), (256, 2), 4_260_642)
_KERAS = Cnn((28, 28), 3, ((32, 64),), (128, 10), 1_199_882, "VALID")
_KERAS_SIMPLE = Cnn((28, 28), 3, ((32,), (64,)), (10,), 34_826, "VALID")


def cifar_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Builds our CNN for Dual's CIFAR-10 experiment: 1,116,970 parameters.

    Four 3x3 convolutions with same padding, of 32, 32, 64 and 64 channels, 2x2 max
    pooling after the second and the fourth, a dense layer of 256 ReLU units and a
    linear layer of 10. Its input is uint8 `[n, 32, 32, 3]`; arguments and errors are
    those of `mnist_cnn`.
    """
    return _CIFAR.classifier(conv_activation, initializer, seed)


def obstacle_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Builds our CNN for Dual's obstacle experiment: 4,260,642 parameters.

    `cifar_cnn` for images of 64 x 64 and two classes; arguments and errors are those
    of `mnist_cnn`.
    """
    return _OBSTACLE.classifier(conv_activation, initializer, seed)


def keras_mnist_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
    pooled_dropout: float = 0.25,
    dense_dropout: float = 0.5,
) -> tff.learning.models.FunctionalModel:
    """Builds the CNN of Keras's example `mnist_cnn`: 1,199,882 parameters.

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
        dropout it is for packed clients only, and has a separate forward pass for
        training.

    Raises:
        ValueError: an unknown activation or initializer; a dropout outside [0, 1).
    """
    return _KERAS.classifier(
        conv_activation,
        initializer,
        seed,
        name="keras_mnist_cnn",
        pooled_dropout=pooled_dropout,
        dense_dropout=dense_dropout,
    )


def keras_simple_convnet(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
    dropout: float = 0.5,
) -> tff.learning.models.FunctionalModel:
    """Builds the CNN of Keras's example "Simple MNIST convnet": 34,826 parameters.

    Two 3x3 convolutions (32, 64 channels, no padding), each followed by 2x2 max
    pooling, dropout (a share of the last layer's 1,600 inputs) and a linear layer of
    10: fast enough for tests and first looks. Arguments, inputs and errors are those of
    `keras_mnist_cnn`.
    """
    return _KERAS_SIMPLE.classifier(
        conv_activation, initializer, seed, name="keras_simple_convnet", dropout=dropout
    )


@dataclasses.dataclass(frozen=True)
class CifarCnn(ModelSettings):
    """Our CNN for Dual's CIFAR-10 experiment: 1,116,970 parameters."""

    function: ClassVar[Callable[..., Any]] = cifar_cnn
    element_shape: ClassVar[tuple[int, ...]] = _CIFAR.image
    num_classes: ClassVar[int] = _CIFAR.num_classes


@dataclasses.dataclass(frozen=True)
class ObstacleCnn(ModelSettings):
    """Our CNN for Dual's obstacle experiment: 4,260,642 parameters."""

    function: ClassVar[Callable[..., Any]] = obstacle_cnn
    element_shape: ClassVar[tuple[int, ...]] = _OBSTACLE.image
    num_classes: ClassVar[int] = _OBSTACLE.num_classes


@dataclasses.dataclass(frozen=True)
class KerasMnistCnn(ModelSettings):
    """The CNN of Keras's example `mnist_cnn`: 1,199,882 parameters."""

    function: ClassVar[Callable[..., Any]] = keras_mnist_cnn
    element_shape: ClassVar[tuple[int, ...]] = _KERAS.image
    num_classes: ClassVar[int] = _KERAS.num_classes

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
class KerasSimpleConvnet(DropoutModelSettings):
    """The CNN of Keras's example "Simple MNIST convnet": 34,826 parameters."""

    function: ClassVar[Callable[..., Any]] = keras_simple_convnet
    element_shape: ClassVar[tuple[int, ...]] = _KERAS_SIMPLE.image
    num_classes: ClassVar[int] = _KERAS_SIMPLE.num_classes


MODELS.register("cifar_cnn", CifarCnn)
MODELS.register("obstacle_cnn", ObstacleCnn)
MODELS.register("keras_mnist_cnn", KerasMnistCnn)
MODELS.register("keras_simple_convnet", KerasSimpleConvnet)
