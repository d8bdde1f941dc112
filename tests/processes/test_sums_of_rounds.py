"""Whole rounds with other normalizations, secure sums and privacy."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

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


class TestDeployment:
    """One aggregation: TFF's two deployment forms compile, with sums only."""

    @pytest.mark.parametrize("packed", [True, False])
    def test_it_compiles_to_map_reduce_form(self, toy_model, packed, sgd, flat_tensors):
        process = tff_pmc.build_prioritized_fed_avg(
            toy_model,
            priority=("DS", "LD", "MD"),
            client_optimizer_fn=sgd(),
            packed=packed,
        )
        form = tff.backends.mapreduce.get_map_reduce_form_for_computation(process.next)
        update, *secure = form.work.type_signature.result
        del secure
        # Three sums of a model of two tensors, three totals, three monomials, and
        # four counts: nothing has an axis that grows with the clients.
        shapes = [tuple(t.shape) for t in flat_tensors(update)]
        assert sorted(shapes) == sorted(3 * [(16, 3), (3,)] + [(3,), (3,)] + 4 * [()])

    def test_with_secure_sums_the_count_alone_is_in_the_clear(
        self, toy_model, sgd, flat_tensors
    ):
        secure = tff.aggregators.SecureSumFactory(100.0, -100.0)
        process = tff_pmc.build_prioritized_fed_avg(
            toy_model,
            client_optimizer_fn=sgd(),
            sums=tff_pmc.SumOptions(
                model_sum_factory=secure, scalar_sum_factory=secure
            ),
        )
        form = tff.backends.mapreduce.get_map_reduce_form_for_computation(process.next)
        clear, *secret = form.work.type_signature.result
        assert [tuple(t.shape) for t in flat_tensors(clear)] == [()]
        hidden = [tuple(t.shape) for part in secret for t in flat_tensors(part)]
        assert (16, 3) in hidden

    def test_it_compiles_to_distribute_aggregate_form(
        self, toy_model, sgd, flat_tensors
    ):
        process = tff_pmc.build_prioritized_fed_avg(
            toy_model, basis=scores.Basis.all_subsets(3), client_optimizer_fn=sgd()
        )
        form = tff.backends.mapreduce.get_distribute_aggregate_form_for_computation(
            process.next
        )
        shapes = [
            tuple(t.shape) for t in flat_tensors(form.client_work.type_signature.result)
        ]
        assert sorted(shapes) == sorted(7 * [(16, 3), (3,)] + [(3,), (7,)] + 4 * [()])
