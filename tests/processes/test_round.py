"""A whole packed round against computations that share none of its code."""

import numpy as np
import pytest

import leaf_data
import tff_pmc
from tff_pmc import criteria, scores

RATE = 0.1
TOLERANCE = 2e-4  # Relative L2 per tensor: float32 sums in another order.


def assert_close(found, expected, tolerance=TOLERANCE):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        a, b = np.asarray(a, float), np.asarray(b, float)
        assert np.linalg.norm(a - b) <= tolerance * np.linalg.norm(b)


def build(model, **options):
    import tensorflow_federated as tff

    return tff_pmc.processes.build_prioritized_fed_avg(
        model,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
        **options,
    )


def weights_of(process, state):
    return [np.asarray(w) for w in process.get_model_weights(state).trainable]


# --- The CNN on real digits, against Keras -----------------------------------


@pytest.fixture(scope="module")
def digits():
    return leaf_data.load("digits5k", partition="noniid", seed=1).train_examples


def keras_cnn(initial):
    """The MNIST CNN as Keras has it."""
    import tensorflow as tf

    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Rescaling(1 / 255, input_shape=(28, 28, 1)),
            layers.Conv2D(32, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 5, padding="same", activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.set_weights(initial)
    return model


def keras_round(initial, examples, cohort, order, epochs):
    """One round as PMC describes it: Keras trains, NumPy weighs and averages."""
    import tensorflow as tf

    trained, raw = [], []
    for k in cohort:
        model = keras_cnn(initial)
        part = examples.client(k)
        model.compile(
            tf.keras.optimizers.SGD(RATE),
            tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        model.fit(
            part["x"][..., None],
            part["y"],
            batch_size=len(part["y"]),
            epochs=epochs,
            verbose=0,
        )
        trained.append(model.get_weights())
        norm = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(trained[-1], initial)))
        raw.append([len(part["y"]), len(set(part["y"])), 1 / np.sqrt(norm + 1)])
    c = np.array(raw) / np.sum(raw, axis=0)
    s = np.cumprod(c[:, list(order)], axis=1).sum(axis=1)
    p = s / s.sum()
    mean = [sum(p[k] * w for k, w in enumerate(part)) for part in zip(*trained)]
    return mean, np.array(raw)


@pytest.mark.parametrize("num_packs", [1, 3])
def test_the_cnn_round_equals_keras_and_numpy(runtime, digits, num_packs):
    """LD,DS,MD over one client in a pack and over several."""
    from tff_pmc import models

    cohort, epochs = [3, 14, 15], 3
    model = models.mnist_cnn(seed=5)
    process = build(
        model,
        priority=("LD", "DS", "MD"),
        local_epochs=epochs,
        report_num_clients=digits.num_clients,
    )
    state = process.initialize()
    initial = weights_of(process, state)
    packs = tff_pmc.pack(digits, cohort, num_packs=num_packs)
    assert len(packs) == num_packs
    state, metrics = process.next(state, packs)
    expected, raw = keras_round(initial, digits, cohort, (1, 0, 2), epochs)
    table = metrics["client_work"]["train"]["criteria_by_client"]
    np.testing.assert_allclose(table[cohort], raw, rtol=1e-4)
    assert_close(weights_of(process, state), expected)
    # The comparison would mean little had the round not moved the model.
    moved = [np.linalg.norm(a - b) for a, b in zip(expected, initial)]
    assert min(moved) > 1e-3


def test_ds_alone_is_tffs_own_weighted_fed_avg(runtime, toy_examples, toy_model):
    """The same clients, sizes and full batches through `tff.learning`."""
    import tensorflow as tf
    import tensorflow_federated as tff

    cohort, epochs = [0, 2, 3, 5], 4
    ours = build(toy_model, priority=("DS",), local_epochs=epochs)
    state, _ = ours.next(ours.initialize(), tff_pmc.pack(toy_examples, cohort))
    theirs = tff.learning.algorithms.build_weighted_fed_avg(
        toy_model,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0),
    )
    datasets = []
    for k in cohort:
        part = toy_examples.client(k)
        one = tf.data.Dataset.from_tensors((part["x"], part["y"]))
        datasets.append(one.repeat(epochs))
    expected = theirs.next(theirs.initialize(), datasets).state
    assert_close(weights_of(ours, state), weights_of(theirs, expected))


# --- The linear model, against NumPy -----------------------------------------


def batches(seed, round_num, client, epoch, size, batch_size):
    """The documented order of a client's examples in one epoch."""
    import tensorflow as tf

    fold = tf.random.experimental.stateless_fold_in
    key = fold(fold([seed, round_num], client), epoch)
    order = tf.random.experimental.stateless_shuffle(tf.range(size), key).numpy()
    return [order[i : i + batch_size] for i in range(0, size, batch_size)]


def numpy_sgd(initial, x, y, epochs, batches_of):
    """SGD on a softmax regression, written with NumPy alone."""
    kernel, bias = (w.astype(float) for w in initial)
    x = x.reshape(len(x), -1) / 255.0
    for epoch in range(epochs):
        for batch in batches_of(epoch):
            logits = x[batch] @ kernel + bias
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            error = (p - np.eye(3)[y[batch]]) / len(batch)
            kernel = kernel - RATE * x[batch].T @ error
            bias = bias - RATE * error.sum(axis=0)
    return [kernel, bias]


@pytest.mark.parametrize("batch_size", [0, 2])
@pytest.mark.parametrize("num_packs", [1, 2, 4])
@pytest.mark.parametrize("basis", [None, scores.Basis.all_subsets(3)])
def test_three_rounds_equal_numpy(
    runtime, toy_examples, toy_model, batch_size, num_packs, basis
):
    """Batches, epochs, criteria, weights, server rate and rounds, all at once."""
    import tensorflow_federated as tff

    epochs, seed, order, server_rate = 2, 9, (2, 1, 0), 0.8
    process = build(
        toy_model,
        priority=("MD", "LD", "DS"),
        basis=basis,
        local_epochs=epochs,
        batch_size=batch_size,
        seed=seed,
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(server_rate),
    )
    state = process.initialize()
    model = weights_of(process, state)
    for round_num, cohort in enumerate([[0, 1, 4, 5], [2, 3, 4, 0], [5, 1, 2, 3]]):
        trained, raw = [], []
        for k in cohort:
            part = toy_examples.client(k)
            n = len(part["y"])

            def batches_of(epoch, k=k, n=n, round_num=round_num):
                if not batch_size:
                    return [np.arange(n)]
                return batches(seed, round_num, k, epoch, n, batch_size)

            trained.append(numpy_sgd(model, part["x"], part["y"], epochs, batches_of))
            norm = np.sqrt(
                sum(((a - b) ** 2).sum() for a, b in zip(trained[-1], model))
            )
            raw.append([n, len(set(part["y"])), 1 / np.sqrt(norm + 1)])
        c = np.array(raw) / np.sum(raw, axis=0)
        s = np.cumprod(c[:, order], axis=1).sum(axis=1)
        p = s / s.sum()
        model = [
            w + server_rate * sum(p[i] * (t[j] - w) for i, t in enumerate(trained))
            for j, w in enumerate(model)
        ]
        packs = tff_pmc.pack(toy_examples, cohort, num_packs=num_packs)
        state, _ = process.next(state, packs)
        assert_close(weights_of(process, state), model)


def test_any_ordering_over_the_basis_without_another_process(
    runtime, toy_examples, toy_model
):
    basis = scores.Basis.all_subsets(3)
    general = build(toy_model, priority=("DS",), basis=basis)
    packs = tff_pmc.pack(toy_examples, [1, 3, 4])
    for order in (("LD", "MD", "DS"), ("MD",)):
        state = tff_pmc.processes.with_score(
            general.initialize(), basis, scores.prioritized(order)
        )
        found = weights_of(general, general.next(state, packs).state)
        special = build(toy_model, priority=order)
        state = special.next(special.initialize(), packs).state
        assert_close(found, weights_of(special, state), 1e-6)


# --- What a round refuses and survives ---------------------------------------


def test_a_client_that_diverges_is_left_out_and_counted(
    runtime, toy_examples, toy_model
):
    """One client's criterion is NaN: the model is the others' mean."""
    import tensorflow as tf

    broken = criteria.Criterion(
        "BR",
        "NaN for the client of five examples",
        "this test",
        lambda client: tf.where(tf.equal(tf.shape(client.y)[0], 5), np.nan, 1.0),
    )
    process = build(toy_model, priority=("BR", "DS"), criteria=("DS", broken))
    state, metrics = process.next(
        process.initialize(), tff_pmc.pack(toy_examples, [0, 2, 3])
    )
    healthy, _ = process.next(process.initialize(), tff_pmc.pack(toy_examples, [0, 3]))
    assert metrics["client_work"]["train"]["excluded"] == 1
    assert metrics["client_work"]["train"]["clients"] == 3
    assert_close(weights_of(process, state), weights_of(process, healthy), 1e-6)


def test_an_update_that_is_not_finite_is_left_out(runtime, toy_examples, toy_model):
    import tensorflow_federated as tff

    process = tff_pmc.processes.build_prioritized_fed_avg(
        toy_model,
        priority=("DS",),
        criteria=("DS",),
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(float("inf")),
    )
    before = process.initialize()
    state, metrics = process.next(before, tff_pmc.pack(toy_examples, [2, 5]))
    assert metrics["client_work"]["train"]["excluded"] == 2
    assert metrics["finalizer"]["update_rejected"] == 1
    assert_close(weights_of(process, state), weights_of(process, before), 0)


def test_all_scores_zero_leave_model_and_optimizer_as_they_are(
    runtime, toy_examples, toy_model
):
    import tensorflow as tf
    import tensorflow_federated as tff

    zero = criteria.Criterion("ZE", "zero", "this test", lambda _: tf.constant(0.0))
    process = build(
        toy_model,
        priority=("ZE", "DS"),
        criteria=("DS", zero),
        server_optimizer_fn=tff.learning.optimizers.build_sgdm(1.0, momentum=0.9),
    )
    before = process.initialize()
    state, metrics = process.next(before, tff_pmc.pack(toy_examples, [0, 1]))
    assert metrics["aggregator"]["score"] == 0
    assert metrics["finalizer"]["update_rejected"] == 1
    assert_close(weights_of(process, state), weights_of(process, before), 0)
    for a, b in zip(
        tf.nest.flatten(state.finalizer), tf.nest.flatten(before.finalizer)
    ):
        np.testing.assert_array_equal(a, b)


def test_a_negative_criterion_is_refused_by_name(runtime, toy_examples, toy_model):
    import tensorflow as tf

    bad = criteria.Criterion(
        "NEG", "4 - size", "this test", lambda client: 4 - tf.shape(client.y)[0]
    )
    process = build(toy_model, priority=("NEG",), criteria=("DS", bad))
    with pytest.raises(Exception, match="criterion NEG gave a negative value"):
        process.next(process.initialize(), tff_pmc.pack(toy_examples, [0]))


def test_what_cannot_be_built_is_refused_by_name(toy_model):
    import tensorflow as tf
    import tensorflow_federated as tff

    vector = criteria.Criterion("VEC", "a vector", "this test", lambda c: c.y)
    with pytest.raises(ValueError, match="criterion VEC must give one number"):
        build(toy_model, priority=("VEC",), criteria=(vector,))
    with pytest.raises(ValueError, match="unknown criterion 'XX'"):
        build(toy_model, priority=("XX",))
    with pytest.raises(ValueError, match="twice"):
        build(toy_model, criteria=("DS", "DS"))
    with pytest.raises(ValueError, match="needs the sums"):
        build(
            toy_model,
            priority=("MD",),
            basis=scores.Basis.of(3, [scores.prioritized((0,))]),
        )
    with pytest.raises(ValueError, match="local_epochs"):
        build(toy_model, local_epochs=0)
    with pytest.raises(TypeError, match="client_optimizer_fn"):
        tff_pmc.processes.build_prioritized_fed_avg(
            toy_model, client_optimizer_fn=tf.keras.optimizers.SGD(0.1)
        )
    assert isinstance(
        build(toy_model, priority=("MW", "DS")), tff.learning.templates.LearningProcess
    )


def test_the_server_receives_sums_only(toy_model):
    """Without the simulation's report no measurement grows with the cohort."""
    process = build(toy_model, basis=scores.Basis.all_subsets(3))
    measured = process.next.type_signature.result.metrics.member
    assert "criteria_by_client" not in str(measured)
