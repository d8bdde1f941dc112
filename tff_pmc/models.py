"""The papers' models as `tff.learning.models.FunctionalModel`s.

Images enter as they are stored (uint8) and are scaled inside the forward pass,
so that only bytes travel to the worker. Initial weights are NumPy arrays, a
pure function of the seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tff_pmc._lazy import tf, tff

CONV_ACTIVATIONS = ("relu", "none")
INITIALIZERS = ("glorot_uniform", "glorot_normal")


def mnist_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """The CNN of PMC's MNIST experiments: 1,663,370 parameters.

    Two 5x5 convolutions (32, 64 channels, same padding), each followed by 2x2
    max pooling, a dense layer of 512 ReLU units and a linear layer of 10.

    Args:
        conv_activation: `relu` (as the field's re-implementations have it) or
            `none` (the paper names ReLU for the dense layer only, and the
            authors' published code has linear convolutions).
        initializer: `glorot_uniform` (Keras's default) or `glorot_normal` (the
            authors' code) for the kernels; biases start at zero.
        seed: of the initial weights.

    Returns:
        A model whose input is uint8 `[n, 28, 28]` (0 = background, 255 =
        ink) and int32 labels `[n]`, with the mean cross-entropy as its loss.

    Raises:
        ValueError: an unknown activation or initializer.
    """
    return _two_convolutions(512, 10, 1_663_370, conv_activation, initializer, seed)


def femnist_cnn(
    *,
    conv_activation: str = "relu",
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """The CNN of DA's FEMNIST experiment: 6,603,710 parameters.

    `mnist_cnn` with a dense layer of 2048 units and 62 classes (digits, upper
    and lower case), as LEAF has it; see there for arguments and errors.
    """
    return _two_convolutions(2048, 62, 6_603_710, conv_activation, initializer, seed)


MODELS = {"mnist_cnn": mnist_cnn, "femnist_cnn": femnist_cnn}
"""The papers' models by name."""


def num_parameters(model: tff.learning.models.FunctionalModel) -> int:
    """Number of trainable parameters."""
    return sum(int(np.size(w)) for w in model.initial_weights[0])


def _two_convolutions(units, classes, parameters, conv_activation, initializer, seed):
    check_choice("conv_activation", conv_activation, CONV_ACTIVATIONS)
    activation = tf.nn.relu if conv_activation == "relu" else tf.identity
    shapes = [
        *((5, 5, 1, 32), (32,)),
        *((5, 5, 32, 64), (64,)),
        *((7 * 7 * 64, units), (units,)),
        *((units, classes), (classes,)),
    ]
    weights = _initial_weights(shapes, initializer, seed)
    assert sum(w.size for w in weights) == parameters

    @tf.function
    def predict_on_batch(model_weights, x, training=True):
        del training  # The same forward pass trains and predicts.
        (k1, b1, k2, b2, k3, b3, k4, b4), _ = model_weights
        x = tf.cast(x[..., tf.newaxis], tf.float32) / 255.0
        x = tf.nn.max_pool2d(activation(_conv(x, k1, b1)), 2, 2, "VALID")
        x = tf.nn.max_pool2d(activation(_conv(x, k2, b2)), 2, 2, "VALID")
        x = tf.reshape(x, [-1, 7 * 7 * 64])
        return tf.nn.relu(x @ k3 + b3) @ k4 + b4

    return _classifier(weights, predict_on_batch, (28, 28))


def weights_type(model: tff.learning.models.FunctionalModel) -> tff.Type:
    """The TFF type of the model's `tff.learning.models.ModelWeights`."""
    return tff.to_type(
        tff.learning.models.ModelWeights(
            *(
                tuple(
                    tff.TensorType(np.asarray(w).dtype.type, np.shape(w)) for w in part
                )
                for part in model.initial_weights
            )
        )
    )


def _classifier(weights, predict_on_batch, element_shape: Sequence[int]):
    @tf.function
    def loss(output, label, sample_weight=None):
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(label, output)
        if sample_weight is not None:
            return tf.reduce_sum(losses * sample_weight) / tf.reduce_sum(sample_weight)
        return tf.reduce_mean(losses)

    return tff.learning.models.FunctionalModel(
        initial_weights=(tuple(weights), ()),
        predict_on_batch_fn=predict_on_batch,
        loss_fn=loss,
        input_spec=(
            tf.TensorSpec([None, *element_shape], tf.uint8),
            tf.TensorSpec([None], tf.int32),
        ),
    )


def _conv(x, kernel, bias):
    return tf.nn.conv2d(x, kernel, strides=1, padding="SAME") + bias


def _initial_weights(shapes, initializer: str, seed: int) -> list[np.ndarray]:
    """Glorot and Bengio's (2010) initial kernels, drawn with NumPy."""
    check_choice("initializer", initializer, INITIALIZERS)
    generator = np.random.default_rng(seed)
    weights = []
    for shape in shapes:
        if len(shape) == 1:
            weights.append(np.zeros(shape, np.float32))
            continue
        receptive_field = int(np.prod(shape[:-2]))
        fan_sum = receptive_field * (shape[-2] + shape[-1])
        if initializer == "glorot_uniform":
            limit = np.sqrt(6.0 / fan_sum)
            kernel = generator.uniform(-limit, limit, shape)
        else:
            kernel = _truncated_normal(generator, np.sqrt(2.0 / fan_sum), shape)
        weights.append(kernel.astype(np.float32))
    return weights


def _truncated_normal(generator, deviation: float, shape) -> np.ndarray:
    """A normal cut at two deviations, rescaled to keep its deviation, as Keras."""
    kernel = generator.standard_normal(shape)
    outside = np.abs(kernel) > 2
    while outside.any():
        kernel[outside] = generator.standard_normal(int(outside.sum()))
        outside = np.abs(kernel) > 2
    return kernel * deviation / 0.87962566103423978


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raises a `ValueError` that names the option when `value` is no choice."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")
