"""Adadelta against Keras's."""

import numpy as np
import pytest

from tff_pmc._lazy import tf


@pytest.fixture(scope="module")
def adadelta():
    from tff_pmc.optimizers import adadelta

    return adadelta


@pytest.mark.parametrize(
    ("rate", "rho", "epsilon"), [(1.0, 0.95, 1e-7), (0.3, 0.8, 1e-3)]
)
def test_seven_steps_equal_keras(adadelta, rate, rho, epsilon):
    generator = np.random.default_rng(1)
    shapes = [(3, 4), (4,)]
    first = [generator.normal(size=shape).astype(np.float32) for shape in shapes]
    variables = [tf.Variable(w) for w in first]
    keras = tf.keras.optimizers.legacy.Adadelta(rate, rho=rho, epsilon=epsilon)
    ours = adadelta.build_adadelta(rate, rho, epsilon)
    weights = tuple(map(tf.constant, first))
    specs = tf.nest.map_structure(lambda w: tf.TensorSpec(w.shape, w.dtype), weights)
    state = ours.initialize(specs)
    next_step = tf.function(ours.next)
    for step in range(7):
        gradients = tuple(
            tf.constant(generator.normal(size=s) * 10.0 ** (step - 3), tf.float32)
            for s in shapes
        )
        keras.apply_gradients(zip(gradients, variables))
        state, weights = next_step(state, weights, gradients)
        for weight, expected in zip(weights, variables):
            np.testing.assert_allclose(weight, expected, rtol=2e-6, atol=1e-7)
    assert np.abs(np.asarray(weights[0]) - first[0]).max() > 1e-4


def test_variables_without_a_gradient_are_unchanged(adadelta):
    optimizer = adadelta.build_adadelta()
    weights = (tf.constant([1.0]), tf.constant([2.0]))
    state = optimizer.initialize((tf.TensorSpec([1]), tf.TensorSpec([1])))
    _, weights = optimizer.next(state, weights, (tf.constant([1.0]), None))
    assert float(weights[0]) < 1 and float(weights[1]) == 2


def test_hyperparameters_are_read_and_set(adadelta):
    optimizer = adadelta.build_adadelta(0.5)
    state = optimizer.initialize(tf.TensorSpec([2]))
    hparams = optimizer.get_hparams(state)
    assert dict(hparams) == {"learning_rate": 0.5, "rho": 0.95, "epsilon": 1e-7}
    changed = optimizer.set_hparams(state, {**hparams, "learning_rate": 0.0})
    _, weights = optimizer.next(changed, tf.ones([2]), tf.ones([2]))
    np.testing.assert_array_equal(weights, [1, 1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": -1}, "learning_rate must be 0 or more, got -1"),
        ({"rho": 1.0}, r"rho must be in \[0, 1\), got 1.0"),
        ({"epsilon": 0}, "epsilon must be above 0, got 0"),
    ],
)
def test_invalid_hyperparameters_are_named(adadelta, options, message):
    with pytest.raises(ValueError, match=message):
        adadelta.build_adadelta(**options)
