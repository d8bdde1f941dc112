"""The models of LEAF's data sets: two softmax regressions and two stacked LSTMs.

LEAF (Caldas et al. 2018, "LEAF: A Benchmark for Federated Settings") publishes them;
FedProx (Li et al. 2020) and q-FFL use the first on their synthetic federations.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from typing import Any, Callable, ClassVar

from declared_settings import SettingError
from leaf_data.datasets.words import TweetSettings, VocabularySettings
from tff_pmc._lazy import tf, tff
from tff_pmc.models.functional import classifier, initial_weights
from tff_pmc.models.model_settings import MODELS, ModelSettings

_SYNTHETIC = (60, 10)  # Inputs and classes.
_LETTERS, _WINDOW, _EMBEDDING, _UNITS = 80, 80, 8, 256
_POSITIONS = 10  # Of Reddit.
_LSTM_NAMES = (
    "embedding",
    *(f"lstm_{n}/{part}" for n in (1, 2) for part in ("kernel", "bias")),
    *("dense/kernel", "dense/bias"),
)


def softmax_regression(
    *, initializer: str = "glorot_uniform", seed: int = 0
) -> tff.learning.models.FunctionalModel:
    """Builds the softmax regression of FedProx's synthetic data: 610 parameters.

    The scores are W x + b. As in FedProx's published code, W is drawn, b starts at
    zero, and the loss has no penalty (the code declares one and does not add it).

    Args:
        initializer: the distribution of W: `glorot_uniform`, as in the published code,
            or `glorot_normal`.
        seed: the seed of W.

    Returns:
        A model whose input is float32 `[n, 60]` and int32 labels `[n]`, of 10 classes,
        with the mean cross-entropy as its loss.

    Raises:
        ValueError: an unknown initializer.
    """

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        kernel, bias = model_weights[0]
        return x @ kernel + bias

    return classifier(
        initial_weights([_SYNTHETIC, _SYNTHETIC[1:]], initializer, seed),
        predict_on_batch,
        _SYNTHETIC[:1],
        element_dtype="float32",
        weight_names=("dense/kernel", "dense/bias"),
    )


def bag_of_words(
    *,
    vocabulary_size: int = 10_000,
    max_words: int = 25,
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Builds LEAF's bag of words for Sent140, a softmax regression: 20,002 parameters.

    The scores are W x + b, where x has the number of times that each word of the
    vocabulary occurs among the first `max_words`. In LEAF's code (`bag_log_reg.py`) x
    counts the words of the whole tweet, other words and padding have no weight, and W
    and b are drawn from a normal distribution.

    Args:
        vocabulary_size: the number of ids.
        max_words: the number of ids in an input.
        initializer: the distribution of W; b starts at zero. See `softmax_regression`.
        seed: the seed of W.

    Returns:
        A model whose input is int32 `[n, max_words]`, the ids of words, and int32
        labels `[n]`, 0 or 1, with the mean cross-entropy as its loss.

    Raises:
        ValueError: an unknown initializer.
    """

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        kernel, bias = model_weights[0]
        # As the product with the counts, without a column for each word.
        return tf.reduce_sum(tf.gather(kernel, x), axis=1) + bias

    return classifier(
        initial_weights([(vocabulary_size, 2), (2,)], initializer, seed),
        predict_on_batch,
        (max_words,),
        element_dtype="int32",
        weight_names=("dense/kernel", "dense/bias"),
    )


def stacked_lstm(
    *, initializer: str = "glorot_uniform", seed: int = 0
) -> tff.learning.models.FunctionalModel:
    """Builds LEAF's stacked LSTM for Shakespeare: 817,872 parameters.

    An embedding of 80 letters in 8 dimensions, two LSTM layers of 256 units, and a
    linear layer of 80 on the last output of the second. As in LEAF's code, the cells
    are those of TensorFlow's `BasicLSTMCell`: with z = (x, h) K + b in four parts, in
    the order i, j, f, o,

      c' = sigmoid(f + 1) c + sigmoid(i) tanh(j),   h' = sigmoid(o) tanh(c').

    Args:
        initializer: the distribution of the embedding and the kernels:
            `glorot_uniform`, as in LEAF's code, or `glorot_normal`; biases start at
            zero.
        seed: the seed of the initial weights.

    Returns:
        A model whose input is int32 `[n, 80]`, the ids of letters, and int32 labels
        `[n]`, the id of the next letter, with the mean cross-entropy as its loss.

    Raises:
        ValueError: an unknown initializer.
    """
    shapes = _lstm_shapes(_LETTERS, _EMBEDDING)

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        return _lstm_scores(model_weights[0], x, training)

    return classifier(
        initial_weights(shapes, initializer, seed),
        predict_on_batch,
        (_WINDOW,),
        element_dtype="int32",
        weight_names=_LSTM_NAMES,
    )


def reddit_lstm(
    *,
    vocabulary_size: int = 10_000,
    initializer: str = "glorot_uniform",
    seed: int = 0,
) -> tff.learning.models.FunctionalModel:
    """Builds LEAF's stacked LSTM for Reddit: 6,180,624 parameters.

    An embedding in 256 dimensions, two LSTM layers of 256 units, and a linear layer on
    the outputs of the second at all positions. The cells are those of `stacked_lstm`
    with sigmoid(f) instead of sigmoid(f + 1), as in LEAF's code. That code also draws
    all weights, biases included, uniformly from -0.1 to 0.1, clips the gradient's norm
    to 5, begins each batch of an epoch with the state after the batch before, and
    averages a batch's losses at each position first, then over the positions. None of
    these is done here.

    Args:
        vocabulary_size: the number of ids.
        initializer: the distribution of the embedding and the kernels; biases start at
            zero. See `stacked_lstm`.
        seed: the seed of the initial weights.

    Returns:
        A model whose input is int32 `[n, 10]`, the ids of tokens, and int32 labels
        `[n, 10]`, the id of the next token at each position, or -1 for a position that
        does not count. Its scores are float32 `[n, 10, vocabulary_size]`, and its loss
        is the mean cross-entropy over the positions that count.

    Raises:
        ValueError: an unknown initializer.
    """
    shapes = _lstm_shapes(vocabulary_size, _UNITS)

    @tf.function(autograph=False)
    def predict_on_batch(model_weights, x, training=True):
        return _lstm_scores(
            model_weights[0], x, training, forget_bias=0.0, at_all_steps=True
        )

    return classifier(
        initial_weights(shapes, initializer, seed),
        predict_on_batch,
        (_POSITIONS,),
        element_dtype="int32",
        label_shape=(_POSITIONS,),
        weight_names=_LSTM_NAMES,
    )


def _lstm_shapes(num_ids: int, embedding_size: int) -> list[tuple[int, ...]]:
    """Returns the shapes of an embedding, two LSTM layers, and a layer of scores."""
    shapes: list[tuple[int, ...]] = [(num_ids, embedding_size)]
    for width in (embedding_size, _UNITS):
        shapes += [(width + _UNITS, 4 * _UNITS), (4 * _UNITS,)]
    return [*shapes, (_UNITS, num_ids), (num_ids,)]


def _lstm_scores(
    weights: Sequence[Any],
    x: Any,
    training: bool,
    *,
    forget_bias: float = 1.0,
    at_all_steps: bool = False,
) -> Any:
    """Computes the scores of a stacked LSTM of any number of layers and any sizes.

    They are those after the last step, [n, classes], or at all, [n, steps, classes].
    """
    embedding, *layers, kernel, bias = weights
    hidden = tf.gather(embedding, tf.transpose(x))  # [steps, n, width]
    for layer_kernel, layer_bias in zip(layers[::2], layers[1::2]):
        width = hidden.shape[2]
        # The inputs' part of all steps in one product, which a loop would repeat.
        gate_inputs = tf.tensordot(hidden, layer_kernel[:width], 1) + layer_bias
        recur = _recur_in_training if training else _recur
        hidden = recur(gate_inputs, layer_kernel[width:], forget_bias)
    if at_all_steps:
        return tf.tensordot(tf.transpose(hidden, [1, 0, 2]), kernel, 1) + bias
    return hidden[-1] @ kernel + bias


def _recur(gate_inputs: Any, kernel: Any, forget_bias: float) -> Any:
    """Computes the outputs [steps, n, units] of an LSTM layer from its gates' inputs.

    Args:
        gate_inputs: what inputs and bias add to the gates, [steps, n, 4 units].
        kernel: the recurrent kernel, [units, 4 units].
        forget_bias: what is added to the forget gate f.
    """

    def choose(hidden: Any, cell: Any, gates: Any) -> tuple[Any, ...]:
        return (hidden,)

    return _run_cells(gate_inputs, kernel, forget_bias, choose)[0]


def _recur_in_training(gate_inputs: Any, kernel: Any, forget_bias: float) -> Any:
    """`_recur` with a gradient that is a third faster than TensorFlow's.

    TensorFlow adds up the kernel's gradient step by step; here it is one product of all
    steps' outputs and derivatives.
    """

    @tf.custom_gradient
    def recur(gate_inputs: Any, kernel: Any) -> tuple[Any, Callable[[Any], Any]]:
        hidden, cells, gates = _run_cells(
            gate_inputs, kernel, forget_bias, lambda *all_of: all_of
        )

        def gradient(upstream: Any) -> tuple[Any, Any]:
            return _recur_gradient(kernel, hidden, cells, gates, upstream)

        return hidden, gradient

    return recur(gate_inputs, kernel)


def _run_cells(
    gate_inputs: Any,
    kernel: Any,
    forget_bias: float,
    choose: Callable[..., tuple[Any, ...]],
) -> list[Any]:
    """Runs an LSTM layer, and stacks over the steps what `choose` returns.

    `choose(h, c, gates)` returns some of its arguments: the step's output, its cell
    state, and the four gates' values, concatenated, after their activations.
    """
    units = kernel.shape[0]
    num_steps = gate_inputs.shape[0]
    zeros = tf.zeros([tf.shape(gate_inputs)[1], units])
    arrays = choose(*(_step_array(num_steps, n * units) for n in (1, 1, 4)))

    def step(index: Any, hidden: Any, cell: Any, arrays: Any) -> Any:
        i, j, f, o = tf.split(gate_inputs[index] + hidden @ kernel, 4, axis=1)
        i, j, f, o = (
            tf.sigmoid(i),
            tf.tanh(j),
            tf.sigmoid(f + forget_bias),
            tf.sigmoid(o),
        )
        cell = f * cell + i * j
        hidden = o * tf.tanh(cell)
        values = choose(hidden, cell, tf.concat([i, j, f, o], axis=1))
        arrays = tuple(a.write(index, value) for a, value in zip(arrays, values))
        return index + 1, hidden, cell, arrays

    loop_vars = tf.constant(0), zeros, zeros, arrays
    *_, arrays = tf.while_loop(lambda index, *_: index < num_steps, step, loop_vars)
    return [array.stack() for array in arrays]


def _recur_gradient(
    kernel: Any, hidden: Any, cells: Any, gates: Any, upstream: Any
) -> tuple[Any, Any]:
    """Computes the gradients by the gates' inputs and by the recurrent kernel."""
    num_steps, units = hidden.shape[0], kernel.shape[0]
    zeros = tf.zeros_like(hidden[0])
    tanh_cells = tf.tanh(cells)
    transposed = tf.transpose(kernel)
    previous_cells = tf.concat([zeros[tf.newaxis], cells[:-1]], axis=0)
    previous_hidden = tf.concat([zeros[tf.newaxis], hidden[:-1]], axis=0)

    def step(index: Any, d_hidden: Any, d_cell: Any, array: Any) -> Any:
        i, j, f, o = tf.split(gates[index], 4, axis=1)
        tanh_cell = tanh_cells[index]
        d_hidden += upstream[index]
        d_cell += d_hidden * o * (1.0 - tanh_cell * tanh_cell)
        d_gates = tf.concat(
            [
                d_cell * j * i * (1.0 - i),
                d_cell * i * (1.0 - j * j),
                d_cell * previous_cells[index] * f * (1.0 - f),
                d_hidden * tanh_cell * o * (1.0 - o),
            ],
            axis=1,
        )
        array = array.write(index, d_gates)
        return index - 1, d_gates @ transposed, d_cell * f, array

    array = _step_array(num_steps, 4 * units)
    loop_vars = tf.constant(num_steps - 1), zeros, zeros, array
    *_, array = tf.while_loop(lambda index, *_: index >= 0, step, loop_vars)
    d_gates = array.stack()
    d_kernel = tf.matmul(
        tf.reshape(previous_hidden, [-1, units]),
        tf.reshape(d_gates, [-1, 4 * units]),
        transpose_a=True,
    )
    return d_gates, d_kernel


def _step_array(num_steps: int, width: int) -> Any:
    """Returns an empty array of a [n, width] for each step."""
    return tf.TensorArray(tf.float32, num_steps, element_shape=[None, width])


@dataclasses.dataclass(frozen=True)
class LeafModelSettings(ModelSettings):
    """The settings of LEAF's models, which have no convolutions."""

    def check_given(self, flags: Collection[str]) -> None:
        """Raises a `SettingError` if an activation of convolutions was given."""
        super().check_given(flags)
        if "conv_activation" in flags:
            raise SettingError(
                "--conv_activation has no effect on a model without convolutions: "
                "remove it, or choose another --model"
            )

    def build(self) -> Any:
        """Builds the model, a `tff.learning.models.FunctionalModel`."""
        options = dataclasses.asdict(self)
        del options["conv_activation"]
        return type(self).function(**options)


@dataclasses.dataclass(frozen=True)
class SoftmaxRegression(LeafModelSettings):
    """The softmax regression of FedProx's synthetic data: 610 parameters."""

    function: ClassVar[Callable[..., Any]] = softmax_regression
    element_shape: ClassVar[tuple[int, ...]] = _SYNTHETIC[:1]
    element_dtype: ClassVar[str] = "float32"
    num_classes: ClassVar[int] = _SYNTHETIC[1]
    default_of: ClassVar[str] = "synthetic"


@dataclasses.dataclass(frozen=True)
class BagOfWords(TweetSettings, VocabularySettings, LeafModelSettings):
    """LEAF's bag of words for Sent140, a softmax regression: 20,002 parameters."""

    function: ClassVar[Callable[..., Any]] = bag_of_words
    element_shape: ClassVar[tuple[int, ...]] = (25,)
    element_dtype: ClassVar[str] = "int32"
    num_classes: ClassVar[int] = 2
    num_ids: ClassVar[int] = 10_000
    default_of: ClassVar[str] = "sent140"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "element_shape", (self.max_words,))
        object.__setattr__(self, "num_ids", self.vocabulary_size)


@dataclasses.dataclass(frozen=True)
class StackedLstm(LeafModelSettings):
    """LEAF's stacked LSTM for Shakespeare: 817,872 parameters."""

    function: ClassVar[Callable[..., Any]] = stacked_lstm
    element_shape: ClassVar[tuple[int, ...]] = (_WINDOW,)
    element_dtype: ClassVar[str] = "int32"
    num_classes: ClassVar[int] = _LETTERS
    num_ids: ClassVar[int] = _LETTERS
    default_of: ClassVar[str] = "shakespeare"


@dataclasses.dataclass(frozen=True)
class RedditLstm(VocabularySettings, LeafModelSettings):
    """LEAF's stacked LSTM for Reddit: 6,180,624 parameters."""

    function: ClassVar[Callable[..., Any]] = reddit_lstm
    element_shape: ClassVar[tuple[int, ...]] = (_POSITIONS,)
    element_dtype: ClassVar[str] = "int32"
    num_classes: ClassVar[int] = 10_000
    num_ids: ClassVar[int] = 10_000
    default_of: ClassVar[str] = "reddit"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "num_classes", self.vocabulary_size)
        object.__setattr__(self, "num_ids", self.vocabulary_size)


MODELS.register("bag_of_words", BagOfWords)
MODELS.register("reddit_lstm", RedditLstm)
MODELS.register("softmax_regression", SoftmaxRegression)
MODELS.register("stacked_lstm", StackedLstm)
