"""Weights that are not floats, such as a counter, stay those of the server."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tf, tff

FIXED = (np.float32(3), np.int64(2**40 + 1), np.array([True, False]))
"""A factor, a counter and switches, as layers have them."""


def model_of(toy, fixed):
    """The toy model times a product of these weights, or of constants like them."""

    @tf.function(autograph=False)
    def predict(weights, x, training=True):
        trainable, (factor, count, switches) = (
            weights[0],
            weights[1] if fixed else FIXED,
        )
        scale = tf.cast(count % 2, tf.float32) * tf.where(switches[0], factor, 0.0)
        output = toy.predict_on_batch((trainable, ()), x, training)
        return scale * output

    trainable, _ = toy.initial_weights
    return tff_pmc.PackedModel(
        initial_weights=(trainable, FIXED if fixed else ()),
        predict_on_batch_fn=predict,
        loss_fn=toy.loss,
        input_spec=toy.input_spec,
        example_losses=toy.example_losses,
    )


def prioritized(model, sgd, **options):
    return tff_pmc.build_prioritized_fed_avg(
        model,
        priority=("MD", "DS", "LD"),
        client_optimizer_fn=sgd(),
        local_epochs=1,
        **options,
    )


def two_stage(model, sgd):
    return tff_pmc.build_prioritized_fed_avg(
        model,
        score=scores.owa("most"),
        client_optimizer_fn=sgd(),
        local_epochs=1,
    )


def adafed(model, sgd):
    x = np.arange(160, dtype=np.uint8).reshape(10, 4, 4)
    server = x, np.arange(10, dtype=np.int32) % 3
    return tff_pmc.build_adafed(
        model,
        server_examples=server,
        num_classes=3,
        client_optimizer_fn=sgd(),
        local_epochs=1,
    )


def quantized(model, sgd):
    return tff_pmc.build_prioritized_fed_avg(
        model,
        aggregator=tff_pmc.BASELINES["median"](),
        client_step=tff_pmc.aggregation.quantize_parameters(8),
        client_optimizer_fn=sgd(),
        local_epochs=1,
    )


def clipped(model, sgd):
    return prioritized(
        model, sgd, sums=tff_pmc.SumOptions(clip_norm=0.1), keep_own_model=(2,)
    )


def datasets_of(model, sgd):
    return prioritized(model, sgd, packed=False)


def online(model, sgd):
    return tff_pmc.build_online_adjusted_fed_avg(
        model, client_optimizer_fn=sgd(), local_epochs=1
    )


@pytest.mark.parametrize(
    "build", [prioritized, datasets_of, two_stage, adafed, quantized, clipped, online]
)
def test_weights_that_are_not_averaged_stay_to_the_bit(
    runtime, toy_examples, toy_packed_model, sgd, datasets, assert_close, build
):
    """Prioritized, the model is that in which they are constants, judged alike."""
    cohort, outcomes = [0, 2, 3], []
    tests = tff_pmc.evaluation_packs(toy_examples)
    clients = tff_pmc.pack(toy_examples, cohort, num_packs=3)
    if build is datasets_of:
        clients = datasets(toy_examples, cohort, 100)
    for fixed in (True, False) if build is prioritized else (True,):
        model = model_of(toy_packed_model, fixed)
        process = build(model, sgd)
        judge_data = (tests,) if build is online else ()
        state = process.next(process.initialize(), clients, *judge_data)[0]
        weights = process.get_model_weights(state)
        counts = ()
        if build is prioritized:
            counts = tff_pmc.build_federated_evaluation(model, 6)(weights, tests)
        outcomes.append((list(weights.trainable), counts))
        for value, before in zip(weights.non_trainable, FIXED):
            assert np.asarray(value).dtype == before.dtype
            # The quantization rounds all floats, as the paper has it.
            far = 1e-6 if build is quantized else 0
            np.testing.assert_allclose(value, before, rtol=far, atol=0)
    assert (
        np.abs(outcomes[0][0][0] - toy_packed_model.initial_weights[0][0]).max() > 1e-4
    )
    assert_close(outcomes[0][0], outcomes[-1][0], 1e-6)
    np.testing.assert_array_equal(outcomes[0][1], outcomes[-1][1])


def test_keras_layers_with_a_counter_train(runtime, build_prioritized):
    """A `Normalization` layer: TFF's own federated averaging gives the same model."""
    x = np.arange(40, dtype=np.float32).reshape(10, 4) / 10
    y = np.arange(10, dtype=np.int32) % 3
    clients = [
        tf.data.Dataset.from_tensor_slices((x[rows], y[rows])).batch(4)
        for rows in (slice(0, 3), slice(3, 10))
    ]

    def model_fn():
        layers = [
            tf.keras.layers.Normalization(mean=1.0, variance=4.0, input_shape=(4,)),
            tf.keras.layers.Normalization(axis=None),  # It counts.
            tf.keras.layers.Dense(3, kernel_initializer="ones"),
        ]
        return tff.learning.models.from_keras_model(
            tf.keras.Sequential(layers),
            tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=clients[0].element_spec,
        )

    weights = []
    for process in (
        build_prioritized(model_fn, priority=("DS",)),
        tff.learning.algorithms.build_weighted_fed_avg(
            model_fn, tff.learning.optimizers.build_sgdm(0.1)
        ),
    ):
        state, _ = process.next(process.initialize(), clients)
        weights.append(process.get_model_weights(state))
    ours, tffs = weights
    for a, b in zip(ours.trainable, tffs.trainable):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    assert len(ours.non_trainable) == 3
    for a, b in zip(ours.non_trainable, tffs.non_trainable):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
