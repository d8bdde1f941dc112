"""FedDyn against its Algorithm 1, written with NumPy alone."""

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
)

import tff_pmc
from tff_pmc._lazy import LazyModule

options_of_training = LazyModule("tff_pmc.clients.training_options")
communication = LazyModule("tff_pmc.processes.communication")
fed_dyn = LazyModule("tff_pmc.processes.fed_dyn")

RATE, STEPS, ALPHA = 0.1, 10, 1.0


@pytest.fixture(scope="module")
def build(tf, sgd):
    """The process on the least-squares model."""

    def build_process(**options):
        training = options_of_training.Training(
            **{"local_epochs": STEPS, **options.pop("training", {})}
        )
        return fed_dyn.build_fed_dyn(
            linear_model(tf),
            client_optimizer_fn=sgd(RATE),
            training=training,
            **{
                "num_clients": len(SIZES),
                "num_trainable": len(TRAINABLE),
                "alpha": ALPHA,
                **options,
            },
        )

    return build_process


class Oracle:
    """The lines of Algorithm 1, with m clients and gradient descent for arg min."""

    def __init__(self, clients, theta):
        self.clients, self.theta = clients, theta
        self.h = np.zeros_like(theta)
        self.gradients = [np.zeros_like(theta) for _ in clients]

    def round(self, sampled):
        thetas = []
        for k in sampled:
            theta = self.theta
            for _ in range(STEPS):
                slope = gradient(self.clients[k], theta) - self.gradients[k]
                theta = theta - RATE * (slope + ALPHA * (theta - self.theta))
            self.gradients[k] = self.gradients[k] - ALPHA * (theta - self.theta)
            thetas.append(theta)
        moved = np.sum([theta - self.theta for theta in thetas], axis=0)
        self.h = self.h - ALPHA / len(TRAINABLE) * moved
        self.theta = np.mean(thetas, axis=0) - self.h / ALPHA


@pytest.mark.parametrize("num_packs", [1, 2])
def test_rounds_of_sampled_clients_equal_the_paper(runtime, build, num_packs):
    """Model, h and all clients' gradients."""
    clients = clients_of()
    examples = examples_of(clients)
    process = build()
    state = process.initialize()
    oracle = Oracle(clients, flat(process.get_model_weights(state).trainable))
    for cohort in COHORTS:
        oracle.round(cohort)
        packs = tff_pmc.pack(examples, cohort, num_packs=num_packs)
        state = process.next(state, packs).state
        theta = flat(process.get_model_weights(state).trainable)
        np.testing.assert_allclose(theta, oracle.theta, rtol=2e-4, atol=2e-5)
        np.testing.assert_allclose(flat(state.aggregator["h"]), oracle.h, atol=2e-5)
        for k in range(len(SIZES)):
            rows = state.client_work["memory"]["rows"]
            row = flat(part[k] for part in rows)
            np.testing.assert_allclose(row, oracle.gradients[k], rtol=2e-4, atol=2e-5)


def test_it_reaches_the_optimum_where_fedavg_does_not(runtime, build):
    assert_reaches_the_optimum(build(), RATE, STEPS)


def test_excluded_clients_change_nothing(runtime, build):
    """One among others, and one that is alone: the model does not move by h."""
    clients = clients_of()
    clients[1][0][0] = np.inf
    examples = examples_of(clients)
    process = build()
    first = process.initialize()
    alone, with_it = (
        process.next(first, tff_pmc.pack(examples, cohort)).state
        for cohort in ((0, 4), (0, 1, 4))
    )
    assert_states_equal(process, alone, with_it)
    output = process.next(with_it, tff_pmc.pack(examples, (1,)))
    assert int(output.metrics["finalizer"]["update_rejected"]) == 1
    assert_states_equal(process, output.state, with_it)
    assert flat(with_it.aggregator["h"]).any()


def assert_states_equal(process, a, b):
    for part in (
        lambda state: process.get_model_weights(state).trainable,
        lambda state: state.aggregator["h"],
        lambda state: [rows.ravel() for rows in state.client_work["memory"]["rows"]],
    ):
        np.testing.assert_allclose(flat(part(a)), flat(part(b)), rtol=1e-6)


def test_clients_send_and_receive_as_in_fedavg(build, tf, sgd):
    plain = tff_pmc.build_prioritized_fed_avg(
        linear_model(tf),
        criteria=("DS^0",),
        priority=("DS^0",),
        client_optimizer_fn=sgd(RATE),
    )
    assert communication.traffic(build().next) == communication.traffic(plain.next)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"alpha": 0.0}, "alpha must be above 0, and finite, got 0.0"),
        ({"num_clients": 0}, "num_clients must be at least 1, got 0"),
        ({"num_trainable": 7}, "num_trainable must be from 1 to num_clients=6, got 7"),
        (
            {"training": {"prox_mu": 0.1}},
            "FedDyn sets prox_mu and memory itself: remove them",
        ),
        ({"training": {"keep_own_model": (1,)}}, "keep_own_model"),
        ({"training": {"packed": False}}, "memory"),
        ({"clip_norm": 1.0}, "clip_norm cannot be combined with FedDyn"),
    ],
)
def test_meaningless_options_are_rejected(build, options, says):
    options = dict(options)
    if "clip_norm" in options:
        options["sums"] = tff_pmc.SumOptions(clip_norm=options.pop("clip_norm"))
    with pytest.raises(ValueError, match=says):
        build(**options)
