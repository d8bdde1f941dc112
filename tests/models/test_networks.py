"""Each CNN held to the sentence it comes from, in Keras's layers; seeds and losses."""

from __future__ import annotations

import numpy as np
import pytest

from tff_pmc import models

COUNTS = {
    "mnist_cnn": 1_663_370,
    "femnist_cnn": 6_603_710,
    "celeba_cnn": 8_409_025,
    "keras_mnist_cnn": 1_199_882,
    "keras_simple_convnet": 34_826,
    "cifar_cnn": 1_116_970,
    "obstacle_cnn": 4_260_642,
}


def build(name, **options):
    return models.MODELS[name](**options).build()


# PMC 5.1, DA section 3, PMC 5.2: two convolutions with filters of this side, 32 and 64
# channels, each followed by 2x2 max pooling; a dense layer of so many units "and ReLu
# activation", the only one that is named; an output of so many units.
SENTENCES = {
    "mnist_cnn": (5, 512, 10),
    "femnist_cnn": (5, 2048, 62),
    "celeba_cnn": (3, 512, 1),
}


def keras_model(name, conv_activation=None):
    import tensorflow as tf

    layers = tf.keras.layers
    shape = models.MODELS[name].element_shape
    if name in SENTENCES:
        side, units, outputs = SENTENCES[name]
        color = shape if len(shape) == 3 else (*shape, 1)

        def convolution(channels):
            yield layers.Conv2D(
                channels, side, padding="same", activation=conv_activation
            )
            yield layers.MaxPooling2D()

        return tf.keras.Sequential(
            [
                layers.Rescaling(1 / 255, input_shape=color),
                *convolution(32),
                *convolution(64),
                layers.Flatten(),
                layers.Dense(units, activation="relu"),
                layers.Dense(outputs),
            ]
        )
    if name == "keras_mnist_cnn":  # As keras.io/examples/mnist_cnn had it.
        return tf.keras.Sequential(
            [
                layers.Rescaling(1 / 255, input_shape=(*shape, 1)),
                layers.Conv2D(32, kernel_size=(3, 3), activation="relu"),
                layers.Conv2D(64, (3, 3), activation="relu"),
                layers.MaxPooling2D(pool_size=(2, 2)),
                layers.Dropout(0.25),
                layers.Flatten(),
                layers.Dense(128, activation="relu"),
                layers.Dropout(0.5),
                layers.Dense(10),
            ]
        )
    if name == "keras_simple_convnet":
        return tf.keras.Sequential(
            [
                layers.Rescaling(1 / 255, input_shape=(*shape, 1)),
                layers.Conv2D(32, 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Conv2D(64, 3, activation="relu"),
                layers.MaxPooling2D(),
                layers.Flatten(),
                layers.Dropout(0.5),
                layers.Dense(10),
            ]
        )

    def block(channels):
        for _ in range(2):
            yield layers.Conv2D(channels, 3, padding="same", activation="relu")
        yield layers.MaxPooling2D()

    return tf.keras.Sequential(
        [
            layers.Rescaling(1 / 255, input_shape=shape),
            *block(32),
            *block(64),
            layers.Flatten(),
            layers.Dense(256, activation="relu"),
            layers.Dense(10 if name == "cifar_cnn" else 2),
        ]
    )


def images(name, count=3):
    shape = (count, *models.MODELS[name].element_shape)
    return np.random.default_rng(4).integers(0, 256, shape, dtype=np.uint8)


def with_biases(model):
    """The initial weights with biases that are not zero, so that they count."""
    generator = np.random.default_rng(8)
    return tuple(
        generator.normal(0, 0.1, w.shape).astype(np.float32) if w.ndim == 1 else w
        for w in model.initial_weights[0]
    )


@pytest.mark.parametrize(
    ("name", "options"),
    [
        *((name, {}) for name in COUNTS),
        # The other reading, with ReLU after each convolution.
        *((name, {"conv_activation": "relu"}) for name in SENTENCES),
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value.values()),
)
def test_it_predicts_as_keras_own(name, options):
    model, keras = build(name, seed=2, **options), keras_model(name, **options)
    assert (
        sum(w.size for w in model.initial_weights[0])
        == keras.count_params()
        == COUNTS[name]
    )
    weights, x = with_biases(model), images(name)
    keras.set_weights(weights)
    # Keras's images have a channel also where they are gray.
    expected = keras(x.reshape(-1, *keras.input_shape[1:]), training=False)
    found = model.predict_on_batch((weights, ()), x, False)
    if name == "celeba_cnn":  # A logit z is the two scores (0, z).
        expected = np.concatenate([np.zeros_like(expected), expected], axis=1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert np.ptp(np.asarray(expected), axis=1).min() > 0.01


@pytest.mark.parametrize("name", list(COUNTS))
def test_linear_convolutions_are_another_model(name):
    x = images(name)
    relu, linear = (
        model.predict_on_batch(model.initial_weights, x, False)
        for model in (
            build(name, conv_activation=activation) for activation in ("relu", "none")
        )
    )
    assert np.abs(np.asarray(relu) - np.asarray(linear)).max() > 0.01


@pytest.mark.parametrize("name", list(models.MODELS))
def test_the_loss_is_the_mean_of_the_examples_losses(name):
    model = build(name)
    classes = 62 if name == "femnist_cnn" else len(model.initial_weights[0][-1])
    if name.startswith("celeba"):
        classes = 2
    generator = np.random.default_rng(0)
    scores = generator.normal(size=(5, classes)).astype(np.float32)
    y = np.array([0, 1, 1, classes - 1, 0], np.int32)
    shares = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    expected = -np.log(shares[np.arange(5), y])
    losses = np.asarray(model.example_losses(scores, y))
    assert losses.dtype == np.float32
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    assert float(model.loss(scores, y)) == pytest.approx(expected.mean(), rel=1e-5)
    weights = np.array([1, 0, 2, 0, 1], np.float32)
    weighted = np.average(expected, weights=weights)
    assert float(model.loss(scores, y, weights)) == pytest.approx(weighted, rel=1e-5)


@pytest.mark.parametrize("name", list(COUNTS))
def test_the_seed_decides_the_weights(name):
    def kernels(**options):
        return [w.tobytes() for w in build(name, **options).initial_weights[0]]

    assert kernels(seed=1) == kernels(seed=1)
    assert kernels(seed=1)[::2] != kernels(seed=2)[::2]
    assert kernels(initializer="glorot_normal") != kernels()


@pytest.mark.parametrize("name", list(COUNTS))
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"conv_activation": "tanh"}, "conv_activation must be one of relu, none"),
        ({"initializer": "he"}, "initializer must be one of"),
    ],
)
def test_unknown_variants_are_refused(name, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(models, name)(**options)
