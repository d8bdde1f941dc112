"""Layers, initial weights, losses and predictions that the papers' models share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional

import numpy as np

from tff_pmc._lazy import tf, tff
from tff_pmc.models.model_settings import CONV_ACTIVATIONS, INITIALIZERS
from tff_pmc.models.positions import (
    count_labels,
    has_positions,
    mean_counted,
    select_counted,
)

BATCH_SIZE = 500
"""The default number of examples in a forward pass."""


def weights_type(model: tff.learning.models.FunctionalModel) -> tff.Type:
    """Returns the TFF type of the model's `tff.learning.models.ModelWeights`."""
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
    label_shape: Sequence[int] = (),
    non_trainable: Sequence[np.ndarray] = (),
    forward_in_training: Optional[Callable[..., Any]] = None,
    local_weights: Sequence[np.ndarray] = (),
    weight_names: Sequence[str] = (),
    metrics_fns: Optional[tuple[Any, Any, Any]] = None,
) -> Any:
    """Builds a model of inputs and labels whose loss is the mean cross-entropy.

    Args:
        weights: the initial trainable weights, arrays.
        predict_on_batch: `((trainable, non_trainable), x, training) -> scores`.
        element_shape: the shape of one input.
        element_dtype: the type of the inputs, for images uint8.
        label_shape: the shape of the labels of one input: (), one label, or (T,), a
            label for each position, of which those that count are averaged.
        non_trainable: the initial non-trainable weights.
        forward_in_training: see `PackedModel`.
        local_weights: see `PackedModel`.
        weight_names: see `PackedModel`.
        metrics_fns: see `PackedModel`.

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
        if label_shape:
            return mean_counted(example_losses(*select_counted(output, label)))
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
            tf.TensorSpec([None, *label_shape], tf.int32),
        ),
        example_losses=example_losses,
        forward_in_training=forward_in_training,
        local_weights=local_weights,
        weight_names=weight_names,
        metrics_fns=metrics_fns,
    )


class Cnn(NamedTuple):
    """A CNN: convolutions in stages, each ended by 2x2 max pooling, then dense layers.

    Attributes:
        image: the shape of one square image, `(height, width)` or with 3 colors.
        side: the side of the convolutions' kernels, which are squares.
        stages: the channels of each convolution, by stage.
        units: the units of each dense layer; all but the last have ReLU. If the last
            layer has one unit, it is a logit z, and the two scores are (0, z).
        parameters: the number of parameters.
        padding: "SAME", the default, or "VALID" for convolutions that shrink images.
    """

    image: tuple[int, ...]
    side: int
    stages: tuple[tuple[int, ...], ...]
    units: tuple[int, ...]
    parameters: int
    padding: str = "SAME"

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return max(2, self.units[-1])

    @property
    def weight_names(self) -> list[str]:
        """The names of the weights: the kernel and the bias of each layer in turn."""
        convolutions = sum(map(len, self.stages))
        layers = [f"conv_{number + 1}" for number in range(convolutions)]
        layers += [f"dense_{number + 1}" for number in range(len(self.units))]
        return [f"{layer}/{part}" for layer in layers for part in ("kernel", "bias")]

    def initial_weights(self, initializer: str, seed: int) -> list[np.ndarray]:
        """Draws the initial kernel and bias of each layer in turn."""
        size, _, depth = (*self.image, 1)[:3]
        shapes: list[tuple[int, ...]] = []
        for stage in self.stages:
            for channels in stage:
                shapes += [(self.side, self.side, depth, channels), (channels,)]
                size -= self.side - 1 if self.padding == "VALID" else 0
                depth = channels
            size //= 2
        width = size * size * depth
        for units in self.units:
            shapes += [(width, units), (units,)]
            width = units
        weights = initial_weights(shapes, initializer, seed)
        assert sum(w.size for w in weights) == self.parameters
        return weights

    def forward(
        self,
        weights: Sequence[Any],
        x: Any,
        activation: Callable[[Any], Any],
        transform_input: Callable[[Any, int], Any] = lambda x, index: x,
    ) -> Any:
        """Computes scores; `transform_input(x, index)` changes dense layers' inputs."""
        layers = list(zip(weights[::2], weights[1::2]))
        x = x if len(self.image) == 3 else x[..., tf.newaxis]
        x = tf.cast(x, tf.float32) / 255.0
        for stage in self.stages:
            for _ in stage:
                kernel, bias = layers.pop(0)
                x = activation(tf.nn.conv2d(x, kernel, 1, self.padding) + bias)
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(x, [-1, layers[0][0].shape[0]])
        for index, (kernel, bias) in enumerate(layers):
            x = transform_input(x, index) @ kernel + bias
            x = tf.nn.relu(x) if index + 1 < len(layers) else x
        return x if self.units[-1] > 1 else tf.concat([tf.zeros_like(x), x], axis=1)

    def classifier(
        self,
        conv_activation: str,
        initializer: str,
        seed: int,
        *,
        name: str = "",
        **dropouts: float,
    ) -> Any:
        """Builds the model of the network, with dropout before its first dense layers.

        `dropouts` are dropout rates by option name, one for each dense layer from the
        first. With any of them the model trains packed clients only. `name` is its name
        in errors.
        """
        activation = get_activation(conv_activation)
        for option, rate in dropouts.items():
            check_share(option, rate)
        rates = tuple(dropouts.values())

        @tf.function(autograph=False)
        def predict_on_batch(model_weights, x, training=True):
            if training and any(rates):
                raise ValueError(
                    f"{name} trains with dropout, which only packed clients support: "
                    "train packs of clients, or set its dropout to 0"
                )
            return self.forward(model_weights[0], x, activation)

        def forward_in_training(trainable, non_trainable, x, step_seed):
            def drop(x, index):
                if index >= len(rates):
                    return x
                key = tf.random.experimental.stateless_fold_in(step_seed, index)
                return tf.nn.experimental.stateless_dropout(x, rates[index], key)

            return self.forward(trainable, x, activation, drop), non_trainable

        return classifier(
            self.initial_weights(initializer, seed),
            predict_on_batch,
            self.image,
            forward_in_training=forward_in_training if any(rates) else None,
            weight_names=self.weight_names,
        )


def get_activation(name: str) -> Callable[[Any], Any]:
    """Returns the activation of convolutions by name, or raises a `ValueError`."""
    check_choice("conv_activation", name, CONV_ACTIVATIONS)
    return tf.nn.relu if name == "relu" else tf.identity


def check_share(name: str, share: float) -> None:
    """Raises a `ValueError` if a dropout rate is not in [0, 1)."""
    if not 0 <= share < 1:
        raise ValueError(f"{name} must be in [0, 1), got {share}")


def initial_weights(shapes, initializer: str, seed: int) -> list[np.ndarray]:
    """Draws Glorot and Bengio's (2010) initial kernels with NumPy."""
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
    """Draws from a normal truncated at two deviations and rescaled, as Keras does."""
    kernel = generator.standard_normal(shape)
    outside = np.abs(kernel) > 2
    while outside.any():
        kernel[outside] = generator.standard_normal(int(outside.sum()))
        outside = np.abs(kernel) > 2
    return kernel * deviation / 0.87962566103423978


def check_choice(name: str, value: str, choices: Sequence[str]) -> None:
    """Raises a `ValueError` if a value is not one of the choices.

    Args:
        name: the name of the option, for the message.
        value: the value.
        choices: the allowed values.
    """
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}; got {value!r}")


def cast_to_common_float(floats: Sequence[Any]) -> list[Any]:
    """Casts float tensors to float64 if one of them is float64, else to float32."""
    dtype = "float64" if any(t.dtype.size > 4 for t in floats) else "float32"
    return [tf.cast(t, dtype) for t in floats]


def reduce_range(
    size: Any, step: Any, initial: Any, body: Callable[[Any, Any], Any]
) -> Any:
    """Reduces over 0, step, 2 step, ... below the size, in a loop of the graph.

    `body(start, carry)` returns the next carry; `initial` is the first carry, and the
    result for a size of 0. It uses `tf.while_loop`, because autograph's conversion of
    `for` loops takes half of the time to build a process.
    """
    size = tf.convert_to_tensor(size)
    step = tf.cast(step, size.dtype)
    _, carry = tf.while_loop(
        lambda start, _: start < size,
        lambda start, carry: (start + step, body(start, carry)),
        (tf.zeros_like(size), initial),
    )
    return carry


def reduce_predictions(
    model: Any,
    weights: Any,
    x: Any,
    size: Any,
    initial: Any,
    add: Callable[[Any, slice, Any], Any],
    *,
    batch_size: int = BATCH_SIZE,
) -> Any:
    """Predicts batch by batch and reduces the outputs.

    `size` is the number of inputs x, a tensor if it is unknown while tracing; `initial`
    is the first carry, and the result for no inputs; `add(carry, rows, output)` returns
    the next carry with the output on the batch `x[rows]`.
    """
    parameters = (weights.trainable, weights.non_trainable)

    def add_batch(start: Any, carry: Any) -> Any:
        rows = slice(start, start + batch_size)
        return add(carry, rows, model.predict_on_batch(parameters, x[rows], False))

    return reduce_range(size, batch_size, initial, add_batch)


def mean_of_batches(
    model: Any, weights: Any, x: Any, y: Any, batch_metric: Callable[[Any, Any], Any]
) -> Any:
    """Averages `batch_metric(output, y)`, a mean over each batch, over all examples.

    `output` is the model's `tff.learning.models.BatchOutput`. With a label per position
    the means are over the positions that count. Without examples the result is 0.
    """

    def add(carry: Any, rows: slice, predictions: Any) -> Any:
        total, counted = carry
        labels = y[rows]
        loss = model.loss(predictions, labels)
        output = tff.learning.models.BatchOutput(loss, predictions, tf.shape(labels)[0])
        mean = tf.cast(batch_metric(output, labels), "float32")
        count = count_labels(predictions, labels)
        return total + mean * tf.cast(count, "float32"), counted + count

    initial = tf.constant(0.0), tf.constant(0)
    total, counted = reduce_predictions(model, weights, x, tf.shape(y)[0], initial, add)
    return tf.math.divide_no_nan(total, tf.cast(counted, "float32"))


def count_correct(output: Any, labels: Any) -> Any:
    """Returns the number of labels of each example that are predicted, int32 [n].

    It is 0 or 1; with a label per position, the number of the positions that count and
    have the highest score at their label.
    """
    correct = tf.equal(predicted_labels(output), tf.cast(labels, tf.int32))
    if not has_positions(output, labels):
        return tf.cast(correct, tf.int32)
    positions = range(1, labels.shape.rank)
    return tf.math.count_nonzero(correct & (labels >= 0), positions, dtype=tf.int32)


def predicted_labels(output: Any) -> Any:
    """Returns the class of the highest score for each example or position, int32 [n].

    It is -1, which is not a label, if a score is NaN, because TensorFlow's argmax would
    return class 0. Raises a `ValueError` if the output has no score for each class.
    """
    shape = tf.convert_to_tensor(output).shape
    if shape.rank in (0, 1) or shape[-1:] == [1]:
        raise ValueError(
            f"the model's output has the shape {shape}, but must have a score for each "
            "class: build a last layer of one unit per class, also for two classes"
        )
    labels = tf.argmax(output, axis=-1, output_type=tf.int32)
    return tf.where(tf.reduce_any(tf.math.is_nan(output), axis=-1), -1, labels)
