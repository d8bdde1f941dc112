"""Whole rounds with other normalizations, secure sums and privacy."""

import numpy as np
import pytest

import tff_pmc

RANGES = {"DS": (0, 1000), "LD": (0, 10), "MD": (0, 1)}


def test_a_round_with_noise_measures_counts_only(runtime, toy_examples, toy_model, sgd):
    def build(**options):
        return tff_pmc.build_prioritized_fed_avg(
            toy_model,
            priority=("DS", "LD"),
            client_optimizer_fn=sgd(),
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
    )
    # Three sums of a model of two tensors, three totals, three monomials, and four
    # counts: nothing has an axis that grows with the clients.
    expected = sorted(3 * [(16, 3), (3,)] + [(3,), (3,)] + 4 * [()])
    assert sent_shapes(process) == (expected, [])
