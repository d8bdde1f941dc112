"""Clients of a round with different numbers of epochs, against NumPy."""

import numpy as np
import pytest
from quadratic import (
    SIZES,
    clients_of,
    examples_of,
    flat,
    gradient,
    linear_model,
)

import tff_pmc
from tff_pmc._lazy import LazyModule

memories = LazyModule("tff_pmc.clients.control_variates")

RATE, MU = 0.1, 0.3
COHORT = (1, 0, 5, 4, 2)
ROUNDS = ((3, 1, 0, 2, 3), (0, 0, 2, 0, 0), (1, 1, 1, 1, 1))
"""Epochs of the cohort's clients, in three rounds."""


def train_alone(client, number, w, epochs, batches, mu):
    start, number_of_steps = w, 0
    for epoch in range(epochs):
        for rows in batches(number, epoch):
            w = w - RATE * (gradient(client, w, rows) + mu * (w - start))
            number_of_steps += 1
    return w, number_of_steps


@pytest.mark.parametrize("num_packs", [1, 3])
@pytest.mark.parametrize("batch_size", [0, 2])
def test_each_client_runs_its_epochs_and_one_without_is_excluded(
    runtime, tf, sgd, batch_order, batch_size, num_packs
):
    """FedProx: the mean weighs the models of partial work by the clients' sizes."""
    clients = clients_of()
    process = tff_pmc.build_prioritized_fed_avg(
        linear_model(tf),
        criteria=("DS",),
        priority=("DS",),
        client_optimizer_fn=sgd(RATE),
        local_epochs=9,
        prox_mu=MU,
        batch_size=batch_size,
        epochs_by_client=True,
        report_cohort=len(COHORT),
    )
    state = process.initialize()
    w = flat(process.get_model_weights(state).trainable)
    for round_num, epochs in enumerate(ROUNDS):

        def batches(k, epoch, round_num=round_num):
            if not batch_size:
                return [np.arange(SIZES[k])]
            return batch_order(0, round_num, k, epoch, SIZES[k], batch_size)

        trained = {
            k: train_alone(clients[k], k, w, x, batches, MU)[0]
            for k, x in zip(COHORT, epochs)
            if x
        }
        sizes = [SIZES[k] for k in trained]
        w = np.average([*trained.values()], axis=0, weights=sizes)
        packs = tff_pmc.pack(
            examples_of(clients), COHORT, num_packs=num_packs, local_epochs=epochs
        )
        output = process.next(state, packs)
        state, train = output.state, output.metrics["client_work"]["train"]
        np.testing.assert_allclose(
            flat(process.get_model_weights(state).trainable), w, rtol=2e-4, atol=2e-5
        )
        assert train["excluded"] == epochs.count(0)
        assert train["examples"] == sum(sizes)
        excluded = np.asarray(train["excluded_by_client"]) > 0
        assert excluded.tolist() == [x == 0 for x in epochs]


def test_a_round_without_any_work_keeps_the_model(runtime, tf, sgd):
    clients = clients_of()
    process = tff_pmc.build_prioritized_fed_avg(
        linear_model(tf),
        criteria=("DS",),
        client_optimizer_fn=sgd(RATE),
        epochs_by_client=True,
    )
    state = process.initialize()
    packs = tff_pmc.pack(examples_of(clients), COHORT, local_epochs=[0] * len(COHORT))
    output = process.next(state, packs)
    before, after = (
        flat(process.get_model_weights(s).trainable) for s in (state, output.state)
    )
    assert before.tobytes() == after.tobytes()
    train = output.metrics["client_work"]["train"]
    assert train["excluded"] == len(COHORT) and np.isnan(train["loss_sum"])
    assert output.metrics["finalizer"]["update_rejected"] == 1


def test_control_variates_divide_by_the_steps_of_partial_work(runtime, tf, sgd):
    """SCAFFOLD's K is x times the batches; one that did not train keeps its c_i."""
    clients, epochs = clients_of(), ROUNDS[0]
    process = tff_pmc.build_prioritized_fed_avg(
        linear_model(tf),
        criteria=("DS^0",),
        priority=("DS^0",),
        client_optimizer_fn=sgd(RATE),
        epochs_by_client=True,
        memory=memories.ControlVariates(len(SIZES), RATE),
    )
    state = process.initialize()
    w = flat(process.get_model_weights(state).trainable)
    packs = tff_pmc.pack(examples_of(clients), COHORT, local_epochs=epochs)
    memory = process.next(state, packs).state.client_work["memory"]
    for k, x in zip(COHORT, epochs):
        y, steps = train_alone(clients[k], k, w, x, lambda *_: [slice(None)], 0.0)
        expected = (w - y) / (steps * RATE) if steps else 0 * w
        row = flat(part[k] for part in memory["rows"])
        np.testing.assert_allclose(row, expected, rtol=2e-4, atol=2e-4)
