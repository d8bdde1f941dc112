"""The published code's CelebA model and its criteria, against Keras and NumPy."""

import numpy as np
import pytest

import leaf_data
import tff_pmc
from tff_pmc import models

RATE, EPOCHS = 0.05, 2


@pytest.fixture(scope="module")
def faces():
    """Three clients of 5, 4 and 6 random images; each has both labels and some blur."""
    generator = np.random.default_rng(11)
    y = [1, 0, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0, 1, 1]
    return leaf_data.Examples(
        generator.integers(0, 256, (15, 64, 64, 3), dtype=np.uint8),
        np.array(y, np.int32),
        np.array([0, 5, 9, 15], np.int64),
        ("a", "b", "c"),
        {"sharp": np.array([1, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 0])},
    )


CB = [1 / 4, 2 / 2, 1 / 5]
IS = [4 / 5, 2 / 4, 5 / 6]


def keras_model():
    import tensorflow as tf

    layers = tf.keras.layers
    return tf.keras.Sequential(
        [
            layers.Rescaling(1 / 255, input_shape=(64, 64, 3)),
            layers.Conv2D(32, 5, padding="same"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 5, padding="same"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(1024, activation="relu"),
            layers.BatchNormalization(),
            layers.Dense(1, activation="sigmoid"),
        ]
    )


def train_in_keras(examples, initial):
    """Returns each client's weights after training in Keras, from the same weights."""
    import tensorflow as tf

    trained = []
    for k in range(examples.num_clients):
        part = examples.client(k)
        model = keras_model()
        model.set_weights(initial)
        model.compile(tf.keras.optimizers.SGD(RATE), "binary_crossentropy")
        options = dict(batch_size=len(part["y"]), epochs=EPOCHS, shuffle=False)
        model.fit(part["x"], part["y"], verbose=0, **options)
        trained.append(model.get_weights())
    return trained


def one_round(model, examples, **options):
    """Runs a packed round of all clients with the ordering CB, DS, IS."""
    import tensorflow_federated as tff

    process = tff_pmc.processes.build_prioritized_fed_avg(
        model,
        criteria=("DS", "CB", "IS"),
        priority=("CB", "DS", "IS"),
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
        local_epochs=EPOCHS,
        report_cohort=examples.num_clients,
        **options,
    )
    packs = tff_pmc.pack(
        examples, range(examples.num_clients), example_attributes=("sharp",)
    )
    state, metrics = process.next(process.initialize(), packs)
    return process.get_model_weights(state), metrics


def weights_by_hand():
    c = np.stack(
        [np.array([5, 4, 6]) / 15, np.array(CB) / sum(CB), np.array(IS) / sum(IS)]
    )
    s = c[1] + c[1] * c[0] + c[1] * c[0] * c[2]
    return s / s.sum()


def mean(p, trained, place):
    return sum(share * weights[place] for share, weights in zip(p, trained))


@pytest.mark.slow
@pytest.mark.parametrize("batch_norm", ["frozen", "aggregated"])
def test_the_published_codes_cnn_trains_as_in_keras(
    runtime, faces, batch_norm, assert_close
):
    """Kernels, biases, and the batch normalization at the server agree."""
    model = models.celeba_reference_cnn(seed=2, batch_norm=batch_norm, dropout=0.0)
    assert keras_model().count_params() == 16_837_057
    w = list(model.initial_weights[0])
    ones, zeros = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    initial = [*w[:6], ones, zeros, zeros, ones, *w[6:8]]
    trained = train_in_keras(faces, initial)
    weights, metrics = one_round(model, faces)
    measured = np.asarray(metrics["client_work"]["train"]["criteria_by_client"])
    np.testing.assert_allclose(measured, np.transpose([[5, 4, 6], CB, IS]), rtol=1e-6)
    p = weights_by_hand()
    expected = [mean(p, trained, i) for i in (0, 1, 2, 3, 4, 5, 10, 11)]
    if batch_norm == "aggregated":
        expected += [mean(p, trained, i) for i in (6, 7)]
        statistics = [mean(p, trained, i) for i in (8, 9)]
        assert_close(weights.non_trainable, statistics)
    else:
        assert len(weights.non_trainable) == 0
    # Initial biases are zero, so what is compared is what training made of them.
    assert_close(weights.trainable, expected)


@pytest.mark.parametrize("batch_norm", ["frozen", "aggregated"])
def test_the_published_codes_cnn_predicts_as_in_keras(faces, batch_norm):
    model = models.celeba_reference_cnn(seed=3, batch_norm=batch_norm)
    generator = np.random.default_rng(0)
    w = [np.asarray(v) for v in model.initial_weights[0][:8]]
    ones, zeros = np.ones(1024, np.float32), np.zeros(1024, np.float32)
    norm = [ones, zeros, zeros, ones]
    if batch_norm == "aggregated":
        norm = [generator.uniform(0.5, 2, 1024).astype(np.float32) for _ in range(4)]
    keras = keras_model()
    keras.set_weights([*w[:6], *norm, *w[6:]])
    expected = keras.predict(faces.x, verbose=0)[:, 0]
    weights = (tuple(w), ())
    if batch_norm == "aggregated":
        weights = ((*w, *norm[:2]), tuple(norm[2:]))
    scores = np.asarray(model.predict_on_batch(weights, faces.x, False), float)
    probabilities = np.exp(scores[:, 1]) / np.exp(scores).sum(1)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-4)


def test_dropout_is_a_function_of_the_seed(faces):
    def scores(seed, dropout=0.3):
        model = models.celeba_reference_cnn(seed=1, dropout=dropout)
        weights = (*model.initial_weights[0], *model.local_weights)
        return np.asarray(model.forward_in_training(weights, (), faces.x, [seed, 1])[0])

    first = scores(5)
    np.testing.assert_array_equal(first, scores(5))
    assert np.abs(first - scores(6)).max() > 0
    assert np.abs(first - scores(5, dropout=0.0)).max() > 0
