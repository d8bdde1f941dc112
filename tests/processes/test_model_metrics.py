"""The metrics of a user's model, against TFF's own federated averaging."""

import collections

import numpy as np
import pytest

import tff_pmc

OURS = ["clients", "excluded", "examples", "loss_sum"]


@pytest.fixture(scope="module")
def keras_model_fn(tf, tff):
    """Makes a `model_fn` of a Keras model of three features with metrics."""

    def make(metrics=None):
        def model_fn():
            layer = tf.keras.layers.Dense(
                3, kernel_initializer="ones", input_shape=(4, 4), name="dense"
            )
            return tff.learning.models.from_keras_model(
                tf.keras.Sequential(
                    [tf.keras.layers.Flatten(input_shape=(4, 4)), layer]
                ),
                tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
                input_spec=(
                    tf.TensorSpec([None, 4, 4], tf.float32),
                    tf.TensorSpec([None], tf.int32),
                ),
                metrics=metrics() if metrics else keras_metrics(tf),
            )

        return model_fn

    return make


def keras_metrics(tf):
    return [
        tf.keras.metrics.SparseCategoricalAccuracy(),
        tf.keras.metrics.SparseTopKCategoricalAccuracy(2, name="top_2"),
    ]


@pytest.fixture(scope="module")
def metric_model(tf, tff, toy_model):
    """The toy model with Keras metrics as functions."""
    fns = tff.learning.metrics.create_functional_metric_fns(
        lambda: collections.OrderedDict((m.name, m) for m in keras_metrics(tf))
    )
    return tff.learning.models.FunctionalModel(
        initial_weights=toy_model.initial_weights,
        predict_on_batch_fn=toy_model.predict_on_batch,
        loss_fn=toy_model.loss,
        input_spec=toy_model.input_spec,
        metrics_fns=fns,
    )


@pytest.fixture(scope="module")
def tffs_metrics(sgd):
    """The training metrics of one round of TFF's own federated averaging."""

    def run(model, clients):
        import tensorflow_federated as tff

        process = tff.learning.algorithms.build_weighted_fed_avg(
            model, client_optimizer_fn=sgd()
        )
        output = process.next(process.initialize(), clients)
        return output.metrics["client_work"]["train"]

    return run


def as_floats(dataset):
    """Inputs of a Keras model: pixels between 0 and 1."""
    import tensorflow as tf

    return dataset.map(lambda x, y: (tf.cast(x, tf.float32) / 255, y))


def check(found, expected):
    """Ours are there, and all of TFF's with the same values under the same names."""
    assert list(found) == [*OURS, *expected] and expected
    for name in expected:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5)


def test_a_model_fns_metrics_are_tffs(
    runtime, toy_examples, keras_model_fn, build_prioritized, datasets, tffs_metrics
):
    """Two epochs of several batches, which TFF is given as a repeated dataset."""
    clients = [as_floats(d) for d in datasets(toy_examples, [0, 2, 3, 5], 3)]
    ours = build_prioritized(keras_model_fn(), priority=("DS",), local_epochs=2)
    found = ours.next(ours.initialize(), clients).metrics["client_work"]["train"]
    expected = tffs_metrics(keras_model_fn(), [d.repeat(2) for d in clients])
    assert {"loss", "top_2", "sparse_categorical_accuracy"} <= set(expected)
    assert expected["num_examples"] == 2 * found["examples"] == 52
    check(found, expected)


@pytest.mark.parametrize("num_packs", [1, 3])
def test_packed_clients_metrics_are_tffs(
    runtime,
    toy_examples,
    metric_model,
    build_prioritized,
    datasets,
    tffs_metrics,
    num_packs,
):
    cohort = [0, 2, 3, 5]
    ours = build_prioritized(metric_model, priority=("DS",), local_epochs=2)
    packs = tff_pmc.pack(toy_examples, cohort, num_packs=num_packs)
    found = ours.next(ours.initialize(), packs).metrics["client_work"]["train"]
    clients = [d.repeat(2) for d in datasets(toy_examples, cohort, 100)]
    check(found, tffs_metrics(metric_model, clients))


def test_a_functional_models_metrics_are_tffs_for_datasets(
    runtime, toy_examples, metric_model, build_prioritized, datasets, tffs_metrics
):
    clients = datasets(toy_examples, [0, 2, 3, 5], 3)
    ours = build_prioritized(metric_model, priority=("DS",), packed=False)
    found = ours.next(ours.initialize(), clients).metrics["client_work"]["train"]
    check(found, tffs_metrics(metric_model, clients))


def test_a_client_left_out_counts_in_no_metric(
    runtime, toy_examples, keras_model_fn, build_prioritized, datasets, tffs_metrics
):
    import tensorflow as tf

    clients = [as_floats(d) for d in datasets(toy_examples, [0, 2], 3)]
    bad = clients[0].map(lambda x, y: (x * np.float32("nan"), y))
    ours = build_prioritized(keras_model_fn(), priority=("DS",))
    both = [bad, clients[1]]
    found = ours.next(ours.initialize(), both).metrics["client_work"]["train"]
    expected = tffs_metrics(keras_model_fn(), both)
    assert found["excluded"] == 1 and expected["num_examples"] == 5
    check(found, expected)
    del tf


def test_a_packed_client_left_out_counts_in_no_metric(
    runtime, toy_examples, metric_model, build_prioritized
):
    """A bound that no update keeps: nobody is counted."""
    sums = tff_pmc.SumOptions(max_update_norm=1e-9)
    ours = build_prioritized(metric_model, priority=("DS",), sums=sums)
    packs = tff_pmc.pack(toy_examples, [0, 2])
    found = ours.next(ours.initialize(), packs).metrics["client_work"]["train"]
    assert found["excluded"] == 2
    assert found["top_2"] == found["sparse_categorical_accuracy"] == 0
