"""A round's models under other weightings, against NumPy and against nothing asked."""

import itertools

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

CODES = ("DS", "LD", "MD")
COHORT = [0, 2, 3, 5]
ORDERS = [(code,) for code in CODES] + list(itertools.permutations(CODES))


def build(model, **options):
    return tff_pmc.build_online_adjusted_fed_avg(
        model,
        policy="fixed",
        criteria=CODES,
        candidates=[scores.single("DS", CODES)],
        others=[scores.prioritized(order, CODES) for order in ORDERS],
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.3),
        local_epochs=2,
        **options,
    )


def model_by_hand(initial, sums, subsets, order, rate=1.0):
    """The model of an ordering from a round's sums: products over the prefixes."""
    columns = [CODES.index(code) for code in order]
    total, update = 0.0, [np.zeros_like(w) for w in initial]
    scales = np.asarray(sums["scales"], np.float64)
    for size in range(1, len(columns) + 1):
        prefix = tuple(sorted(columns[:size]))
        place = subsets.index(prefix)
        factor = 1 / np.prod(scales[list(prefix)])
        total += factor * float(np.asarray(sums["monomials"])[place])
        trainable = [np.asarray(w) for w in sums["models"][place].trainable]
        update = [u + factor * w for u, w in zip(update, trainable)]
    return [w - rate * u / total for w, u in zip(initial, update)]


def correct_by_hand(weights, examples):
    kernel, bias = weights
    x = examples.x.reshape(len(examples.y), -1) / np.float32(255)
    return int(((x @ kernel + bias).argmax(1) == examples.y).sum())


def test_effects_equal_those_of_models_computed_from_the_sums(
    runtime, toy_examples, toy_model
):
    online = build(toy_model)
    packs = tff_pmc.pack(toy_examples, COHORT)
    tests = tff_pmc.evaluation_packs(toy_examples)
    state = online.initialize()
    orderings = [scores.prioritized(order, CODES) for order in ORDERS]
    table = tff_pmc.counterfactuals(online, state, packs, tests, orderings, (0.5, 2.0))
    sums = online.parts.train(state.learning, packs)["sums"]
    subsets = list(online.parts.basis.products)
    initial = [np.asarray(w) for w in online.get_model_weights(state).trainable]
    expected = [
        correct_by_hand(by_hand, toy_examples)
        for order in ORDERS
        for by_hand in (
            model_by_hand(initial, sums, subsets, order, rate) for rate in (0.5, 2.0)
        )
    ]
    assert len(set(expected)) > 2  # The weightings are told apart.
    assert table["correct"].tolist() == expected
    assert table["rate"].tolist() == [0.5, 2.0] * len(ORDERS)
    assert table["score"].tolist()[::2] == [",".join(order) for order in ORDERS]
    # Asking changes nothing.
    plain = build(toy_model)
    plain_output = plain.next(plain.initialize(), packs, tests)
    output = online.next(state, packs, tests)
    for ours, theirs in zip(
        online.get_model_weights(output.state).trainable,
        plain.get_model_weights(plain_output.state).trainable,
    ):
        np.testing.assert_array_equal(ours, theirs)


def test_invalid_requests_are_named(runtime, toy_examples, toy_model):
    online = build(toy_model)
    packs = tff_pmc.pack(toy_examples, COHORT)
    tests = tff_pmc.evaluation_packs(toy_examples)
    state = online.initialize()
    with pytest.raises(ValueError, match="OWA.*needs the sums"):
        tff_pmc.counterfactuals(online, state, packs, tests, [scores.owa("all")])

    class Fixed(tff.learning.optimizers.Optimizer):
        """It rates need a server optimizer with a learning rate."""

        def initialize(self, specs):
            return ()

        def next(self, state, weights, gradients):
            return state, weights

    process = build(toy_model, server_optimizer_fn=Fixed())
    with pytest.raises(ValueError, match="rates need a server optimizer with"):
        arguments = process.initialize(), packs, tests
        tff_pmc.counterfactuals(process, *arguments, rates=(0.5,))


def test_training_and_a_secure_judge_compile_for_deployment(
    runtime, toy_examples, toy_model
):
    """Both are one broadcast and one aggregation; the judge's sum is secure."""
    hiding = tff_pmc.SumOptions(
        scalar_sum_factory=tff.aggregators.SecureSumFactory(1e6, -1e6)
    )
    secure, plain = build(toy_model, sums=hiding), build(toy_model)
    for computation in (secure.parts.train, secure.judge):
        assert as_form(computation)
    kinds = str(secure.judge.to_building_block())
    assert "secure_sum" in kinds and "federated_sum" not in kinds
    tests = tff_pmc.evaluation_packs(toy_examples)
    model = plain.get_model_weights(plain.initialize())
    assert int(secure.judge(model, tests)) == int(plain.judge(model, tests))


def as_form(computation):
    """Compiles a computation of the server's and the clients' data to the form."""
    server, clients = computation.type_signature.parameter

    @tff.federated_computation(server, clients)
    def whole(state, data):
        result = computation(state, data)
        is_zipped = isinstance(computation.type_signature.result, tff.FederatedType)
        return state, result if is_zipped else tff.federated_zip(result)

    return tff.backends.mapreduce.get_map_reduce_form_for_computation(whole)
