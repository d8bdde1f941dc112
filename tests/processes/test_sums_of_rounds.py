"""Whole rounds with other normalizations, secure sums and privacy."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores

RANGES = {"DS": (0, 1000), "LD": (0, 10), "MD": (0, 1)}


def test_a_round_with_noise_measures_counts_only(runtime, toy_examples, toy_model, sgd):
    def build(**options):
        return tff_pmc.build_prioritized_fed_avg(
            toy_model,
            priority=("DS", "LD"),
            client_optimizer_fn=sgd(),
            local_epochs=1,
            sums=tff_pmc.SumOptions("range", RANGES, clip_norm=0.5, **options),
        )

    noisy, exact = build(privacy=tff_pmc.GaussianSums(1e-6, seed=1)), build()
    clients = tff_pmc.pack(toy_examples, range(6))
    output = noisy.next(noisy.initialize(), clients)
    expected = exact.next(exact.initialize(), clients)
    assert list(output.metrics["client_work"]["train"]) == ["clients"]
    for a, b in zip(
        noisy.get_model_weights(output.state).trainable,
        exact.get_model_weights(expected.state).trainable,
    ):
        np.testing.assert_allclose(a, b, atol=1e-3)
        assert np.abs(a - b).max() > 0


@pytest.mark.parametrize("packed", [True, False])
def test_a_map_reduce_form_has_sums_only(toy_model, packed, sgd, sent_shapes):
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model,
        priority=("DS", "LD", "MD"),
        client_optimizer_fn=sgd(),
        packed=packed,
        local_epochs=1,
    )
    # Three sums of a model of two tensors, three totals, three monomials, and four
    # counts: nothing has an axis that grows with the clients.
    expected = sorted(3 * [(16, 3), (3,)] + [(3,), (3,)] + 4 * [()])
    assert sent_shapes(process) == (expected, [])


@pytest.mark.parametrize("form", ["packed", "online"])
def test_a_state_of_another_score_continues_with_the_score_of_the_process(
    runtime, toy_examples, toy_model, sgd, trained_alone, assert_close, form
):
    """As if a program is edited and resumed; `with_score` sets another score."""
    cohort = [0, 1, 2, 3]
    codes = ("DS", "LD")
    basis = scores.Basis.all_subsets(codes)
    score_of = {code: scores.single(code, codes) for code in codes}
    parts = [toy_examples.client(k)["y"] for k in cohort]
    counted = {"DS": [len(y) for y in parts], "LD": [len(set(y)) for y in parts]}

    def build(code):
        how = dict(criteria=codes, client_optimizer_fn=sgd(), local_epochs=1)
        if form == "online":
            how |= dict(
                candidates=[*score_of.values()], first=score_of[code], policy="fixed"
            )
            return tff_pmc.build_online_adjusted_fed_avg(toy_model, **how)
        how |= dict(score=score_of[code], basis=basis)
        return tff_pmc.build_prioritized_fed_avg(toy_model, **how)

    def check(process, state, code):
        first = process.get_model_weights(state).trainable
        models = [trained_alone(toy_model, toy_examples, k, first) for k in cohort]
        expected = [np.average(w, axis=0, weights=counted[code]) for w in zip(*models)]
        judges = [[]] if form == "online" else []
        state = process.next(state, tff_pmc.pack(toy_examples, cohort), *judges).state
        assert_close(process.get_model_weights(state).trainable, expected, 1e-5)
        return state

    by_size, by_labels = build("DS"), build("LD")
    state = check(by_size, by_size.initialize(), "DS")
    state = check(by_labels, state, "LD")
    if form != "online":
        state = check(by_labels, tff_pmc.with_score(state, basis, score_of["DS"]), "DS")
        check(by_labels, state, "DS")
