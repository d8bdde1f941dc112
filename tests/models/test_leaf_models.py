"""The models of LEAF's data sets: scores, gradients, training, which data have them."""

from __future__ import annotations

import numpy as np
import pytest

import leaf_data
from declared_settings import SettingError
from tff_pmc import models
from tff_pmc._lazy import tf, tff
from tff_pmc.experiments.experiment import settings
from tff_pmc.models import leaf_models
from tff_pmc.settings.training_settings import LocalTraining

LAST_STEP = {}
ALL_STEPS = {"forget_bias": 0.0, "at_all_steps": True}  # As for Reddit.


def lstm_scores(weights, x, training, **options):
    score = tf.function(leaf_models._lstm_scores, autograph=False)
    return score(weights, tf.constant(x), training, **options)


def small_lstm():
    """Weights of an LSTM of two layers of 3 units, of 5 letters in 2 dimensions."""
    random = np.random.default_rng(3)
    shapes = [(5, 2), (2 + 3, 12), (12,), (3 + 3, 12), (12,), (3, 4), (4,)]
    weights = [random.normal(0, 0.7, shape).astype(np.float32) for shape in shapes]
    return weights, np.array([[0, 4, 2, 2], [1, 3, 0, 4]], np.int32)


def sigmoid(z):
    return 1 / (1 + np.exp(-z))


def lstm_layer(inputs, kernel, bias, forget_bias):
    """An LSTM layer on one sequence, from the equations, a unit at a time."""
    units = len(bias) // 4
    hidden, cell = [0.0] * units, [0.0] * units
    outputs = []
    for vector in inputs:
        joined = [*vector, *hidden]
        gates = [
            sum(value * kernel[row][column] for row, value in enumerate(joined))
            + bias[column]
            for column in range(4 * units)
        ]
        for unit in range(units):
            enter, new, forget, leave = gates[unit::units]
            kept = sigmoid(forget + forget_bias) * cell[unit]
            cell[unit] = kept + sigmoid(enter) * np.tanh(new)
            hidden[unit] = sigmoid(leave) * np.tanh(cell[unit])
        outputs.append([*hidden])
    return outputs


@pytest.mark.parametrize("options", [LAST_STEP, ALL_STEPS])
@pytest.mark.parametrize("training", [False, True])
def test_the_lstm_scores_by_its_equations(training, options):
    weights, x = small_lstm()
    embedding, *layers, kernel, bias = [array.astype(np.float64) for array in weights]
    expected = []
    for text in x:
        outputs = [embedding[letter] for letter in text]
        for number in (0, 2):
            forget_bias = options.get("forget_bias", 1.0)
            outputs = lstm_layer(outputs, *layers[number : number + 2], forget_bias)
        outputs = outputs if options else outputs[-1]
        expected.append(np.array(outputs) @ kernel + bias)
    scores = lstm_scores(weights, x, training, **options)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-6)
    assert np.ptp(expected, axis=0).max() > 0.01


@pytest.mark.parametrize("options", [LAST_STEP, ALL_STEPS])
def test_the_gradient_in_training_is_that_of_tensorflow(options):
    weights, x = small_lstm()
    gradients = []
    for training in (False, True):
        tensors = [tf.constant(array) for array in weights]
        with tf.GradientTape() as tape:
            tape.watch(tensors)
            scores = lstm_scores(tensors, x, training, **options)
            loss = tf.reduce_sum(tf.sin(scores))
        gradients.append(
            [tf.convert_to_tensor(g).numpy() for g in tape.gradient(loss, tensors)]
        )
    for expected, gradient in zip(*gradients):
        np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)
        assert np.abs(expected).max() > 1e-3


@pytest.mark.parametrize("name", ["softmax_regression", "stacked_lstm"])
def test_a_client_trains_as_a_loop_does(name):
    """An epoch of packed training without shuffling is a step on all examples."""
    from tff_pmc.clients.packed_training import train_locally

    model = models.MODELS[name](seed=1).build()
    random = np.random.default_rng(2)
    (num_inputs,) = models.MODELS[name].element_shape
    if name == "stacked_lstm":
        x = random.integers(0, 80, (3, num_inputs), dtype=np.int32)
    else:
        x = random.normal(size=(3, num_inputs)).astype(np.float32)
    y = np.array([0, 9, 3], np.int32)

    initial = tff.learning.models.ModelWeights(*model.initial_weights)

    @tf.function(autograph=False)
    def train(weights, x, y):
        return train_locally(
            model,
            tff.learning.optimizers.build_sgdm(0.5),
            weights,
            x,
            y,
            training=LocalTraining(local_epochs=1, batch_size=0),
            seed=tf.constant([1, 2]),
        )

    @tf.function(autograph=False)
    def gradients(weights, x, y):
        with tf.GradientTape() as tape:
            tape.watch(weights)
            loss = model.loss(model.predict_on_batch((weights, ()), x, False), y)
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, weights)]

    trained, loss, _ = train(initial, x, y)
    weights = tuple(tf.constant(array) for array in initial.trainable)
    for start, end, step in zip(weights, trained.trainable, gradients(weights, x, y)):
        np.testing.assert_allclose(end, start - 0.5 * step, rtol=1e-5, atol=1e-6)
    assert 0 < loss < 3 * 2 * np.log(80)


def test_softmax_regression_is_a_product_and_a_sum():
    model = models.softmax_regression(seed=4)
    kernel, bias = model.initial_weights[0]
    assert kernel.shape == (60, 10) and not bias.any() and np.ptp(kernel) > 0.1
    x = np.random.default_rng(5).normal(size=(3, 60)).astype(np.float32)
    bias = np.arange(10, dtype=np.float32)
    scores = model.predict_on_batch(((kernel, bias), ()), x, True)
    np.testing.assert_allclose(scores, x @ kernel + bias, rtol=1e-5, atol=1e-5)


def test_a_bag_of_words_counts_the_words():
    chosen = settings(
        "baselines", {"dataset": "sent140", "vocabulary_size": 7, "max_words": 4}
    )
    assert (chosen.model_name, chosen.model.element_shape) == ("bag_of_words", (4,))
    model = chosen.model.build()
    kernel, _ = model.initial_weights[0]
    assert kernel.shape == (7, 2)
    bias = np.array([1, 2], np.float32)
    x = np.array([[6, 0, 6, 2], [1, 6, 6, 6]], np.int32)
    counts = [[1, 0, 1, 0, 0, 0, 2], [0, 1, 0, 0, 0, 0, 3]]
    scores = model.predict_on_batch(((kernel, bias), ()), x, True)
    np.testing.assert_allclose(scores, counts @ kernel + bias, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"dataset": "synthetic"}, "softmax_regression"),
        ({"dataset": "shakespeare"}, "stacked_lstm"),
        ({"dataset": "synthetic", "model": "mnist_cnn"}, "mnist_cnn"),
        ({"dataset": "femnist"}, "keras_simple_convnet"),
    ],
)
def test_a_data_set_has_its_model(changes, name):
    chosen = settings("baselines", changes)
    assert chosen.model_name == name
    assert chosen.with_changes(rounds=2).model_name == name
    there_and_back = chosen.with_changes(dataset="synthetic")
    assert (there_and_back.model_name == name) == (changes["dataset"] == "synthetic")


def test_a_fitting_model_is_kept():
    chosen = models.fitting_model("synthetic", "softmax_regression")
    assert chosen == "softmax_regression"


@pytest.mark.parametrize("name", ["softmax_regression", "stacked_lstm"])
def test_an_activation_of_convolutions_is_rejected(name):
    with pytest.raises(SettingError, match="--conv_activation has no effect"):
        settings("baselines", {"model": name, "conv_activation": "none"})


@pytest.mark.parametrize(
    ("name", "flags", "num_ids"),
    [
        ("bag_of_words", {}, 10_000),
        ("bag_of_words", {"vocabulary_size": 12}, 12),
        ("reddit_lstm", {}, 10_000),
        ("stacked_lstm", {}, 80),
        ("softmax_regression", {}, 0),
    ],
)
def test_models_of_text_say_how_many_ids_they_take(name, flags, num_ids):
    assert models.MODELS[name].from_flag_values(flags).num_ids == num_ids
    assert flags or models.MODELS[name].num_ids == num_ids


def test_reddits_lstm_scores_each_position_by_the_tokens_before():
    model = models.MODELS["reddit_lstm"].from_flag_values({"vocabulary_size": 12})
    assert model.num_classes == model.num_ids == 12
    built = model.build()
    x = np.random.default_rng(1).integers(0, 12, (3, 10)).astype(np.int32)
    changed = np.where(np.arange(10) < 6, x, 11 - x)
    scores, others = (
        built.predict_on_batch(built.initial_weights, tf.constant(inputs), False)
        for inputs in (x, changed)
    )
    assert scores.shape == (3, 10, 12)
    by_equations = lstm_scores(built.initial_weights[0], x, False, **ALL_STEPS)
    np.testing.assert_allclose(scores, by_equations, rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(scores[:, :6], others[:, :6])
    assert np.abs(scores[:, 6:] - others[:, 6:]).min(axis=(0, 2)).max() > 0
    labels = np.where(np.arange(10) < 4, x, leaf_data.MASKED)
    expected = [
        -np.log(np.exp(row[label]) / np.exp(row).sum())
        for row, label in zip(scores.numpy().reshape(-1, 12), labels.ravel())
        if label >= 0
    ]
    loss = float(built.loss(scores, tf.constant(labels)))
    assert loss == pytest.approx(np.mean(expected), rel=1e-5)
