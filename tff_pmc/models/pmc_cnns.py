"""The CNNs of PMC's and DA's experiments.

The CNNs for CelebA end in one sigmoid unit. Here its logit z becomes the two scores
(0, z), which give the same probabilities and the same loss (binary cross-entropy);
smiling is predicted if z > 0. (PMC, section 5.2, prints "softmax", which is always 1
for one unit.)
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, ClassVar

import numpy as np

from declared_settings import setting
from tff_pmc._lazy import tf, tff
from tff_pmc.models.functional import (
    Cnn,
    check_choice,
    check_share,
    classifier,
    get_activation,
)
from tff_pmc.models.model_settings import (
    MODELS,
    DropoutModelSettings,
    LinearConvModelSettings,
)

BATCH_NORMS = ("frozen", "aggregated")

_MNIST = Cnn((28, 28), 5, ((32,), (64,)), (512, 10), 1_663_370)
_FEMNIST = Cnn((28, 28), 5, ((32,), (64,)), (2048, 62), 6_603_710)
_CELEBA = Cnn((64, 64, 3), 3, ((32,), (64,)), (512, 1), 8_409_025)
# Batch normalization adds 4,096 parameters: 16,837,057 in total.
_CELEBA_REFERENCE = Cnn((64, 64, 3), 5, ((32,), (64,)), (1024, 1), 16_832_961)

# Keras's defaults, which the published code uses.
_MOMENTUM, _EPSILON = 0.99, 1e-3
_NORM_NAMES = [
    f"batch_norm/{part}" for part in ("gamma", "beta", "moving_mean", "moving_variance")
]


def mnist_cnn(
    *,
    conv_activation: str = "none",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Builds the CNN of PMC's MNIST experiments: 1,663,370 parameters.

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
    return _MNIST.classifier(conv_activation, initializer, seed)


def femnist_cnn(
    *,
    conv_activation: str = "none",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Builds the CNN of DA's FEMNIST experiment: 6,603,710 parameters.

    `mnist_cnn` with a dense layer of 2048 units and 62 classes (digits, upper
    and lower case), as in LEAF; see there for arguments and errors. Its images
    have 255 = paper, 0 = ink.
    """
    return _FEMNIST.classifier(conv_activation, initializer, seed)


def celeba_cnn(
    *,
    conv_activation: str = "none",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Builds the CNN that PMC describes for CelebA: 8,409,025 parameters.

    Two 3x3 convolutions (32, 64 channels, same padding), each followed by 2x2 max
    pooling, a dense layer of 512 ReLU units and one sigmoid unit. Arguments and errors
    are those of `mnist_cnn`; the input is uint8 `[n, 64, 64, 3]`, the labels are 0, 1.
    """
    return _CELEBA.classifier(conv_activation, initializer, seed)


def celeba_reference_cnn(
    *,
    conv_activation: str = "none",
    initializer: str = "glorot_normal",
    seed: int = 0,
    batch_norm: str = "frozen",
    dropout: float = 0.3,
) -> tff.learning.models.FunctionalModel:
    """Builds the CNN of the authors' published code for CelebA: 16,837,057 parameters.

    Two 5x5 convolutions (32, 64 channels), each followed by 2x2 max pooling, a dense
    layer of 1024 ReLU units, batch normalization, dropout and one sigmoid unit.

    Args:
        conv_activation: see `mnist_cnn`; the published code has none.
        initializer: see `mnist_cnn`; the published code has `glorot_normal`.
        seed: the seed of the initial weights.
        batch_norm: how its scale gamma, its offset beta and its moving mean and
            variance are treated. `frozen` is what the published code does: its server
            never aggregates them, so that each client starts each round with
            1, 0, 0, 1 and trains them, and the global model is evaluated with
            1, 0, 0, 1. `aggregated` sends them like all weights: gamma and beta are
            trained, the statistics are averaged with the clients' weights.
        dropout: the share of the 1024 units dropped in training.

    Returns:
        A `PackedModel` for packed clients only, with a separate forward pass for
        training and, if frozen, local weights: input uint8 `[n, 64, 64, 3]`, int32
        labels.

    Raises:
        ValueError: an unknown activation, initializer or `batch_norm`; a dropout
            outside [0, 1).
    """
    activation = get_activation(conv_activation)
    check_choice("batch_norm", batch_norm, BATCH_NORMS)
    check_share("dropout", dropout)
    weights = _CELEBA_REFERENCE.initial_weights(initializer, seed)
    # Gamma and beta.
    scale_and_offset = [np.ones(1024, np.float32), np.zeros(1024, np.float32)]
    moments = [np.zeros(1024, np.float32), np.ones(1024, np.float32)]
    frozen = batch_norm == "frozen"

    def compute_scores(trainable, x, normalize):
        def transform_input(x, index):
            return normalize(x) if index == 1 else x

        return _CELEBA_REFERENCE.forward(trainable[:8], x, activation, transform_input)

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        if training:
            raise ValueError(
                "celeba_reference_cnn trains with batch statistics and dropout, which "
                "only packed clients support: train packs of clients"
            )
        trainable, non_trainable = model_weights
        gamma, beta = scale_and_offset if frozen else trainable[8:]
        mean, variance = moments if frozen else non_trainable

        def normalize(hidden):
            return tf.nn.batch_normalization(
                hidden, mean, variance, beta, gamma, _EPSILON
            )

        return compute_scores(trainable, x, normalize)

    def forward_in_training(trainable, non_trainable, x, step_seed):
        gamma, beta = trainable[8:]
        statistics = []

        def normalize(hidden):
            statistics.extend(tf.nn.moments(hidden, axes=[0]))
            hidden = tf.nn.batch_normalization(
                hidden, *statistics, beta, gamma, _EPSILON
            )
            if not dropout:
                return hidden
            return tf.nn.experimental.stateless_dropout(hidden, dropout, step_seed)

        output = compute_scores(trainable, x, normalize)
        if not frozen:
            non_trainable = tuple(
                old * _MOMENTUM + new * (1 - _MOMENTUM)
                for old, new in zip(non_trainable, statistics)
            )
        return output, non_trainable

    return classifier(
        weights if frozen else [*weights, *scale_and_offset],
        predict_on_batch,
        _CELEBA_REFERENCE.image,
        non_trainable=() if frozen else moments,
        forward_in_training=forward_in_training,
        local_weights=scale_and_offset if frozen else (),
        weight_names=_CELEBA_REFERENCE.weight_names + ([] if frozen else _NORM_NAMES),
    )


@dataclasses.dataclass(frozen=True)
class MnistCnn(LinearConvModelSettings):
    """The CNN of PMC's MNIST experiments: 1,663,370 parameters."""

    function: ClassVar[Callable[..., Any]] = mnist_cnn
    element_shape: ClassVar[tuple[int, ...]] = _MNIST.image
    num_classes: ClassVar[int] = _MNIST.num_classes


@dataclasses.dataclass(frozen=True)
class FemnistCnn(LinearConvModelSettings):
    """The CNN of DA's FEMNIST experiment: 6,603,710 parameters."""

    function: ClassVar[Callable[..., Any]] = femnist_cnn
    element_shape: ClassVar[tuple[int, ...]] = _FEMNIST.image
    num_classes: ClassVar[int] = _FEMNIST.num_classes


@dataclasses.dataclass(frozen=True)
class CelebaCnn(LinearConvModelSettings):
    """The CNN that PMC describes for CelebA: 8,409,025 parameters."""

    function: ClassVar[Callable[..., Any]] = celeba_cnn
    element_shape: ClassVar[tuple[int, ...]] = _CELEBA.image
    num_classes: ClassVar[int] = _CELEBA.num_classes


@dataclasses.dataclass(frozen=True)
class CelebaReferenceCnn(LinearConvModelSettings, DropoutModelSettings):
    """The CNN of the authors' published code for CelebA: 16,837,057 parameters."""

    function: ClassVar[Callable[..., Any]] = celeba_reference_cnn
    element_shape: ClassVar[tuple[int, ...]] = _CELEBA_REFERENCE.image
    num_classes: ClassVar[int] = _CELEBA_REFERENCE.num_classes

    batch_norm: str = setting(
        "frozen",
        "Whether batch normalization is frozen at the server, or aggregated.",
        choices=BATCH_NORMS,
    )


MODELS.register("mnist_cnn", MnistCnn)
MODELS.register("femnist_cnn", FemnistCnn)
MODELS.register("celeba_cnn", CelebaCnn)
MODELS.register("celeba_reference_cnn", CelebaReferenceCnn)
