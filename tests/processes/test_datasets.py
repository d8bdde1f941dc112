"""The process as TFF users build on it: datasets of batches, and TFF's own program."""

import asyncio
import datetime

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff


def test_the_user_determines_the_batches_of_a_dataset(
    runtime, toy_examples, toy_model, sgd, datasets
):
    """Several batches, a repeated dataset, and a client without any batch."""
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        priority=("DS", "LD"),
        criteria=("DS", "LD"),
        client_optimizer_fn=sgd(),
        packed=False,
        local_epochs=1,
    )
    clients = datasets(toy_examples, [2, 3], 2)
    empty = tf.data.Dataset.from_tensor_slices(
        (np.zeros([0, 4, 4], np.uint8), np.zeros([0], np.int32))
    ).batch(2)
    output = process.next(process.initialize(), [clients[0].repeat(2), empty])
    # Five examples twice, as TFF's own averaging counts a repeated dataset.
    np.testing.assert_array_equal(output.metrics["aggregator"]["totals"], [10, 3])
    assert output.metrics["client_work"]["train"]["examples"] == 10


def test_batch_norm_statistics_are_averaged_with_the_same_weights(runtime, sgd):
    """Non-trainable variables, against Keras client by client."""
    generator = np.random.default_rng(2)
    x = [generator.normal(k, 1 + k, (4 + 3 * k, 3)).astype(np.float32) for k in (0, 1)]
    y = [np.zeros(len(part), np.float32) for part in x]

    def keras_model():
        return tf.keras.Sequential(
            [
                tf.keras.layers.BatchNormalization(momentum=0.5, input_shape=(3,)),
                tf.keras.layers.Dense(1, kernel_initializer="ones"),
            ]
        )

    def model_fn():
        return tff.learning.models.from_keras_model(
            keras_model(),
            tf.keras.losses.MeanSquaredError(),
            input_spec=(
                tf.TensorSpec([None, 3], tf.float32),
                tf.TensorSpec([None], tf.float32),
            ),
        )

    process = tff_pmc.build_prioritized_fed_avg(
        model_fn,
        priority=("DS",),
        criteria=("DS",),
        client_optimizer_fn=sgd(),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(0.5),
        local_epochs=1,
    )
    clients = [
        tf.data.Dataset.from_tensor_slices(pair).batch(100) for pair in zip(x, y)
    ]
    state = process.next(process.initialize(), clients).state
    statistics = process.get_model_weights(state).non_trainable
    sizes = np.array([4, 7])
    means = np.array([0.5 * part.mean(axis=0) for part in x])
    variances = np.array([0.5 + 0.5 * part.var(axis=0) for part in x])
    weights = (sizes / sizes.sum())[:, None]
    # Whole, whatever the server's rate: they are averages and not directions.
    np.testing.assert_allclose(statistics[0], (weights * means).sum(axis=0), rtol=1e-4)
    np.testing.assert_allclose(
        statistics[1], (weights * variances).sum(axis=0), rtol=1e-4
    )


def random_layers(seed):
    layers = tf.keras.layers

    class Noise(layers.Layer):
        def build(self, shape):
            self.generator = tf.random.Generator.from_non_deterministic_state()

        def call(self, x):
            return x + self.generator.normal(tf.shape(x))

    yield layers.Dropout(0.5, seed=seed)
    if seed is None:
        yield layers.GaussianNoise(1.0)
        yield layers.RandomCrop(7, 7)
        yield layers.RandomZoom(0.5)
        yield Noise()


@pytest.mark.parametrize("layers_seed", [1, None])
def test_the_seed_determines_the_draws_of_random_layers(layers_seed, sgd, monkeypatch):
    """However many clients train at once; in each client and round it is another."""
    from tff_pmc.runtime import Runtime, local

    x = np.ones([4, 8, 8, 1], np.float32) * np.arange(64).reshape(8, 8, 1) / 64
    client = tf.data.Dataset.from_tensor_slices((x, np.zeros(4, np.int32))).batch(2)

    def model_fn():
        layers = [*random_layers(layers_seed), tf.keras.layers.Flatten()]
        dense = tf.keras.layers.Dense(2, kernel_initializer="zeros")
        return tff.learning.models.from_keras_model(
            tf.keras.Sequential([tf.keras.Input((8, 8, 1)), *layers, dense]),
            tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=client.element_spec,
        )

    def build(seed):
        return tff_pmc.build_prioritized_fed_avg(
            *(model_fn,),
            criteria=("DS",),
            client_optimizer_fn=sgd(),
            seed=seed,
            local_epochs=1,
        )

    def rounds(process, at_once, clients=6):
        monkeypatch.setattr(local, "PACKS_AT_ONCE", at_once)
        state, kernels = process.initialize(), []
        for _ in range(2):
            state = process.next(state, [client] * clients).state
            kernels.append(process.get_model_weights(state).trainable[0])
        return kernels

    with Runtime("local"):
        process, again, other = build(0), build(0), build(1)
        first = rounds(process, 1)
        for kernels in (rounds(process, 4), rounds(again, 4)):
            np.testing.assert_array_equal(first, kernels)
        assert not np.array_equal(first, rounds(other, 4))
        # One drawing for all clients would make their mean each one's.
        assert not np.allclose(first, rounds(process, 1, clients=1))


def test_a_dataset_without_an_end_is_reported_once(
    runtime, keras_model_fn, toy_examples, float_datasets, sgd, monkeypatch, capfd
):
    from tff_pmc.clients import dataset_training

    monkeypatch.setattr(dataset_training, "MAX_EXPECTED_EXAMPLES", 9)
    process = tff_pmc.build_prioritized_fed_avg(
        *(keras_model_fn(),),
        criteria=("DS",),
        client_optimizer_fn=sgd(),
        local_epochs=1,
    )
    evaluate = tff_pmc.build_federated_evaluation(keras_model_fn())
    few, many = float_datasets(toy_examples, [2, 3], 2)
    size = int(many.unbatch().reduce(0, lambda n, *_: n + 1))
    state = process.initialize()
    process.next(state, [few, many.repeat(30 // size)])
    said = "a client's dataset has not ended after 9 examples"
    assert capfd.readouterr().err.count(said) == 1
    evaluate(process.get_model_weights(state), [few, many.repeat(30 // size)])
    assert capfd.readouterr().err.count(said) == 1


def test_sequences_of_any_length_are_joined(runtime, sgd):
    """Padded by batch, and to the longest where a criterion looks at all of them."""
    x = [np.arange(1, n + 2, dtype=np.int32) for n in (1, 4, 2, 0, 3)]
    ragged = tf.data.Dataset.from_generator(
        lambda: ((part, len(part) % 2) for part in x),
        output_signature=(tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)),
    )
    client = ragged.padded_batch(2, ([None], []))

    def model_fn():
        layers = tf.keras.layers
        return tff.learning.models.from_keras_model(
            tf.keras.Sequential(
                [
                    tf.keras.Input([None], dtype=tf.int32),
                    *(layers.Embedding(9, 2), layers.GlobalAveragePooling1D()),
                    layers.Dense(2),
                ]
            ),
            tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=client.element_spec,
        )

    tokens = tff_pmc.criteria.Criterion(
        "TOK", "tokens", "a test", lambda client: tf.math.count_nonzero(client.x)
    )
    process = tff_pmc.build_prioritized_fed_avg(
        model_fn,
        criteria=("DS", "LD", tokens),
        client_optimizer_fn=sgd(),
        local_epochs=1,
    )
    metrics = process.next(process.initialize(), [client]).metrics
    expected = [len(x), 2, sum(map(len, x))]
    np.testing.assert_array_equal(metrics["aggregator"]["totals"], expected)


def test_a_tff_program_runs_in_the_runtime_and_resumes(
    runtime, toy_examples, toy_model, tmp_path, sgd
):
    """Killed after a round it comes to the same bits; evaluation runs concurrently."""
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model, client_optimizer_fn=sgd(), local_epochs=1
    )
    tests = tff.simulation.datasets.ClientData.from_clients_and_tf_fn(
        list("012345"),
        lambda name: tf.data.Dataset.from_tensors(
            (tf.ones([4, 4, 4], tf.uint8), tf.zeros([4], tf.int32))
        ),
    )

    def program(folder, rounds):
        def states(name):
            return tff.program.FileProgramStateManager(folder / name)

        def evaluation(_):
            return tff.learning.algorithms.build_fed_eval(toy_model), None

        metrics, judged, models = (tff.program.MemoryReleaseManager() for _ in "123")
        asyncio.run(
            tff.learning.programs.train_model(
                train_process=process,
                train_data_source=tff_pmc.data_source(toy_examples, seed=3),
                train_per_round_clients=3,
                train_total_rounds=rounds,
                program_state_manager=states("program"),
                model_output_manager=models,
                train_metrics_manager=metrics,
                evaluation_manager=tff.learning.programs.EvaluationManager(
                    tff_pmc.data_source(tests),
                    *(judged, states, evaluation),
                    cohort_size=6,
                    duration=datetime.timedelta(0),
                ),
                evaluation_periodicity=2,
            )
        )
        (state,) = models.values().values()
        return sorted(metrics.values()), sorted(judged.values()), state

    *numbers, whole = program(tmp_path / "whole", 3)
    assert numbers == [[1, 2, 3], [2, 3]]
    assert program(tmp_path / "parts", 1)[:2] == ([1], [1])
    *numbers, parts = program(tmp_path / "parts", 3)
    assert numbers == [[2, 3], [2, 3]]
    tf.nest.map_structure(np.testing.assert_array_equal, whole, parts)
