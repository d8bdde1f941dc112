"""Whole packed rounds of the linear model, against NumPy.

A round of a CNN against Keras is in tests/models/test_faces.py.
"""

import types

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tf, tff


@pytest.mark.parametrize("batch_size", [0, 2])
@pytest.mark.parametrize("basis", [None, scores.Basis.all_subsets(3)])
def test_three_rounds_equal_numpy(
    runtime,
    toy_examples,
    toy_model,
    batch_size,
    basis,
    build_prioritized,
    weights_of,
    assert_close,
    batch_order,
    numpy_sgd,
    numpy_criteria,
):
    """Batches, epochs, criteria, weights, server rate and rounds, all at once.

    Each round is made in one, two and four packs.
    """
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
                return batch_order(seed, round_num, k, epoch, n, batch_size)

            trained.append(numpy_sgd(model, part, epochs=epochs, batches_of=batches_of))
            raw.append(numpy_criteria(part, model, trained[-1]))
        c = np.array(raw) / np.sum(raw, axis=0)
        s = np.cumprod(c[:, order], axis=1).sum(axis=1)
        p = s / s.sum()
        model = [
            w + server_rate * sum(p[i] * (t[j] - w) for i, t in enumerate(trained))
            for j, w in enumerate(model)
        ]
        before = state
        for num_packs in (1, 2, 4):
            packs = tff_pmc.pack(toy_examples, cohort, num_packs=num_packs)
            state, _ = process.next(before, packs)
            assert_close(weights_of(process, state), model)


def halved(round_num):
    return 0.4 * 0.5 ** tf.cast(round_num, tf.float32)


def stepped(round_num):
    return 0.4 if round_num < 1 else 0.1  # Which TFF's own builder cannot trace.


def build_driven(model, **options):
    """Online adjustment with nothing to choose, as a process of two arguments."""
    online = tff_pmc.build_online_adjusted_fed_avg(
        model,
        candidates=[scores.single("DS")],
        judge=lambda *unused: np.int32(0),
        **options,
    )

    def next_round(state, packs):
        output = online.next(state, packs, [])
        return output.state, output.metrics

    return types.SimpleNamespace(
        initialize=online.initialize,
        next=next_round,
        get_model_weights=online.get_model_weights,
    )


BY_ROUND = {
    "packed": lambda *model, **options: tff_pmc.build_prioritized_fed_avg(
        *model, **options
    ),
    "datasets": lambda *model, **options: tff_pmc.build_prioritized_fed_avg(
        *model, packed=False, **options
    ),
    "factory": lambda *model, **options: tff_pmc.build_prioritized_fed_avg(
        *model, aggregator=tff_pmc.BASELINES["weighted_mean"](), **options
    ),
    "adafed": lambda *model, **options: tff_pmc.build_adafed(
        *model,
        server_examples=(np.zeros((3, 4, 4), np.uint8), np.arange(3, dtype=np.int32)),
        num_classes=3,
        adapt_loss=False,
        score=scores.single(1),
        **options,
    ),
    "online": build_driven,
}


@pytest.fixture(scope="module")
def tffs_rounds(runtime, toy_examples, toy_model, sgd, datasets):
    """The rates and models of three rounds of TFF's own builder, and the cohort."""
    cohort, rounds = [0, 2, 5], []
    process = tff.learning.algorithms.build_weighted_fed_avg_with_optimizer_schedule(
        toy_model, client_learning_rate_fn=halved, client_optimizer_fn=sgd
    )
    state = process.initialize()
    for _ in range(3):
        state, metrics = process.next(state, datasets(toy_examples, cohort, 8))
        rate = metrics["client_work"]["client_learning_rate"]
        rounds.append((rate, process.get_model_weights(state).trainable))
    return cohort, rounds


@pytest.mark.parametrize("name", BY_ROUND)
def test_the_clients_rate_by_round_is_that_of_tffs_builder(
    tffs_rounds, toy_examples, toy_model, sgd, datasets, assert_close, name
):
    """Also if a state continues in a process that is built anew."""
    cohort, expected = tffs_rounds
    data = tff_pmc.pack(toy_examples, cohort, num_packs=3)
    if name == "datasets":
        data = datasets(toy_examples, cohort, 8)

    def build():
        return BY_ROUND[name](
            toy_model,
            criteria=("DS",),
            client_optimizer_fn=sgd(9.0),  # In whose place the rate is.
            client_learning_rate_fn=halved,
            local_epochs=1,
        )

    process = build()
    state = process.initialize()
    for round_num, (rate, model) in enumerate(expected):
        if (round_num, name) == (2, "packed"):
            process = build()
        state, metrics = process.next(state, data)
        assert metrics["client_work"]["client_learning_rate"] == rate
        assert rate == np.float32(0.4 / 2**round_num)
        assert_close(process.get_model_weights(state).trainable, model, 1e-5)


@pytest.mark.parametrize("packed", [True, False])
def test_a_rate_by_round_in_plain_python(
    runtime, toy_examples, toy_model, datasets, weights_of, numpy_sgd, packed
):
    """With Adam, whose first step is the rate in each weight that has a gradient."""
    adam = tff.learning.optimizers.build_adam(9.0)
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        criteria=("DS",),
        packed=packed,
        client_optimizer_fn=adam,
        client_learning_rate_fn=stepped,
        local_epochs=1,
    )
    data = tff_pmc.pack(toy_examples, [2]) if packed else datasets(toy_examples, [2], 8)
    state = process.initialize()
    for rate in (0.4, 0.1, 0.1):
        before = weights_of(process, state)
        state, _ = process.next(state, data)
        steps = np.abs(weights_of(process, state)[1] - before[1])
        np.testing.assert_allclose(steps, rate, rtol=1e-3)
