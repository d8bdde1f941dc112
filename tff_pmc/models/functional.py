"""The parts that the papers' models share: initial weights, loss, types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, Optional

import numpy as np

from tff_pmc._lazy import tf, tff

CONV_ACTIVATIONS = ("relu", "none")
INITIALIZERS = ("glorot_uniform", "glorot_normal")


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


def classifier(
    weights: Sequence[np.ndarray],
    predict_on_batch: Callable[..., Any],
    element_shape: Sequence[int],
    *,
    element_dtype: str = "uint8",
    non_trainable: Sequence[np.ndarray] = (),
    forward_in_training: Optional[Callable[..., Any]] = None,
    local_weights: Sequence[np.ndarray] = (),
) -> Any:
    """A model of inputs and labels with the mean cross-entropy as its loss.

    Args:
        weights: the initial trainable weights, arrays.
        predict_on_batch: `((trainable, non_trainable), x, training) -> scores`.
        element_shape: the shape of one input.
        element_dtype: the type of the inputs, for images uint8.
        non_trainable: the initial non-trainable weights.
        forward_in_training: see `PackedModel`.
        local_weights: see `PackedModel`.

    Returns:
        A `PackedModel`. Its loss is the mean of its `example_losses`.
    """
    # Imported here, because it imports TensorFlow.
    from tff_pmc.models.tff_types.packed_model import PackedModel

    @tf.function(autograph=False)
    def example_losses(output, label):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(label, output)

    @tf.function(autograph=False)
    def loss(output, label, sample_weight=None):
        losses = example_losses(output, label)
        if sample_weight is not None:
            return tf.reduce_sum(losses * sample_weight) / tf.reduce_sum(sample_weight)
        return tf.reduce_mean(losses)

    return PackedModel(
        initial_weights=(tuple(weights), tuple(non_trainable)),
        predict_on_batch_fn=predict_on_batch,
        loss_fn=loss,
        input_spec=(
            tf.TensorSpec([None, *element_shape], element_dtype),
            tf.TensorSpec([None], tf.int32),
        ),
        example_losses=example_losses,
        forward_in_training=forward_in_training,
        local_weights=local_weights,
    )


def conv(x, kernel, bias, padding: str = "SAME"):
    """A convolution; it keeps the image's size, unless the padding is "VALID"."""
    return tf.nn.conv2d(x, kernel, strides=1, padding=padding) + bias


def activation_of(name: str):
    """The activation of convolutions by its name, one of `CONV_ACTIVATIONS`.

    Raises:
        ValueError: there is none of that name.
    """
    check_choice("conv_activation", name, CONV_ACTIVATIONS)
    return tf.nn.relu if name == "relu" else tf.identity


def max_pool(x):
    """The maxima of windows of 2 x 2 that do not overlap."""
    return tf.nn.max_pool2d(x, 2, 2, "VALID")


def initial_weights(shapes, initializer: str, seed: int) -> list[np.ndarray]:
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
    """Draws from a normal cut at two deviations and rescaled, as Keras does."""
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
