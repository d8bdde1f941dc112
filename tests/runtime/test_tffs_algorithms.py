"""TFF's own algorithms run in this process as they are, against NumPy."""

import collections
import functools
import logging

import numpy as np
import pytest

from tff_pmc._lazy import tf, tff

MU, RATE, EPOCHS = 0.7, 0.3, 3
COHORT = [0, 2, 3]


def fed_avg(model):
    sgd = tff.learning.optimizers.build_sgdm(RATE)
    return tff.learning.algorithms.build_weighted_fed_avg(
        model, client_optimizer_fn=sgd
    )


def fed_prox(model):
    sgd = tff.learning.optimizers.build_sgdm(RATE)
    return tff.learning.algorithms.build_weighted_fed_prox(
        model, proximal_strength=MU, client_optimizer_fn=sgd
    )


def mime_lite(model):
    momentum = tff.learning.optimizers.build_sgdm(RATE, 0.9)
    return tff.learning.algorithms.build_weighted_mime_lite(
        model, base_optimizer=momentum
    )


def gradient(w, x, y):
    scores = x @ w[0] + w[1]
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    error = (p - np.eye(3)[y]) / len(y)
    return [x.T @ error, error.sum(axis=0)]


def trained(start, x, y, mu=0.0, velocity=None):
    """Trains on full batches with SGD; a velocity, as in MimeLite, stays unchanged.

    The sign of TFF 0.87's FedProx is the other one (docs/own_code.md): `-MU` below.
    """
    w = [np.array(part, float) for part in start]
    for _ in range(EPOCHS):
        g = [a + mu * (b - c) for a, b, c in zip(gradient(w, x, y), w, start)]
        if velocity is not None:
            g = [0.9 * v + a for v, a in zip(velocity, g)]
        w = [b - RATE * a for a, b in zip(g, w)]
    return w


@pytest.mark.parametrize("build", [fed_avg, fed_prox, mime_lite])
def test_two_rounds_equal_numpy_without_a_worker(
    toy_examples, toy_model, assert_close, caplog, build
):
    from tff_pmc.runtime import Runtime

    arrays = [toy_examples.client(k) for k in COHORT]
    x = [part["x"].reshape(len(part["y"]), -1) / 255.0 for part in arrays]
    y = [part["y"] for part in arrays]
    data = [
        tf.data.Dataset.from_tensor_slices((part["x"], part["y"]))
        .batch(100)
        .repeat(EPOCHS)
        for part in arrays
    ]
    mean = functools.partial(np.average, axis=0, weights=[len(part) for part in y])
    model, velocity = toy_model.initial_weights[0], None
    if build is mime_lite:
        velocity = [np.zeros_like(part) for part in model]
    process = build(toy_model)
    with Runtime("local"), caplog.at_level(logging.WARNING):
        state = process.initialize()
        for _ in range(2):
            state = process.next(state, data).state
            ends = [
                trained(model, *batch, -MU if build is fed_prox else 0.0, velocity)
                for batch in zip(x, y)
            ]
            if velocity is not None:  # By the full gradients at the round's start.
                full = zip(*[gradient(model, *batch) for batch in zip(x, y)])
                velocity = [0.9 * v + mean(g) for v, g in zip(velocity, full)]
            model = [mean(part) for part in zip(*ends)]
            assert_close(process.get_model_weights(state).trainable, model)
    assert "worker" not in caplog.text


def test_personalization_equals_numpy_without_a_worker(caplog):
    """The type of TFF's data there names no container."""
    from tff_pmc.runtime import Runtime

    generator = np.random.default_rng(1)
    x, y = (generator.normal(size=[3, 5, 1]).astype(np.float32) for _ in "xy")
    spec = tf.TensorSpec([None, 1], tf.float32)

    def model_fn():
        dense = tf.keras.layers.Dense(1, use_bias=False, input_shape=(1,))
        return tff.learning.models.from_keras_model(
            tf.keras.Sequential([dense]),
            tf.keras.losses.MeanSquaredError(),
            input_spec=collections.OrderedDict(x=spec, y=spec),
        )

    @tf.function
    def judge(model, dataset):
        batch = dataset.batch(5).get_single_element()
        return collections.OrderedDict(
            error=model.forward_pass(batch, training=False).loss
        )

    def one_step():
        @tf.function
        def train(model, train_data, test_data):
            batch = train_data.batch(5).get_single_element()
            with tf.GradientTape() as tape:
                loss = model.forward_pass(batch, training=True).loss
            (w,) = model.trainable_variables
            w.assign_sub(RATE * tape.gradient(loss, w))
            return judge(model, test_data)

        return train

    computation = tff.learning.algorithms.build_personalization_eval_computation(
        model_fn, collections.OrderedDict(one_step=one_step), judge
    )
    weights = tff.learning.models.ModelWeights([np.array([[0.5]], np.float32)], [])
    parts = [
        tf.data.Dataset.from_tensor_slices(
            collections.OrderedDict(x=client_x, y=client_y)
        )
        for client_x, client_y in zip(x, y)
    ]
    clients = [
        collections.OrderedDict(train_data=part, test_data=part) for part in parts
    ]
    with Runtime("local"), caplog.at_level(logging.WARNING):
        metrics = computation(weights, clients)
    assert "worker" not in caplog.text
    moved = 0.5 - RATE * np.mean(2 * x * (0.5 * x - y), axis=(1, 2))
    for name, w in (("baseline_metrics", np.full(3, 0.5)), ("one_step", moved)):
        errors = np.mean((w[:, None, None] * x - y) ** 2, axis=(1, 2))
        np.testing.assert_allclose(
            np.sort(metrics[name]["error"]), np.sort(errors), 1e-5
        )
