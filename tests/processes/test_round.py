"""A whole packed round against computations that share none of its code."""

import numpy as np
import pytest

import leaf_data
import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tf, tff

RATE = 0.1  # Of the fixture `build_prioritized`.


# --- The CNN on real digits, against Keras -----------------------------------


@pytest.fixture(scope="module")
def digits():
    return leaf_data.load("digits5k", partition="noniid", seed=1).train_examples


def keras_cnn(initial):
    """The MNIST CNN as Keras has it."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Rescaling(1 / 255, input_shape=(28, 28, 1)),
            layers.Conv2D(32, 5, padding="same"),
            layers.MaxPooling2D(),
            layers.Conv2D(64, 5, padding="same"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(512, activation="relu"),
            layers.Dense(10),
        ]
    )
    model.set_weights(initial)
    return model


def keras_round(initial, examples, cohort, order, epochs, measure):
    """One round as PMC describes it: Keras trains, NumPy weighs and averages."""
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
        raw.append(measure(part, initial, trained[-1]))
    c = np.array(raw) / np.sum(raw, axis=0)
    s = np.cumprod(c[:, list(order)], axis=1).sum(axis=1)
    p = s / s.sum()
    mean = [sum(p[k] * w for k, w in enumerate(part)) for part in zip(*trained)]
    return mean, np.array(raw)


@pytest.mark.parametrize("num_packs", [1, 3])
def test_the_cnn_round_equals_keras_and_numpy(
    runtime,
    digits,
    num_packs,
    build_prioritized,
    weights_of,
    assert_close,
    numpy_criteria,
):
    """LD,DS,MD over one client in a pack and over several."""
    from tff_pmc import models

    cohort, epochs = [3, 14, 15], 3
    # From other weights two values under a maximum may be within rounding.
    model = models.mnist_cnn(seed=2)
    process = build_prioritized(
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
    expected, raw = keras_round(
        initial, digits, cohort, (1, 0, 2), epochs, numpy_criteria
    )
    table = metrics["client_work"]["train"]["criteria_by_client"]
    np.testing.assert_allclose(table[cohort], raw, rtol=1e-4)
    assert_close(weights_of(process, state), expected)
    # The comparison would mean little had the round not moved the model.
    moved = [np.linalg.norm(a - b) for a, b in zip(expected, initial)]
    assert min(moved) > 1e-3


# --- The linear model, against NumPy -----------------------------------------


def batches(seed, round_num, client, epoch, size, batch_size):
    """The documented order of a client's examples in one epoch."""
    fold = tf.random.experimental.stateless_fold_in
    key = fold(fold([seed, round_num], client), epoch)
    order = tf.random.experimental.stateless_shuffle(tf.range(size), key).numpy()
    return [order[i : i + batch_size] for i in range(0, size, batch_size)]


@pytest.mark.parametrize("batch_size", [0, 2])
@pytest.mark.parametrize("num_packs", [1, 2, 4])
@pytest.mark.parametrize("basis", [None, scores.Basis.all_subsets(3)])
def test_three_rounds_equal_numpy(
    runtime,
    toy_examples,
    toy_model,
    batch_size,
    num_packs,
    basis,
    build_prioritized,
    weights_of,
    assert_close,
    numpy_sgd,
    numpy_criteria,
):
    """Batches, epochs, criteria, weights, server rate and rounds, all at once."""
    epochs, seed, order, server_rate = 2, 9, (2, 1, 0), 0.8
    process = build_prioritized(
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

            trained.append(numpy_sgd(model, part, epochs=epochs, batches_of=batches_of))
            raw.append(numpy_criteria(part, model, trained[-1]))
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
    runtime, toy_examples, toy_model, build_prioritized, weights_of, assert_close
):
    basis = scores.Basis.all_subsets(3)
    general = build_prioritized(toy_model, priority=("DS",), basis=basis)
    packs = tff_pmc.pack(toy_examples, [1, 3, 4])
    for order in (("LD", "MD", "DS"), ("MD",)):
        state = tff_pmc.with_score(
            general.initialize(), basis, scores.prioritized(order)
        )
        found = weights_of(general, general.next(state, packs).state)
        special = build_prioritized(toy_model, priority=order)
        state = special.next(special.initialize(), packs).state
        assert_close(found, weights_of(special, state), 1e-6)
