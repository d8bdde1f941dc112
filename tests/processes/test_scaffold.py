"""SCAFFOLD against its Algorithm 1, option II, written with NumPy alone."""

import numpy as np
import pytest
from quadratic import (
    COHORTS,
    SIZES,
    TRAINABLE,
    assert_reaches_the_optimum,
    clients_of,
    examples_of,
    flat,
    gradient,
    linear_model,
    train,
)

import tff_pmc
from tff_pmc._lazy import LazyModule

memories = LazyModule("tff_pmc.clients.control_variates")
communication = LazyModule("tff_pmc.processes.communication")

RATE, EPOCHS, SERVER_RATE = 0.1, 3, 0.7


@pytest.fixture(scope="module")
def build(tf, sgd):
    """The process on the least-squares model; without a memory it is FedAvg."""

    def build_process(with_memory=True, server_rate=1.0, **options):
        memory = memories.ControlVariates(
            len(SIZES), RATE, num_trainable=len(TRAINABLE)
        )
        return tff_pmc.build_prioritized_fed_avg(
            linear_model(tf),
            criteria=("DS^0",),
            priority=("DS^0",),
            client_optimizer_fn=sgd(RATE),
            server_optimizer_fn=sgd(server_rate),
            memory=memory if with_memory else None,
            **{"local_epochs": EPOCHS, **options},
        )

    return build_process


class Oracle:
    """The lines of Algorithm 1, with N clients."""

    def __init__(self, clients, x):
        self.clients, self.x = clients, x
        self.c, self.c_i = np.zeros_like(x), [np.zeros_like(x) for _ in clients]

    def round(self, sampled, batches_of, rate=RATE):
        x, c, moved, changed = self.x, self.c, [], []
        for i in sampled:
            y, batches = x, batches_of(i)  # Line 7.
            for batch in batches:  # Lines 8 to 11.
                g = gradient(self.clients[i], y, batch)
                y = y - rate * (g - self.c_i[i] + c)
            c_plus = self.c_i[i] - c + (x - y) / (len(batches) * rate)  # Line 12, (ii).
            moved.append(y - x)  # Line 13.
            changed.append(c_plus - self.c_i[i])
            self.c_i[i] = c_plus  # Line 14.
        self.x = x + SERVER_RATE * np.mean(moved, axis=0)  # Lines 16 and 17.
        share = len(sampled) / len(TRAINABLE)
        self.c = c + share * np.mean(changed, axis=0)


@pytest.mark.parametrize("batch_size", [0, 2])
@pytest.mark.parametrize("num_packs", [1, 2])
def test_rounds_of_sampled_clients_equal_the_paper(
    runtime, build, batch_order, batch_size, num_packs
):
    """Model, c and all c_i, of clients that take different numbers of steps."""
    clients = clients_of()
    examples = examples_of(clients)
    process = build(server_rate=SERVER_RATE, batch_size=batch_size)
    state = process.initialize()
    oracle = Oracle(clients, flat(process.get_model_weights(state).trainable))
    for round_num, cohort in enumerate(COHORTS):

        def batches_of(client, round_num=round_num):
            size = SIZES[client]
            if not batch_size:
                return [np.arange(size)] * EPOCHS
            orders = (
                batch_order(0, round_num, client, epoch, size, batch_size)
                for epoch in range(EPOCHS)
            )
            return [batch for order in orders for batch in order]

        oracle.round(cohort, batches_of)
        packs = tff_pmc.pack(examples, cohort, num_packs=num_packs)
        state = process.next(state, packs).state
        memory = state.client_work["memory"]
        x = flat(process.get_model_weights(state).trainable)
        np.testing.assert_allclose(x, oracle.x, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(flat(memory["control"]), oracle.c, atol=2e-4)
        for i in range(len(SIZES)):
            row = flat(part[i] for part in memory["rows"])
            np.testing.assert_allclose(row, oracle.c_i[i], rtol=2e-4, atol=2e-4)


def test_it_reaches_the_optimum_where_fedavg_does_not(runtime, build):
    """FedAvg, which is the process without a memory, ends at another point."""
    process, fedavg = (build(memory, local_epochs=10) for memory in (True, False))
    examples, fedavg_point = assert_reaches_the_optimum(process, RATE, 10)
    reached = train(fedavg, examples, [TRAINABLE] * 60)
    np.testing.assert_allclose(reached, fedavg_point, atol=1e-4)


def test_an_excluded_client_changes_no_control_variate(runtime, build):
    clients = clients_of()
    clients[1][0][0] = np.inf
    examples = examples_of(clients)
    process = build()
    alone, with_it = (
        process.next(process.initialize(), tff_pmc.pack(examples, cohort))
        for cohort in ((0, 4), (0, 1, 4))
    )
    assert int(with_it.metrics["client_work"]["train"]["excluded"]) == 1
    memories = [output.state.client_work["memory"] for output in (alone, with_it)]
    for a, b in zip(*(flat([*m["rows"], *m["control"]])[np.newaxis] for m in memories)):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert np.all([part[1] == 0 for part in memories[1]["rows"][:1]])


def test_the_rate_of_the_round_is_used(runtime, build, tf):
    """c_i divides by the rate with which the client has trained."""
    clients = clients_of()
    examples = examples_of(clients)
    process = build(
        server_rate=SERVER_RATE,
        client_learning_rate_fn=lambda n: RATE / tf.cast(1 + n, tf.float32),
    )
    state = process.initialize()
    oracle = Oracle(clients, flat(process.get_model_weights(state).trainable))
    for n, cohort in enumerate(COHORTS[:3]):
        oracle.round(cohort, lambda i: [np.arange(SIZES[i])] * EPOCHS, RATE / (1 + n))
        state = process.next(state, tff_pmc.pack(examples, cohort)).state
    control = flat(state.client_work["memory"]["control"])
    np.testing.assert_allclose(control, oracle.c, rtol=1e-3, atol=1e-4)


def test_control_variates_are_sent_in_both_directions(build):
    """Three floats, of kernel and bias, with the model and with the update."""
    plain, scaffold = (build(with_memory).next for with_memory in (False, True))
    extra_bytes = (
        communication.traffic(scaffold).per_client_training
        - communication.traffic(plain).per_client_training
    )
    assert extra_bytes == 2 * 3 * 4
    assert (
        communication.traffic(scaffold).per_client_testing
        == communication.traffic(plain).per_client_testing
    )
    (message,) = communication.client_messages(scaffold)
    assert "control       <float32[2],float32>" in message.describe()
    assert communication.client_messages(plain)[0].control == ()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((0, 0.1), "num_clients must be at least 1, got 0"),
        ((3, 0.0), "rate must be above 0, and finite, got 0.0"),
        ((3, np.inf), "rate must be above 0"),
        ((3, 0.1, 4), "num_trainable must be from 1 to num_clients=3, got 4"),
        ((3, 0.1, 0), "num_trainable must be from 1"),
    ],
)
def test_numbers_out_of_range_are_rejected(arguments, says):
    with pytest.raises(ValueError, match=says):
        memories.ControlVariates(*arguments)


def test_memory_needs_packed_clients(build):
    with pytest.raises(ValueError, match="memory"):
        build(packed=False)
