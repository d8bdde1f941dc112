"""The model of packed clients: to TFF a functional model, to us some more."""

import numpy as np
import pytest

from tff_pmc import models


def train(tff, model, examples):
    """The weights after two rounds of TFF's own federated averaging."""
    import tensorflow as tf

    process = tff.learning.algorithms.build_weighted_fed_avg(
        model,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
    )
    parts = [examples.client(k) for k in (0, 2, 3)]
    data = [
        tf.data.Dataset.from_tensor_slices((part["x"], part["y"])).batch(2)
        for part in parts
    ]
    state = process.initialize()
    for _ in range(2):
        state = process.next(state, data).state
    return process.get_model_weights(state).trainable


def test_tffs_own_learner_takes_it(
    runtime, tff, toy_examples, toy_model, toy_packed_model
):
    assert isinstance(toy_packed_model, tff.learning.models.FunctionalModel)
    found = train(tff, toy_packed_model, toy_examples)
    expected = train(tff, toy_model, toy_examples)
    for a, b, first in zip(found, expected, toy_model.initial_weights[0]):
        np.testing.assert_array_equal(a, b)
        assert np.abs(a - first).max() > 1e-3


def test_tffs_own_model_is_one_without_more(tf, toy_model, toy_examples):
    packed = models.PackedModel.of(toy_model)
    assert models.PackedModel.of(packed) is packed
    assert not packed.has_example_losses and not packed.has_own_training
    assert packed.local_weights == ()
    weights, x = toy_model.initial_weights, toy_examples.x
    expected = toy_model.predict_on_batch(weights, x, False)
    np.testing.assert_array_equal(packed.predict_on_batch(weights, x, False), expected)
    output, rest = packed.forward_in_training(*weights, x, [1, 2])
    np.testing.assert_array_equal(output, expected)
    assert rest == weights[1]
    with pytest.raises(ValueError, match="losses of single examples"):
        packed.example_losses(output, toy_examples.y)


def test_the_loss_weighted_by_class_by_hand(toy_packed_model):
    """Losses log 3, twice: the mean of 2 log 3 and 5 log 3."""
    loss = toy_packed_model.weighted_loss(
        np.zeros([2, 3], np.float32),
        np.array([0, 2], np.int32),
        np.array([2, 7, 5], np.float32),
    )
    assert float(loss) == pytest.approx(3.5 * np.log(3), rel=1e-6)
