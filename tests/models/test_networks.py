"""Each CNN held to the sentence it comes from, in Keras's layers; dropout and loss."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from tff_pmc import models

# PMC 5.1, DA section 3, PMC 5.2: two convolutions with filters of this side, 32 and 64
# channels, each followed by 2x2 max pooling; a dense layer of these units "and ReLu
# activation", the only one that is named; an output of these units. Ours for Dual: two
# convolutions before each pooling. Keras's two examples: no padding.
# Side; channels, by what is pooled; units; padding; parameters.
NETWORKS = {
    "mnist_cnn": (5, [[32], [64]], [512, 10], "same", 1_663_370),
    "femnist_cnn": (5, [[32], [64]], [2048, 62], "same", 6_603_710),
    "celeba_cnn": (3, [[32], [64]], [512, 1], "same", 8_409_025),
    "cifar_cnn": (3, [[32, 32], [64, 64]], [256, 10], "same", 1_116_970),
    "obstacle_cnn": (3, [[32, 32], [64, 64]], [256, 2], "same", 4_260_642),
    "keras_mnist_cnn": (3, [[32, 64]], [128, 10], "valid", 1_199_882),
    "keras_simple_convnet": (3, [[32], [64]], [10], "valid", 34_826),
}


def keras_model(name, activation):
    import tensorflow as tf

    layers = tf.keras.layers
    side, stages, (*units, outputs), padding, _ = NETWORKS[name]
    shape = models.MODELS[name].element_shape
    color = shape if len(shape) == 3 else (*shape, 1)
    model = tf.keras.Sequential([layers.Rescaling(1 / 255, input_shape=color)])
    for stage in stages:
        for channels in stage:
            model.add(layers.Conv2D(channels, side, 1, padding, activation=activation))
        model.add(layers.MaxPooling2D())
    model.add(layers.Flatten())
    for number in units:
        model.add(layers.Dense(number, activation="relu"))
    model.add(layers.Dense(outputs))
    return model


def with_biases(model):
    """Returns the initial weights with nonzero biases, so that they matter."""
    generator = np.random.default_rng(8)
    return tuple(
        generator.normal(0, 0.1, w.shape).astype(np.float32) if w.ndim == 1 else w
        for w in model.initial_weights[0]
    )


@pytest.mark.parametrize("activation", ["relu", "none"])
@pytest.mark.parametrize("name", list(NETWORKS))
def test_a_network_predicts_as_in_keras(name, activation):
    settings = models.MODELS[name](seed=2, conv_activation=activation)
    keras = keras_model(name, None if activation == "none" else activation)
    model = settings.build()
    sizes = sum(w.size for w in model.initial_weights[0])
    assert sizes == keras.count_params() == NETWORKS[name][-1]
    shape = (3, *settings.element_shape)
    x = np.random.default_rng(4).integers(0, 256, shape, dtype=np.uint8)
    weights = with_biases(model)
    keras.set_weights(weights)
    # Keras's images have a channel also where they are gray.
    expected = keras(x.reshape(-1, *keras.input_shape[1:]), training=False)
    scores = model.predict_on_batch((weights, ()), x, False)
    if name == "celeba_cnn":  # A logit z is the two scores (0, z).
        expected = np.concatenate([np.zeros_like(expected), expected], axis=1)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    assert np.ptp(np.asarray(expected), axis=1).min() > 0.01


def test_the_loss_is_the_mean_of_the_examples_losses():
    model = models.keras_simple_convnet()
    scores = np.random.default_rng(0).normal(size=(5, 10)).astype(np.float32)
    y = np.array([0, 1, 1, 9, 0], np.int32)
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    expected = -np.log(shares[np.arange(5), y])
    losses = np.asarray(model.example_losses(scores, y))
    assert losses.dtype == np.float32
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert float(model.loss(scores, y)) == pytest.approx(expected.mean(), rel=1e-5)
    weights = np.array([1, 0, 2, 0, 1], np.float32)
    weighted = np.average(expected, weights=weights)
    assert float(model.loss(scores, y, weights)) == pytest.approx(weighted, rel=1e-5)


@pytest.mark.parametrize("initializer", ["glorot_uniform", "glorot_normal"])
def test_initial_kernels_have_the_distribution_of_keras(initializer):
    """The same distribution as Keras's initializer: spread and bounds; by the seed."""
    import tensorflow as tf

    def kernels(seed):
        return models.mnist_cnn(initializer=initializer, seed=seed).initial_weights[0]

    for kernel in kernels(0)[2:6:2]:
        theirs = tf.keras.initializers.get(initializer)(kernel.shape).numpy()
        assert kernel.std() == pytest.approx(theirs.std(), rel=0.02)
        assert np.abs(kernel).max() == pytest.approx(np.abs(theirs).max(), rel=0.02)
    for first, repeated, other in zip(
        kernels(1)[::2], kernels(1)[::2], kernels(2)[::2]
    ):
        np.testing.assert_array_equal(first, repeated)
        assert (first != other).any()


# --- Dropout --------------------------------------------------------------------


def scores(name, ones, seed=1, **dropouts):
    """Returns the scores in training, with all weights of one layer 1."""
    images = np.random.default_rng(4).integers(0, 256, (200, 28, 28), dtype=np.uint8)
    model = getattr(models, name)(**dropouts)
    weights = list(model.initial_weights[0])
    weights[ones] = np.ones_like(weights[ones])
    if not model.has_own_training:
        return np.asarray(model.predict_on_batch((tuple(weights), ()), images, True))
    output, rest, _ = model.forward_in_training(tuple(weights), (), images, [seed, 1])
    assert rest == ()
    return np.asarray(output)


@pytest.mark.parametrize(
    ("name", "dropout", "others", "ones"),
    [
        ("keras_simple_convnet", "dropout", {}, 4),
        ("keras_mnist_cnn", "pooled_dropout", {"dense_dropout": 0.0}, 4),
        ("keras_mnist_cnn", "dense_dropout", {"pooled_dropout": 0.0}, 6),
    ],
)
def test_dropout_is_before_its_layer(name, dropout, others, ones):
    """With a layer's weights all 1 a unit is the sum of its inputs.

    What is kept grows, so that the mean stays; the seed decides what is kept.
    """

    def score(share, seed=1):
        return scores(name, ones, seed, **{dropout: share}, **others)

    whole, half = score(0.0), score(0.5)
    assert np.mean(half / whole) == pytest.approx(1, abs=0.05)
    assert np.std(half / whole) > 0.01
    np.testing.assert_array_equal(half, score(0.5))
    assert np.abs(half - score(0.5, seed=2)).max() > 0
    assert np.std(score(0.9) / whole) > 2 * np.std(half / whole)
    build = getattr(models, name)
    model = build(**{dropout: 0.1}, **others)
    with pytest.raises(ValueError, match=f"{name} trains.*only packed clients support"):
        model.predict_on_batch(model.initial_weights, np.zeros((1, 28, 28)), True)
    for share in (-0.1, 1.0):
        with pytest.raises(ValueError, match=rf"{dropout} must be in \[0, 1\), got"):
            build(**{dropout: share})


def test_two_dropouts_use_different_seeds():
    """Both with half of the units: their scores are not one drop's twice."""
    halves = {"pooled_dropout": 0.5, "dense_dropout": 0.5}
    both_scores = scores("keras_mnist_cnn", 6, **halves)
    for none in halves:
        alone = scores("keras_mnist_cnn", 6, **{**halves, none: 0.0})
        assert np.abs(both_scores - alone).max() > 1e-3


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *(
            (name, {option: "he"}, f"{option} must be one of")
            for name, kind in models.MODELS.items()
            for option in ("conv_activation", "initializer")
            if option in inspect.signature(kind.function).parameters
        ),
        ("celeba_reference_cnn", {"batch_norm": "none"}, "one of frozen, aggregated"),
        ("celeba_reference_cnn", {"dropout": 1.0}, r"dropout must be in \[0, 1\), got"),
    ],
)
def test_unknown_variants_raise(name, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(models, name)(**options)
