"""The process as TFF users build on it: datasets of batches, and TFF's own loops."""

import collections

import numpy as np
import pytest

import leaf_data
from tff_pmc import criteria, processes, scores
from tff_pmc.clients import packing
from tff_pmc.clients.datasets import with_attributes

RATE = 0.1


def sgd():
    import tensorflow_federated as tff

    return tff.learning.optimizers.build_sgdm(RATE)


def datasets(examples, cohort, batch_size):
    import tensorflow as tf

    parts = [examples.client(k) for k in cohort]
    return [
        tf.data.Dataset.from_tensor_slices((p["x"], p["y"])).batch(batch_size)
        for p in parts
    ]


def assert_close(found, expected, tolerance=2e-4):
    for a, b in zip(found, expected):
        a, b = np.asarray(a, float), np.asarray(b, float)
        assert np.linalg.norm(a - b) <= tolerance * np.linalg.norm(b)


def weights_of(process, state):
    return list(process.get_model_weights(state).trainable)


def test_a_notebook_of_twenty_lines(runtime):
    """A user's own Keras model, trained with DS,LD,MD through the public API."""
    # -- the notebook -------------------------------------------------------
    import tensorflow as tf
    import tensorflow_federated as tff

    data = leaf_data.load("digits5k", partition="noniid", seed=4)

    def model_fn():
        layers = [
            tf.keras.layers.Rescaling(1 / 255, input_shape=(28, 28)),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(10),
        ]
        return tff.learning.models.from_keras_model(
            tf.keras.Sequential(layers),
            tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            input_spec=data.train.preprocess(lambda d: d.batch(8))
            .create_tf_dataset_for_client("client_000")
            .map(lambda e: (e["x"], e["y"]))
            .element_spec,
        )

    process = processes.build_prioritized_fed_avg(
        model_fn, priority=("DS", "LD", "MD"), client_optimizer_fn=sgd(), local_epochs=2
    )
    train = data.train.preprocess(lambda d: d.batch(8).map(lambda e: (e["x"], e["y"])))
    state, losses = process.initialize(), []
    for round_num in range(8):
        ids = data.client_ids[10 * round_num : 10 * round_num + 10]
        clients = [train.create_tf_dataset_for_client(k) for k in ids]
        state, metrics = process.next(state, clients)
        work = metrics["client_work"]["train"]
        losses.append(work["loss_sum"] / work["examples"])
    # -----------------------------------------------------------------------
    assert isinstance(process, tff.learning.templates.LearningProcess)
    assert work["clients"] == 10 and work["excluded"] == 0
    assert work["examples"] == 400
    # Ten clients of forty examples.
    assert metrics["aggregator"]["totals"][0] == 400
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("order", [("DS", "LD", "MD"), ("MD", "LD"), ("LD",)])
def test_both_forms_give_the_same_model(runtime, toy_examples, toy_model, order):
    """One batch a client, so that the order of examples cannot matter."""
    cohort, epochs = [0, 2, 4, 5], 3
    packed = processes.build_prioritized_fed_avg(
        toy_model, priority=order, client_optimizer_fn=sgd(), local_epochs=epochs
    )
    batches = processes.build_prioritized_fed_avg(
        toy_model,
        priority=order,
        client_optimizer_fn=sgd(),
        local_epochs=epochs,
        packed=False,
    )
    first = packed.next(packed.initialize(), packing.pack(toy_examples, cohort))
    second = batches.next(batches.initialize(), datasets(toy_examples, cohort, 100))
    assert_close(weights_of(packed, first.state), weights_of(batches, second.state))
    for name in ("clients", "excluded", "examples"):
        assert (
            first.metrics["client_work"]["train"][name]
            == second.metrics["client_work"]["train"][name]
        )
    np.testing.assert_allclose(
        first.metrics["aggregator"]["totals"],
        second.metrics["aggregator"]["totals"],
        rtol=1e-5,
    )


def test_batches_of_a_dataset_are_the_users(runtime, toy_examples, toy_model):
    """Several batches, a repeated dataset, and a client without any batch."""
    import tensorflow as tf

    process = processes.build_prioritized_fed_avg(
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


def test_batch_norm_statistics_are_averaged_with_the_same_weights(runtime):
    """Non-trainable variables, against Keras client by client."""
    import tensorflow as tf
    import tensorflow_federated as tff

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

    process = processes.build_prioritized_fed_avg(
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


def test_tffs_simulation_loop_runs_it(runtime, toy_examples, toy_model):
    import asyncio

    import tensorflow_federated as tff

    # TFF asks for the current loop; any `asyncio.run` before this leaves none.
    asyncio.set_event_loop(asyncio.new_event_loop())

    process = processes.build_prioritized_fed_avg(toy_model, client_optimizer_fn=sgd())
    seen = []
    manager = tff.program.MemoryReleaseManager()
    state = tff.simulation.run_training_process(
        training_process=process,
        training_selection_fn=lambda r: packing.pack(toy_examples, [r % 6, 5 - r % 6]),
        total_rounds=3,
        metrics_managers=[manager],
    )
    seen = manager.values()
    assert len(seen) >= 3
    assert int(state.client_work["round"]) == 3


def test_tffs_training_program_runs_it(runtime, toy_examples, toy_model, tmp_path):
    """`tff.learning.programs.train_model`, with a data source of packed clients."""
    import asyncio

    import tensorflow_federated as tff

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
            return packing.pack(toy_examples, cohort)

    class Source(tff.program.FederatedDataSource):
        @property
        def federated_type(self):
            return process.next.type_signature.parameter[1]

        @property
        def capabilities(self):
            return [tff.program.Capability.SUPPORTS_REUSE]

        def iterator(self):
            return Rounds()

    process = processes.build_prioritized_fed_avg(toy_model, client_optimizer_fn=sgd())
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


def test_inputs_and_labels_of_a_shuffled_dataset_belong_together(
    runtime, toy_examples, toy_model
):
    """A criterion of both: x is made to encode y, so all of them agree."""
    import tensorflow as tf

    agree = criteria.Criterion(
        "AG",
        "share of examples whose x encodes y",
        "this test",
        lambda client: tf.reduce_mean(
            tf.cast(
                tf.equal(tf.cast(client.x[:, 0, 0], tf.int32), client.y), tf.float32
            )
        ),
    )
    y = np.arange(40, dtype=np.int32) % 3
    x = np.zeros([40, 4, 4], np.uint8)
    x[:, 0, 0] = y
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(40).batch(6)
    process = processes.build_prioritized_fed_avg(
        toy_model,
        criteria=("DS", agree),
        priority=("DS", "AG"),
        client_optimizer_fn=sgd(),
        packed=False,
    )
    output = process.next(process.initialize(), [dataset])
    np.testing.assert_allclose(output.metrics["aggregator"]["totals"], [40, 1])


def test_a_comparison_that_fails_in_graphs_is_refused(toy_model):
    """`==` between tensors compares Python objects where TFF traces."""
    import tensorflow as tf

    wrong = criteria.Criterion(
        "EQ",
        "share of zeros",
        "this test",
        lambda client: tf.reduce_mean(tf.cast(client.y == 0, tf.float32)),
    )
    with pytest.raises(ValueError, match="EQ .*"):
        processes.build_prioritized_fed_avg(
            toy_model, criteria=("DS", wrong), client_optimizer_fn=sgd()
        )


# --- Criteria and scores of one's own ----------------------------------------


@pytest.mark.parametrize("packed", [True, False])
def test_a_criterion_and_a_score_from_a_notebook_cell(
    runtime, toy_examples, toy_model, packed
):
    """Brightness weighs: the aggregate is the mean with those weights."""
    import tensorflow as tf

    bright = criteria.Criterion(
        code="BR",
        name="mean brightness",
        source="this notebook",
        value=lambda client: tf.reduce_mean(tf.cast(client.x, tf.float32)),
    )
    score = scores.PolynomialScore("3 DS + BR", {(0,): 0.75, (1,): 0.25}, (0, 1))
    process = processes.build_prioritized_fed_avg(
        toy_model,
        criteria=("DS", bright),
        score=score,
        client_optimizer_fn=sgd(),
        packed=packed,
    )
    cohort = [0, 1, 4]
    data = (
        packing.pack(toy_examples, cohort)
        if packed
        else datasets(toy_examples, cohort, 3)
    )
    output = process.next(process.initialize(), data)
    metrics = output.metrics
    raw = np.array(
        [
            [len(part["y"]), part["x"].mean()]
            for part in map(toy_examples.client, cohort)
        ]
    )
    np.testing.assert_allclose(
        metrics["aggregator"]["totals"], raw.sum(axis=0), rtol=1e-5
    )
    # The model is the mean of the clients' models, each trained alone.
    alone = processes.build_prioritized_fed_avg(
        toy_model, priority=("DS",), client_optimizer_fn=sgd(), packed=packed
    )
    models = []
    for k in cohort:
        one = (
            packing.pack(toy_examples, [k])
            if packed
            else datasets(toy_examples, [k], 3)
        )
        models.append(weights_of(alone, alone.next(alone.initialize(), one).state))
    p = (raw / raw.sum(axis=0)) @ [0.75, 0.25]
    expected = [sum(w * part for w, part in zip(p, parts)) for parts in zip(*models)]
    assert_close(weights_of(process, output.state), expected, 1e-5)


def test_wrong_criteria_are_refused_by_name_when_the_process_is_built(toy_model):
    import tensorflow as tf

    def build(value, **options):
        own = criteria.Criterion("OWN", "mine", "this test", value)
        return processes.build_prioritized_fed_avg(
            toy_model, criteria=("DS", own), client_optimizer_fn=sgd(), **options
        )

    with pytest.raises(ValueError, match="criterion OWN gave a negative value"):
        build(lambda client: tf.constant(-0.5))
    with pytest.raises(ValueError, match="criterion OWN must give one number"):
        build(lambda client: client.y)
    with pytest.raises(ValueError, match="unknown criterion 'XX' in the ordering"):
        build(lambda client: tf.constant(1.0), priority=("OWN", "XX"))
    with pytest.raises(ValueError, match="OWN,OWN names a criterion twice"):
        build(lambda client: tf.constant(1.0), priority=("OWN", "OWN"))
    with pytest.raises(ValueError, match="OWN fails.*there is no 'battery'"):
        build(lambda client: client.attributes["battery"])


def test_forms_that_do_not_fit_are_refused(toy_model):
    def build(model, **options):
        return processes.build_prioritized_fed_avg(
            model, client_optimizer_fn=sgd(), **options
        )

    with pytest.raises(ValueError, match="need a tff.learning.models.FunctionalModel"):
        build(lambda: None, packed=True)
    for option in ({"batch_size": 3}, {"seed": 1}, {"report_num_clients": 6}):
        with pytest.raises(ValueError, match=next(iter(option))):
            build(toy_model, packed=False, **option)


# --- Attributes of clients ---------------------------------------------------


@pytest.mark.parametrize("packed", [True, False])
def test_client_attributes_are_criteria_like_any_other(
    runtime, toy_examples, toy_model, packed
):
    """An untrusted client has no weight: the model is the other one's."""
    trusted = np.array([1, 0, 1, 1, 1, 1], np.float32)
    battery = np.array([0.5, 1.0, 0.25, 0, 0, 0], np.float32)

    def build(**options):
        return processes.build_prioritized_fed_avg(
            toy_model, client_optimizer_fn=sgd(), packed=packed, **options
        )

    process = build(
        criteria=("DS", criteria.attribute("trusted"), criteria.attribute("battery")),
        client_attributes=("trusted", "battery"),
        priority=("trusted", "DS"),
    )
    alone = build(priority=("DS",))
    if packed:
        table = {"battery": battery, "trusted": trusted}  # In any order.
        data = packing.pack(toy_examples, [1, 2], attributes=table)
        single = packing.pack(toy_examples, [2])
    else:
        data = [
            with_attributes(dataset, {"trusted": trusted[k], "battery": battery[k]})
            for k, dataset in zip([1, 2], datasets(toy_examples, [1, 2], 3))
        ]
        single = datasets(toy_examples, [2], 3)
    output = process.next(process.initialize(), data)
    expected = alone.next(alone.initialize(), single)
    assert_close(
        weights_of(process, output.state), weights_of(alone, expected.state), 1e-6
    )
    np.testing.assert_allclose(output.metrics["aggregator"]["totals"], [8, 1, 1.25])


def test_an_attribute_out_of_range_is_refused(toy_examples):
    dataset = datasets(toy_examples, [0], 2)[0]
    with pytest.raises(ValueError, match="attribute battery must be in"):
        with_attributes(dataset, {"battery": 1.5})
    with pytest.raises(ValueError, match="attribute battery must be in"):
        packing.pack(toy_examples, [0], attributes={"battery": [7.0] * 6})


# --- Packing TFF's ClientData ------------------------------------------------


def test_any_client_data_can_be_packed(runtime, toy_examples, toy_model):
    import tensorflow_federated as tff

    client_data = tff.simulation.datasets.TestClientData(
        {
            f"user_{k}": collections.OrderedDict(
                x=toy_examples.client(k)["x"], y=toy_examples.client(k)["y"]
            )
            for k in range(6)
        }
    )
    shards = packing.pack_client_data(client_data, ["user_4", "user_1"], num_shards=2)
    packed = {int(e["client"]): e for shard in shards for e in shard}
    assert sorted(packed) == [1, 4]
    np.testing.assert_array_equal(packed[4]["x"], toy_examples.client(4)["x"])
    process = processes.build_prioritized_fed_avg(toy_model, client_optimizer_fn=sgd())
    ours = process.next(process.initialize(), packing.pack(toy_examples, [4, 1]))
    theirs = process.next(process.initialize(), shards)
    assert_close(
        weights_of(process, theirs.state), weights_of(process, ours.state), 1e-6
    )


@pytest.mark.parametrize("names", [("x", "y"), ("pixels", "label"), ("image", "label")])
def test_input_and_label_are_told_by_name(names):
    """TFF's EMNIST has the label before the pixels, in the alphabet's order."""
    import tensorflow_federated as tff

    x, y = np.arange(12, dtype=np.float32).reshape(3, 2, 2), np.array([5, 6, 7])
    client_data = tff.simulation.datasets.TestClientData(
        {"a": collections.OrderedDict(sorted(zip(names, (x, y))))}
    )
    (element,) = next(iter(packing.pack_client_data(client_data))).batch(1)
    np.testing.assert_array_equal(element["x"][0], x)
    np.testing.assert_array_equal(element["y"][0], y)


def test_an_element_of_another_form_is_refused():
    import tensorflow_federated as tff

    client_data = tff.simulation.datasets.TestClientData(
        {"a": collections.OrderedDict(first=np.zeros(2), second=np.zeros(2))}
    )
    with pytest.raises(ValueError, match="cannot tell input and label"):
        packing.pack_client_data(client_data)
