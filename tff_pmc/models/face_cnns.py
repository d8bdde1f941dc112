"""The CNNs of PMC's CelebA experiment: the paper's, and the published code's.

Both end in one sigmoid unit, whose logit z is given here as the two scores (0, z): the
same probabilities, the same loss (binary cross-entropy), and smiling is predicted where
z > 0. (PMC, section 5.2, prints "softmax", which of one unit is always 1.)
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, ClassVar

import numpy as np

from leaf_data.declare import setting
from tff_pmc._lazy import tf, tff
from tff_pmc.models.functional import (
    CONV_ACTIVATIONS,
    check_choice,
    classifier,
    conv,
    initial_weights,
)
from tff_pmc.models.model_settings import (
    MODELS,
    DroppingModelSettings,
    LinearModelSettings,
)

BATCH_NORMS = ("frozen", "aggregated")

# Keras's defaults, which the published code uses.
_MOMENTUM, _EPSILON = 0.99, 1e-3


def celeba_cnn(
    *,
    conv_activation: str = "none",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """The CNN that PMC describes for CelebA: 8,409,025 parameters.

    Two 3x3 convolutions (32, 64 channels, same padding), each followed by 2x2 max
    pooling, a dense layer of 512 ReLU units and one sigmoid unit.

    Args:
        conv_activation: `none` (the paper names ReLU for the dense layer) or `relu`.
        initializer: see `mnist_cnn`.
        seed: the seed of the initial weights.

    Returns:
        A model whose input is uint8 `[n, 64, 64, 3]` and int32 labels `[n]` (0, 1).

    Raises:
        ValueError: an unknown activation or initializer.
    """
    check_choice("conv_activation", conv_activation, CONV_ACTIVATIONS)
    weights = initial_weights(_shapes(3, 512), initializer, seed)
    assert sum(w.size for w in weights) == 8_409_025

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        del training  # The same forward pass trains and predicts.
        (*inner, kernel, bias), _ = model_weights
        return _scores(_hidden(inner, x, conv_activation), kernel, bias)

    return classifier(weights, predict_on_batch, (64, 64, 3))


def celeba_reference_cnn(
    *,
    conv_activation: str = "none",
    initializer: str = "glorot_normal",
    seed: int = 0,
    batch_norm: str = "frozen",
    dropout: float = 0.3,
) -> tff.learning.models.FunctionalModel:
    """The CNN of the authors' published code for CelebA: 16,837,057 parameters.

    Two 5x5 convolutions (32, 64 channels), each followed by 2x2 max pooling, a dense
    layer of 1024 ReLU units, batch normalization, dropout and one sigmoid unit.

    Args:
        conv_activation: see `celeba_cnn`; the published code has none.
        initializer: see `mnist_cnn`; the published code has `glorot_normal`.
        seed: the seed of the initial weights.
        batch_norm: the fate of its scale gamma, its offset beta and its moving
            mean and variance. `frozen` is what the published code does: its server
            never takes them from the clients, so that every client begins each
            round with 1, 0, 0, 1 and trains its own, and the global model is
            evaluated with 1, 0, 0, 1. `aggregated` sends them like all weights: gamma
            and beta are trained, the statistics are averaged with the clients'
            weights.
        dropout: the share of the 1024 units dropped in training.

    Returns:
        A `PackedModel` for packed clients only, with a forward pass of training and,
        where frozen, local weights: input uint8 `[n, 64, 64, 3]`, int32 labels.

    Raises:
        ValueError: an unknown activation, initializer or `batch_norm`; a dropout
            outside [0, 1).
    """
    check_choice("conv_activation", conv_activation, CONV_ACTIVATIONS)
    check_choice("batch_norm", batch_norm, BATCH_NORMS)
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {dropout}")
    weights = initial_weights(_shapes(5, 1024), initializer, seed)
    scale = [np.ones(1024, np.float32), np.zeros(1024, np.float32)]  # Gamma, beta.
    moments = [np.zeros(1024, np.float32), np.ones(1024, np.float32)]
    assert sum(w.size for w in [*weights, *scale, *moments]) == 16_837_057
    frozen = batch_norm == "frozen"

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        if training:
            raise ValueError(
                "celeba_reference_cnn trains with batch statistics and dropout, which "
                "only packed clients do"
            )
        trainable, non_trainable = model_weights
        gamma, beta = scale if frozen else trainable[8:]
        mean, variance = moments if frozen else non_trainable
        hidden = _hidden(trainable[:6], x, conv_activation)
        hidden = tf.nn.batch_normalization(
            hidden, mean, variance, beta, gamma, _EPSILON
        )
        return _scores(hidden, *trainable[6:8])

    def forward_in_training(trainable, non_trainable, x, step_seed):
        (*inner, kernel, bias), (gamma, beta) = trainable[:8], trainable[8:]
        hidden = _hidden(inner, x, conv_activation)
        mean, variance = tf.nn.moments(hidden, axes=[0])
        if not frozen:
            non_trainable = tuple(
                old * _MOMENTUM + new * (1 - _MOMENTUM)
                for old, new in zip(non_trainable, (mean, variance))
            )
        hidden = tf.nn.batch_normalization(
            hidden, mean, variance, beta, gamma, _EPSILON
        )
        if dropout:
            hidden = tf.nn.experimental.stateless_dropout(hidden, dropout, step_seed)
        return _scores(hidden, kernel, bias), non_trainable

    return classifier(
        weights if frozen else [*weights, *scale],
        predict_on_batch,
        (64, 64, 3),
        non_trainable=() if frozen else moments,
        forward_in_training=forward_in_training,
        local_weights=scale if frozen else (),
    )


def _shapes(side: int, units: int) -> list[tuple[int, ...]]:
    return [
        *((side, side, 3, 32), (32,)),
        *((side, side, 32, 64), (64,)),
        *((16 * 16 * 64, units), (units,)),
        *((units, 1), (1,)),
    ]


def _hidden(weights, x, conv_activation):
    """Computes the dense layer's activations from images."""
    k1, b1, k2, b2, k3, b3 = weights
    activation = tf.nn.relu if conv_activation == "relu" else tf.identity
    x = tf.cast(x, tf.float32) / 255.0
    x = tf.nn.max_pool2d(activation(conv(x, k1, b1)), 2, 2, "VALID")
    x = tf.nn.max_pool2d(activation(conv(x, k2, b2)), 2, 2, "VALID")
    return tf.nn.relu(tf.reshape(x, [-1, 16 * 16 * 64]) @ k3 + b3)


def _scores(hidden, kernel, bias):
    logit = hidden @ kernel + bias
    return tf.concat([tf.zeros_like(logit), logit], axis=1)


@dataclasses.dataclass(frozen=True)
class CelebaCnn(LinearModelSettings):
    """The CNN that PMC describes for CelebA: 8,409,025 parameters."""

    function: ClassVar[Callable[..., Any]] = celeba_cnn
    element_shape: ClassVar[tuple[int, ...]] = (64, 64, 3)


@dataclasses.dataclass(frozen=True)
class CelebaReferenceCnn(LinearModelSettings, DroppingModelSettings):
    """The CNN of the authors' published code for CelebA: 16,837,057 parameters."""

    function: ClassVar[Callable[..., Any]] = celeba_reference_cnn
    element_shape: ClassVar[tuple[int, ...]] = (64, 64, 3)

    batch_norm: str = setting(
        "frozen",
        "Whether batch normalization is frozen at the server, or aggregated.",
        choices=BATCH_NORMS,
    )


MODELS.register("celeba_cnn", CelebaCnn)
MODELS.register("celeba_reference_cnn", CelebaReferenceCnn)
