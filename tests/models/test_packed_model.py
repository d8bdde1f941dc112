"""The model of packed clients: to TFF a functional model, to us some more."""

import numpy as np
import pytest

from tff_pmc import models


def test_a_tff_learner_trains_a_packed_model(
    runtime, tf, tff, toy_examples, toy_model, toy_packed_model
):
    """Two rounds of TFF's federated averaging, with it and with TFF's class."""
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
    for actual, expected, first in zip(*models_, toy_model.initial_weights[0]):
        np.testing.assert_array_equal(actual, expected)
        assert np.abs(actual - first).max() > 1e-3


def test_a_functional_model_becomes_a_packed_model_without_hooks(
    tf, toy_model, toy_examples
):
    packed = models.PackedModel.of(toy_model)
    assert models.PackedModel.of(packed) is packed
    assert not packed.has_example_losses and not packed.has_own_training
    assert packed.local_weights == ()
    weights, x = toy_model.initial_weights, toy_examples.x
    expected = toy_model.predict_on_batch(weights, x, False)
    np.testing.assert_array_equal(packed.predict_on_batch(weights, x, False), expected)
    output, rest, penalty = packed.forward_in_training(*weights, x, [1, 2])
    np.testing.assert_array_equal(output, expected)
    assert rest == weights[1] and penalty is None
    with pytest.raises(ValueError, match="losses of single examples"):
        packed.example_losses(output, toy_examples.y)


def test_a_model_fn_of_keras_becomes_functional(tf, tff, assert_one_line):
    """A function may also return a functional model; others raise an error."""
    from tff_pmc.models.tff_types.keras_models import as_functional
    from tff_pmc.models.tff_types.packed_model import evaluate_initial_model
    from tff_pmc.processes.evaluation import num_output_classes

    layers = tf.keras.layers
    inner = tf.keras.Sequential([layers.Flatten(input_shape=(2, 2)), layers.Dense(3)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    spec = (tf.TensorSpec([None, 2, 2]), tf.TensorSpec([None], tf.int32))
    by_name = dict(zip("xy", spec))
    x, y = np.arange(8, dtype=np.float32).reshape(2, 2, 2), np.array([0, 2], np.int32)
    scores = inner(x).numpy()
    for input_spec in (spec, by_name):
        model = as_functional(
            lambda spec=input_spec: tff.learning.models.from_keras_model(
                inner, loss, spec
            )
        )
        output, mean = evaluate_initial_model(model, x, y)
        np.testing.assert_allclose(output, scores, rtol=1e-6)
        logs = np.log(np.exp(scores).sum(1)) - scores[np.arange(2), y]
        np.testing.assert_allclose(mean, logs.mean(), rtol=1e-5)
        assert num_output_classes(as_functional(lambda: model)) == 3  # noqa: B023
    for wrong, says in (
        (inner, "returned a Sequential"),
        (lambda: 3, "returned a int"),
    ):
        assert_one_line(ValueError, lambda: as_functional(wrong), says)  # noqa: B023
