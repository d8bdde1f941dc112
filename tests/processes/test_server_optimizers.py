"""The server's optimizers against NumPy, alone and under a search over orderings."""

import copy
import dataclasses

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tff
from tff_pmc.experiments.experiment import settings

RATE = 0.05
# The flags, and the parameters that they stand for.
CASES = {
    "sgd": ({}, {}),
    "momentum": ({}, {"momentum": 0.9}),
    "momentum, little": ({"server_momentum": 0.5}, {"momentum": 0.5}),
    "adam": ({}, {"b1": 0.9, "b2": 0.99, "eps": 1e-3}),
    "yogi": ({}, {"b1": 0.9, "b2": 0.99, "eps": 1e-3}),
    "yogi, other": (
        {"server_beta1": 0.0, "server_beta2": 0.5, "server_epsilon": 0.1},
        {"b1": 0.0, "b2": 0.5, "eps": 0.1},
    ),
    "adagrad": ({"server_epsilon": 0.2}, {"eps": 0.2}),
}


def flags(name):
    values = {"server_optimizer": name.split(",")[0], "server_learning_rate": RATE}
    return {**values, **CASES[name][0]}


def optimizer(name):
    from tff_pmc.algorithms.run_context import RunContext

    return RunContext(settings("quickstart", flags(name)), None, None).server_optimizer


class ByHand:
    """An optimizer of one array, as Hsu et al. and Reddi et al. print it."""

    def __init__(self, name, w):
        self.kind, self.constants = flags(name)["server_optimizer"], CASES[name][1]
        self.w, self.m, self.v, self.t = np.array(w, float), 0.0, 0.0, 0
        if self.kind == "yogi":
            self.v = self.constants["eps"] ** 2

    def step(self, d, rate=RATE):
        constants, self.t = self.constants, self.t + 1
        if self.kind == "sgd":
            self.w = self.w - rate * d
        elif self.kind == "momentum":
            self.m = constants["momentum"] * self.m + d
            self.w = self.w - rate * self.m
        elif self.kind == "adagrad":
            self.v = self.v + d**2
            self.w = self.w - rate * d / np.sqrt(self.v + constants["eps"] ** 2)
        else:
            b1, b2 = constants["b1"], constants["b2"]
            self.m = b1 * self.m + (1 - b1) * d
            if self.kind == "adam":
                self.v = b2 * self.v + (1 - b2) * d**2
            else:
                self.v = self.v - (1 - b2) * d**2 * np.sign(self.v - d**2)
            factor = np.sqrt(1 - b2**self.t) / (1 - b1**self.t)
            self.w = self.w - rate * factor * self.m / (
                np.sqrt(self.v) + constants["eps"]
            )
        return self.w


@pytest.mark.parametrize("name", CASES)
def test_rounds_of_known_updates_equal_numpy(runtime, name):
    """Between them two rounds in which no client counts: they leave no trace."""
    from tff_pmc.processes.server_step import build_finalizer

    generator = np.random.default_rng(3)
    first = [
        generator.normal(size=shape).astype(np.float32) for shape in ((3, 2), (2,))
    ]
    kind = tff.to_type([tff.TensorType(np.float32, w.shape) for w in first])
    type_ = tff.to_type(tff.learning.models.ModelWeights(kind, ()))
    finalizer = build_finalizer(optimizer(name), type_)
    weights = tff.learning.models.ModelWeights(first, ())
    state, by_hand = finalizer.initialize(), [ByHand(name, w) for w in first]
    for scale in (1.0, 0.0, 0.01, np.nan, 3.0):
        update = [scale * generator.normal(size=w.shape) for w in first]
        update[1][0] *= 0  # A weight that nobody changes.
        sent = [np.float32(u) for u in update]
        before = state
        output = finalizer.next(
            state, weights, tff.learning.models.ModelWeights(sent, ())
        )
        state, weights = output.state, output.result
        lost = not scale or np.isnan(scale)
        assert int(output.measurements["update_rejected"]) == lost
        if lost:
            for a, b in zip(leaves(before), leaves(state)):
                np.testing.assert_array_equal(a, b)
            continue
        for w, oracle, d in zip(weights.trainable, by_hand, update):
            np.testing.assert_allclose(w, oracle.step(d), rtol=2e-5, atol=1e-6)


def test_a_step_that_is_not_finite_is_rejected(runtime):
    from tff_pmc.processes.server_step import build_finalizer

    weights = tff.learning.models.ModelWeights((np.ones(2, np.float32),), ())
    kind = tff.learning.models.ModelWeights((tff.TensorType(np.float32, [2]),), ())
    rate = tff.learning.optimizers.build_sgdm(1e38)
    finalizer = build_finalizer(rate, tff.to_type(kind))
    update = tff.learning.models.ModelWeights((np.full(2, 10, np.float32),), ())
    output = finalizer.next(finalizer.initialize(), weights, update)
    assert int(output.measurements["update_rejected"]) == 1
    np.testing.assert_array_equal(output.result.trainable[0], [1, 1])


def leaves(state):
    structure = tff.structure.from_container(state, recursive=True)
    return [np.asarray(leaf) for leaf in tff.structure.flatten(structure)]


@pytest.mark.parametrize("name", ["momentum", "adam"])
def test_each_candidate_steps_from_the_same_state_and_one_is_kept(
    runtime, toy_examples, toy_model, sgd, name
):
    """Three rounds of a search, and of another rate, against NumPy.

    Updates are told by the same process with SGD of rate 1, which has no state.
    """

    def build(server):
        return tff_pmc.build_online_adjusted_fed_avg(
            toy_model,
            policy="best_of_all",
            client_optimizer_fn=sgd(0.5),
            server_optimizer_fn=server,
            judge=lambda *unused: np.int32(0),
            local_epochs=1,
        )

    def near(weights, expected):
        for w, v in zip(weights, expected):
            np.testing.assert_allclose(w, v, rtol=1e-4, atol=1e-5)

    online, plain = build(optimizer(name)), build(sgd(1.0))
    parts, state, of_plain = online.parts, online.initialize(), plain.initialize()
    by_hand = [ByHand(name, w) for w in toy_model.initial_weights[0]]
    for cohort, want in (([0, 2, 3], 2), ([1, 4, 5], 0), ([0, 3, 5], 5)):
        packs = tff_pmc.pack(toy_examples, cohort)
        model = online.get_model_weights(state)
        trained = parts.train(state.learning, packs)
        for candidate, score in enumerate(online.candidates):
            moved = plain.step(
                of_plain._replace(learning=with_model(of_plain.learning, model)),
                trained,
                score,
            )["weights"].trainable
            updates = [w - np.asarray(v) for w, v in zip(model.trainable, moved)]
            for rate in (None, 0.5):
                stepped = online.step(state, trained, score, rate)["weights"].trainable
                each = [copy.copy(oracle) for oracle in by_hand]
                near(stepped, [o.step(d, rate or RATE) for o, d in zip(each, updates)])
            if candidate == want:
                chosen = updates
        order = [int(state.index), *range(6)]
        order = list(dict.fromkeys(order))
        answers = iter([np.int32(index == want) for index in order])
        judged = dataclasses.replace(online, judge=lambda *_, a=answers: next(a))
        state = judged.next(state, packs, []).state
        assert int(state.index) == want
        expected = [oracle.step(d) for oracle, d in zip(by_hand, chosen)]
        near(online.get_model_weights(state).trainable, expected)


def with_model(learning, model):
    """The state of a process with another model in it."""
    return tff.learning.templates.LearningAlgorithmState(
        model,
        learning.distributor,
        learning.client_work,
        learning.aggregator,
        learning.finalizer,
    )
