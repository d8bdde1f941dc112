"""The process as TFF users build on it: datasets of batches, and TFF's own program."""

import numpy as np

import tff_pmc
from tff_pmc._lazy import tf, tff


def test_batches_of_a_dataset_are_the_users(
    runtime, toy_examples, toy_model, sgd, datasets
):
    """Several batches, a repeated dataset, and a client without any batch."""
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        priority=("DS", "LD"),
        criteria=("DS", "LD"),
        client_optimizer_fn=sgd(),
        packed=False,
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
    )
    clients = [
        tf.data.Dataset.from_tensor_slices(pair).batch(100) for pair in zip(x, y)
    ]
    state = process.next(process.initialize(), clients).state
    found = process.get_model_weights(state).non_trainable
    sizes = np.array([4, 7])
    means = np.array([0.5 * part.mean(axis=0) for part in x])
    variances = np.array([0.5 + 0.5 * part.var(axis=0) for part in x])
    weights = (sizes / sizes.sum())[:, None]
    # Whole, whatever the server's rate: they are averages and not directions.
    np.testing.assert_allclose(found[0], (weights * means).sum(axis=0), rtol=1e-4)
    np.testing.assert_allclose(found[1], (weights * variances).sum(axis=0), rtol=1e-4)


def test_tffs_training_program_runs_it(runtime, toy_examples, toy_model, tmp_path, sgd):
    """`tff.learning.programs.train_model`, with a data source of packed clients."""
    import asyncio

    class Rounds(tff.program.FederatedDataSourceIterator):
        """Counts the rounds; TFF copies and saves it beside the state."""

        def __init__(self, number=0):
            self.number = number

        @property
        def federated_type(self):
            return process.next.type_signature.parameter[1]

        def to_bytes(self):
            return bytes([self.number])

        @classmethod
        def from_bytes(cls, data):
            return cls(data[0])

        def select(self, k=None):
            self.number += 1
            cohort = [(self.number + i) % 6 for i in range(k)]
            return tff_pmc.pack(toy_examples, cohort)

    class Source(tff.program.FederatedDataSource):
        @property
        def federated_type(self):
            return process.next.type_signature.parameter[1]

        @property
        def capabilities(self):
            return [tff.program.Capability.SUPPORTS_REUSE]

        def iterator(self):
            return Rounds()

    process = tff_pmc.build_prioritized_fed_avg(toy_model, client_optimizer_fn=sgd())
    initial = process.initialize()
    metrics = tff.program.MemoryReleaseManager()
    states = tff.program.FileProgramStateManager(str(tmp_path))
    context = tff.program.NativeFederatedContext(runtime.async_context)
    with tff.framework.get_context_stack().install(context):
        asyncio.run(
            tff.learning.programs.train_model(
                train_process=process,
                initial_train_state=initial,
                train_data_source=Source(),
                train_per_round_clients=3,
                train_total_rounds=2,
                program_state_manager=states,
                model_output_manager=tff.program.MemoryReleaseManager(),
                train_metrics_manager=metrics,
                evaluation_manager=None,
                evaluation_periodicity=1,
            )
        )
    assert sorted(metrics.values()) == [1, 2]
