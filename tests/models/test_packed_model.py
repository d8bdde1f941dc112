"""The model of packed clients: to TFF a functional model, to us some more."""

import numpy as np
import pytest

from tff_pmc import models


def test_tffs_own_learner_takes_it(
    runtime, tf, tff, toy_examples, toy_model, toy_packed_model
):
    """Two rounds of TFF's own federated averaging, with it and with TFF's class."""
    parts = [toy_examples.client(k) for k in (0, 2, 3)]
    data = [
        tf.data.Dataset.from_tensor_slices((part["x"], part["y"])).batch(2)
        for part in parts
    ]
    models_ = []
    for model in (toy_packed_model, toy_model):
        process = tff.learning.algorithms.build_weighted_fed_avg(
            model, client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.1)
        )
        state = process.next(process.initialize(), data).state
        state = process.next(state, data).state
        models_.append(process.get_model_weights(state).trainable)
    for found, expected, first in zip(*models_, toy_model.initial_weights[0]):
        np.testing.assert_array_equal(found, expected)
        assert np.abs(found - first).max() > 1e-3


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
