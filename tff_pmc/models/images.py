"""The CNNs of AdaFed's and of Dual's experiments.

AdaFed ("Performance-based Adaptive Federated Learning", Giuseppi et al. 2022) takes
the one of Keras's documentation. Dual ("Dual-Criterion Model Aggregation", Zhang, Yu,
Westerlund 2024) prints none: its two are our choice, small enough for a CPU.
"""

from __future__ import annotations

from tff_pmc._lazy import tf, tff
from tff_pmc.models.functional import (
    CONV_ACTIVATIONS,
    check_choice,
    classifier,
    conv,
    initial_weights,
)


def keras_mnist_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
    dropout: float = 0.5,
) -> tff.learning.models.FunctionalModel:
    """The CNN of Keras's documentation, "Simple MNIST convnet": 34,826 parameters.

    Two 3x3 convolutions (32, 64 channels, no padding), each followed by 2x2 max
    pooling, dropout and a linear layer of 10.

    Args:
        conv_activation: `relu`, as in Keras's example, or `none`.
        initializer: see `mnist_cnn`.
        seed: of the initial weights.
        dropout: the share of the last layer's 1,600 inputs dropped in training;
            AdaFed does not say whether it keeps the example's.

    Returns:
        A model whose input is uint8 `[n, 28, 28]` and int32 labels `[n]`. With a
        dropout it is for packed clients, with `forward_in_training` as
        `clients.packed.train_locally` takes it.

    Raises:
        ValueError: an unknown activation or initializer; a dropout outside [0, 1).
    """
    activation = _activation(conv_activation)
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout must be in [0, 1), got {dropout}")
    shapes = [
        *((3, 3, 1, 32), (32,)),
        *((3, 3, 32, 64), (64,)),
        *((5 * 5 * 64, 10), (10,)),
    ]
    weights = initial_weights(shapes, initializer, seed)
    assert sum(w.size for w in weights) == 34_826

    def features(trainable, x):
        k1, b1, k2, b2 = trainable[:4]
        x = tf.cast(x[..., tf.newaxis], tf.float32) / 255.0
        x = _pool(activation(conv(x, k1, b1, "VALID")))
        x = _pool(activation(conv(x, k2, b2, "VALID")))
        return tf.reshape(x, [-1, 5 * 5 * 64])

    @tf.function
    def predict_on_batch(model_weights, x, training=True):
        if training and dropout:
            raise ValueError(
                "keras_mnist_cnn trains with dropout, which only packed clients do"
            )
        *_, kernel, bias = trainable = model_weights[0]
        return features(trainable, x) @ kernel + bias

    def forward_in_training(trainable, non_trainable, x, step_seed):
        *_, kernel, bias = trainable
        kept = tf.nn.experimental.stateless_dropout(
            features(trainable, x), dropout, step_seed
        )
        return kept @ kernel + bias, non_trainable

    model = classifier(weights, predict_on_batch, (28, 28))
    if dropout:
        model.forward_in_training = forward_in_training
    return model


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
        seed: of the initial weights.

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
    activation = _activation(conv_activation)
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

    @tf.function
    def predict_on_batch(model_weights, x, training=True):
        del training  # The same forward pass trains and predicts.
        (k1, b1, k2, b2, k3, b3, k4, b4, k5, b5, k6, b6), _ = model_weights
        x = tf.cast(x, tf.float32) / 255.0
        x = activation(conv(x, k1, b1))
        x = _pool(activation(conv(x, k2, b2)))
        x = activation(conv(x, k3, b3))
        x = _pool(activation(conv(x, k4, b4)))
        x = tf.reshape(x, [-1, inputs])
        return tf.nn.relu(x @ k5 + b5) @ k6 + b6

    return classifier(weights, predict_on_batch, (side, side, 3))


def _activation(name: str):
    check_choice("conv_activation", name, CONV_ACTIVATIONS)
    return tf.nn.relu if name == "relu" else tf.identity


def _pool(x):
    return tf.nn.max_pool2d(x, 2, 2, "VALID")
