"""What may be plugged into the one aggregation: normalization, sums, privacy."""

import itertools

import numpy as np
import pytest

from tff_pmc import processes, scores
from tff_pmc.aggregation import GaussianSums, PrioritizedMeanFactory
from tff_pmc.clients import packing

RAW = np.array([[600, 2, 0.5], [20, 4, 0.8], [100, 1, 0.9]], np.float32)
UPDATES = np.array([[1, 2], [3, -1], [0, 5]], np.float32)
RANGES = {"DS": (0, 1000), "LD": (0, 10), "MD": (0, 1)}


def sgd(rate=0.1):
    import tensorflow_federated as tff

    return tff.learning.optimizers.build_sgdm(rate)


def hand_mean(raw, updates, order, scale):
    """The weighted mean with criteria divided by `scale`, client by client."""
    c = raw / scale
    s = np.array([np.cumprod(row[list(order)]).sum() for row in c])
    return (s[:, None] * updates).sum(axis=0) / s.sum()


def create(factory):
    import tensorflow_federated as tff

    return factory.create(tff.TensorType(np.float32, [2]), factory.weight_type)


class TestFactory:
    @pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
    def test_it_is_the_prioritized_mean(self, runtime, order):
        process = create(PrioritizedMeanFactory(("DS", "LD", "MD"), order))
        output = process.next(process.initialize(), list(UPDATES), list(RAW))
        expected = hand_mean(RAW, UPDATES, order, RAW.sum(axis=0))
        np.testing.assert_allclose(output.result, expected, rtol=1e-5)

    def test_it_is_an_aggregation_process_with_a_documented_type(self):
        import tensorflow_federated as tff

        factory = PrioritizedMeanFactory(("DS", "LD"), ("LD", "DS"))
        assert isinstance(factory, tff.aggregators.WeightedAggregationFactory)
        process = create(factory)
        assert isinstance(process, tff.templates.AggregationProcess)
        assert "float32[2]@SERVER" in str(process.next.type_signature.result.result)

    def test_updates_that_are_not_finite_are_left_out(self, runtime):
        process = create(PrioritizedMeanFactory(("DS",), ("DS",)))
        updates = [UPDATES[0], np.array([np.inf, 0], np.float32), UPDATES[2]]
        raw = [row[:1] for row in RAW]
        output = process.next(process.initialize(), updates, raw)
        np.testing.assert_allclose(
            output.result, (600 * UPDATES[0] + 100 * UPDATES[2]) / 700, rtol=1e-6
        )

    def test_clipping_comes_before_the_monomials(self, runtime):
        """(3, 4) is clipped to the norm 1 and then weighed 30 : 10."""
        factory = PrioritizedMeanFactory(("DS",), ("DS",), clip_norm=1.0)
        process = create(factory)
        output = process.next(
            process.initialize(),
            [np.array([3, 4], np.float32), np.array([0.5, 0], np.float32)],
            [np.array([30], np.float32), np.array([10], np.float32)],
        )
        np.testing.assert_allclose(
            output.result, [0.75 * 0.6 + 0.25 * 0.5, 0.75 * 0.8], rtol=1e-6
        )

    @pytest.mark.parametrize("method", ["sum", "max"])
    def test_two_stages_sort_normalized_criteria(self, runtime, method):
        """OWA from the largest to the smallest, each client by itself."""
        normalization = scores.Normalization(method)
        weights = (0.5, 0.3, 0.2)
        options = dict(normalization=normalization, clip_norm=3.0, two_stage=True)
        factory = PrioritizedMeanFactory(
            ("DS", "LD", "MD"), scores.owa(weights, ("DS", "LD", "MD")), **options
        )
        process = create(factory)
        output = process.next(process.initialize(), list(UPDATES), list(RAW))
        c = RAW / (RAW.sum(axis=0) if method == "sum" else RAW.max(axis=0))
        s = np.array([sorted(row, reverse=True) @ np.array(weights) for row in c])
        norms = np.linalg.norm(UPDATES, axis=1, keepdims=True)
        clipped = UPDATES * np.minimum(1, 3 / norms)
        np.testing.assert_allclose(output.result, s / s.sum() @ clipped, rtol=1e-5)

    def test_what_two_stages_cannot_do_is_refused(self):
        import tensorflow_federated as tff

        args = ("DS", "LD"), scores.owa((0.7, 0.3), ("DS", "LD"))
        with pytest.raises(ValueError, match="two_stage=True"):
            PrioritizedMeanFactory(*args)
        secure = tff.aggregators.SecureSumFactory(8.0)
        with pytest.raises(ValueError, match="totals in the clear"):
            PrioritizedMeanFactory(*args, two_stage=True, scalar_sum_factory=secure)

    def test_another_weight_is_refused(self):
        import tensorflow_federated as tff

        factory = PrioritizedMeanFactory(("DS", "LD"), ("LD",))
        with pytest.raises(TypeError, match="raw criteria"):
            factory.create(tff.TensorType(np.float32, [2]), tff.TensorType(np.float32))


class TestNormalization:
    order = (1, 0, 2)

    def expected(self, method):
        scale = {
            "sum": RAW.sum(axis=0),
            "max": RAW.max(axis=0),
            "range": np.array([1000, 10, 1]),
        }[method]
        return hand_mean(RAW, UPDATES, self.order, scale)

    @pytest.mark.parametrize("method", ["sum", "max", "range"])
    def test_each_equals_the_direct_formula(self, runtime, method):
        codes = ("DS", "LD", "MD")
        normalization = scores.Normalization.declared(
            method, codes, RANGES if method == "range" else None
        )
        process = create(
            PrioritizedMeanFactory(codes, self.order, normalization=normalization)
        )
        output = process.next(process.initialize(), list(UPDATES), list(RAW))
        np.testing.assert_allclose(output.result, self.expected(method), rtol=1e-5)
        # The TF-free weights say the same.
        p = scores.participant_weights(
            RAW, scores.prioritized(self.order), normalization
        )
        np.testing.assert_allclose(p @ UPDATES, self.expected(method), rtol=1e-6)

    def test_values_outside_their_range_are_cut(self):
        normalization = scores.Normalization("range", ((10.0, 20.0),))
        c = scores.normalize([[5.0], [15.0], [25.0]], normalization)
        np.testing.assert_allclose(c[:, 0], [0, 0.5, 1])

    def test_under_max_lower_priorities_count_however_many_clients(self):
        """With 100 equal clients but one, `sum` gives the second priority 1 %."""
        raw = np.ones((100, 2))
        raw[0, 1] = 0
        order = scores.prioritized((0, 1))
        by_sum = scores.participant_weights(raw, order)
        by_max = scores.participant_weights(raw, order, scores.Normalization("max"))
        assert by_sum[0] / by_sum[1] == pytest.approx(1 / (1 + 1 / 99))
        assert by_max[0] / by_max[1] == pytest.approx(1 / 2)

    @pytest.mark.parametrize("method", ["max", "range"])
    def test_the_process_takes_it(self, runtime, toy_examples, toy_model, method):
        options = {"criteria_ranges": RANGES} if method == "range" else {}
        process = processes.build_prioritized_fed_avg(
            toy_model,
            priority=("DS", "LD"),
            client_optimizer_fn=sgd(),
            normalization=method,
            report_num_clients=6,
            **options,
        )
        cohort = [1, 2, 5]
        output = process.next(process.initialize(), packing.pack(toy_examples, cohort))
        raw = output.metrics["client_work"]["train"]["criteria_by_client"][cohort]
        np.testing.assert_array_equal(raw[:, 0], [3, 5, 7])  # Raw, in any case.
        scale = raw.max(axis=0) if method == "max" else np.array([1000, 10, 1])
        c = raw / scale
        expected = (c[:, 0] + c[:, 0] * c[:, 1]).sum()
        assert output.metrics["aggregator"]["score"] == pytest.approx(expected, 1e-5)

    @pytest.mark.parametrize(
        ("method", "ranges", "message"),
        [
            ("mean", None, "must be one of sum, max, range"),
            ("range", {"DS": (0, 1)}, "needs a range for LD"),
            ("range", {"DS": (1, 1), "LD": (0, 1)}, "is not a range"),
            ("sum", {"DS": (0, 1)}, "with no other"),
            ("range", {"XX": (0, 1)}, "declared for XX"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, method, ranges, message):
        with pytest.raises(ValueError, match=message):
            scores.Normalization.declared(method, ("DS", "LD"), ranges)


class TestSecureSums:
    def test_the_factories_are_injected_separately(self, runtime, toy_examples):
        """Scalars and models go through the factories they are given."""

        class Doubling:
            """A sum that is doubled, to be seen in the result."""

            def __new__(cls):
                import tensorflow as tf
                import tensorflow_federated as tff

                class Factory(tff.aggregators.UnweightedAggregationFactory):
                    def create(self, value_type):
                        plain = tff.aggregators.SumFactory().create(value_type)
                        type_ = plain.next.type_signature.result.result.member

                        @tff.tensorflow.computation(type_)
                        def double(value):
                            return tf.nest.map_structure(lambda v: 2 * v, value)

                        @tff.federated_computation(
                            plain.initialize.type_signature.result,
                            tff.FederatedType(value_type, tff.CLIENTS),
                        )
                        def next_fn(state, value):
                            output = plain.next(state, value)
                            return tff.templates.MeasuredProcessOutput(
                                output.state,
                                tff.federated_map(double, output.result),
                                output.measurements,
                            )

                        return tff.templates.AggregationProcess(
                            plain.initialize, next_fn
                        )

                return Factory()

        for name, factor in (("model_sum_factory", 2.0), ("scalar_sum_factory", 1.0)):
            factory = PrioritizedMeanFactory(("DS",), ("DS",), **{name: Doubling()})
            process = create(factory)
            raw = [row[:1] for row in RAW]
            output = process.next(process.initialize(), list(UPDATES), raw)
            # Doubled scalars: T doubles, and so do the monomials: s is as it was,
            # and the models' factor 1/T/s halves.
            expected = (RAW[:, :1] * UPDATES).sum(axis=0) / 720
            expected = expected * (factor if factor == 2 else 0.5)
            np.testing.assert_allclose(output.result, expected, rtol=1e-5)

    def test_secure_sums_give_the_mean(self):
        """Under TFF's test backend, which executes secure aggregation."""
        import subprocess
        import sys

        code = """
import numpy as np, tensorflow_federated as tff
from tff_pmc.aggregation import PrioritizedMeanFactory
tff.backends.test.set_sync_test_cpp_execution_context()
secure = tff.aggregators.SecureSumFactory(upper_bound_threshold=10000.0,
                                          lower_bound_threshold=-10000.0)
factory = PrioritizedMeanFactory(
    ("DS", "LD"), ("LD", "DS"), model_sum_factory=secure, scalar_sum_factory=secure)
process = factory.create(tff.TensorType(np.float32, [2]), factory.weight_type)
raw = np.array([[600, 2], [20, 4]], np.float32)
updates = np.array([[1, 2], [3, -1]], np.float32)
text = process.next.type_signature.compact_representation()
output = process.next(process.initialize(), list(updates), list(raw))
c = raw / raw.sum(axis=0)
s = c[:, 1] + c[:, 1] * c[:, 0]
expected = (s[:, None] * updates).sum(axis=0) / s.sum()
np.testing.assert_allclose(output.result, expected, rtol=1e-4)
print("secure mean", output.result, flush=True)
import os; os.killpg(0, 9)  # This backend's own worker outlives the process.
"""
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            start_new_session=True,
        )
        assert "secure mean" in done.stdout, done.stderr


class TestPrivacy:
    def test_the_bound_of_one_clients_contribution_by_hand(self):
        """B = 3 sums of updates of norm 2; 3 monomials and 3 criteria."""
        basis = scores.Basis.of(3, [scores.prioritized((0, 1, 2))])
        normalization = scores.Normalization("range", ((0, 1),) * 3)
        bounds = GaussianSums(1.0).bounds(basis, normalization, 2.0)
        assert bounds == pytest.approx((12**0.5, 6**0.5))
        models, scalars = GaussianSums(0.5).factories(basis, normalization, 2.0)
        # Two mechanisms of sqrt(2) z each are one of z.
        assert models.stddev == pytest.approx(0.5 * 24**0.5)
        assert scalars.stddev == pytest.approx(0.5 * 12**0.5)

    def test_the_noise_has_the_stated_spread_and_the_seed_fixes_it(self, runtime):
        import tensorflow_federated as tff

        from tff_pmc.aggregation.privacy import GaussianSumFactory

        value_type = tff.TensorType(np.float32, [20000])
        values = [np.zeros(20000, np.float32)] * 2

        def noise(stream, rounds=1, seed=3):
            process = GaussianSumFactory(2.0, seed, stream).create(value_type)
            state = process.initialize()
            for _ in range(rounds):
                output = process.next(state, values)
                state = output.state
            return output.result

        first = noise(0)
        assert first.std() == pytest.approx(2.0, rel=0.03)
        assert abs(first.mean()) < 0.06
        np.testing.assert_array_equal(first, noise(0))
        unseeded = noise(0, seed=None), noise(0, seed=None)
        assert unseeded[0].std() == pytest.approx(2.0, rel=0.03)
        assert abs(np.corrcoef(*unseeded)[0, 1]) < 0.05
        for other in (noise(1), noise(0, rounds=2)):
            assert abs(np.corrcoef(first, other)[0, 1]) < 0.05

    def test_a_round_with_noise_measures_counts_only(
        self, runtime, toy_examples, toy_model
    ):
        def build(**options):
            return processes.build_prioritized_fed_avg(
                toy_model,
                priority=("DS", "LD"),
                client_optimizer_fn=sgd(),
                normalization="range",
                criteria_ranges=RANGES,
                clip_norm=0.5,
                **options,
            )

        noisy, exact = build(privacy=GaussianSums(1e-6, seed=1)), build()
        clients = packing.pack(toy_examples, range(6))
        output = noisy.next(noisy.initialize(), clients)
        expected = exact.next(exact.initialize(), clients)
        assert list(output.metrics["client_work"]["train"]) == ["clients"]
        for a, b in zip(
            noisy.get_model_weights(output.state).trainable,
            exact.get_model_weights(expected.state).trainable,
        ):
            np.testing.assert_allclose(a, b, atol=1e-3)
            assert np.abs(a - b).max() > 0

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({}, "declared range for every criterion"),
            ({"normalization": "max"}, "declared range for every criterion"),
            (
                {"normalization": "range", "criteria_ranges": RANGES},
                "needs clip_norm",
            ),
            (
                {
                    "normalization": "range",
                    "criteria_ranges": RANGES,
                    "clip_norm": 1.0,
                    "report_num_clients": 6,
                },
                "report_num_clients shows",
            ),
        ],
    )
    def test_where_it_would_not_hold_it_is_refused(self, toy_model, options, message):
        with pytest.raises(ValueError, match=message):
            processes.build_prioritized_fed_avg(
                toy_model,
                client_optimizer_fn=sgd(),
                privacy=GaussianSums(1.0),
                **options,
            )

    @pytest.mark.parametrize("wrapped", [False, True])
    def test_tffs_own_private_sum_is_refused_by_name(self, toy_model, wrapped):
        import tensorflow_federated as tff

        if wrapped:
            factory = tff.learning.dp_aggregator(0.1, 10)
        else:
            factory = tff.aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
                noise_multiplier=1.0, clients_per_round=10, clip=1.0
            )
        with pytest.raises(ValueError, match="DifferentiallyPrivateFactory"):
            processes.build_prioritized_fed_avg(
                toy_model, client_optimizer_fn=sgd(), model_sum_factory=factory
            )
        with pytest.raises(ValueError, match="DifferentiallyPrivateFactory"):
            create(PrioritizedMeanFactory(("DS",), (0,), model_sum_factory=factory))

    def test_a_mean_is_no_sum(self):
        import tensorflow_federated as tff

        factory = tff.aggregators.UnweightedMeanFactory()
        with pytest.raises(ValueError, match="UnweightedMeanFactory"):
            create(PrioritizedMeanFactory(("DS",), (0,), scalar_sum_factory=factory))


def test_a_huge_finite_update_is_clipped_and_not_nan(runtime):
    """(1e20, 0) has an infinite float32 norm; clipped to 1 it is (1, 0)."""
    process = create(PrioritizedMeanFactory(("DS",), ("DS",), clip_norm=1.0))
    output = process.next(
        process.initialize(),
        [np.array([1e20, 0], np.float32), np.array([0, 0.5], np.float32)],
        [np.array([1], np.float32), np.array([1], np.float32)],
    )
    np.testing.assert_allclose(output.result, [0.5, 0.25], rtol=1e-5)


def test_a_product_that_overflows_leaves_the_client_out(runtime):
    process = create(PrioritizedMeanFactory(("DS",), ("DS",)))
    output = process.next(
        process.initialize(),
        [np.array([1e30, 0], np.float32), np.array([0, 3], np.float32)],
        [np.array([1e20], np.float32), np.array([1], np.float32)],
    )
    np.testing.assert_allclose(output.result, [0, 3])


class TestDeployment:
    """One aggregation: TFF's two deployment forms compile, with sums only."""

    @pytest.mark.parametrize("packed", [True, False])
    def test_it_compiles_to_map_reduce_form(self, toy_model, packed):
        import tensorflow_federated as tff

        process = processes.build_prioritized_fed_avg(
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

    def test_with_secure_sums_the_count_alone_is_in_the_clear(self, toy_model):
        import tensorflow_federated as tff

        secure = tff.aggregators.SecureSumFactory(100.0, -100.0)
        process = processes.build_prioritized_fed_avg(
            toy_model,
            client_optimizer_fn=sgd(),
            model_sum_factory=secure,
            scalar_sum_factory=secure,
        )
        form = tff.backends.mapreduce.get_map_reduce_form_for_computation(process.next)
        clear, *secret = form.work.type_signature.result
        assert [tuple(t.shape) for t in flat_tensors(clear)] == [()]
        hidden = [tuple(t.shape) for part in secret for t in flat_tensors(part)]
        assert (16, 3) in hidden
        for options in ({"normalization": "max"}, {"report_num_clients": 6}):
            with pytest.raises(ValueError, match="scalar_sum_factory"):
                processes.build_prioritized_fed_avg(
                    toy_model,
                    client_optimizer_fn=sgd(),
                    scalar_sum_factory=secure,
                    **options,
                )

    def test_it_compiles_to_distribute_aggregate_form(self, toy_model):
        import tensorflow_federated as tff

        process = processes.build_prioritized_fed_avg(
            toy_model, basis=scores.Basis.all_subsets(3), client_optimizer_fn=sgd()
        )
        form = tff.backends.mapreduce.get_distribute_aggregate_form_for_computation(
            process.next
        )
        shapes = [
            tuple(t.shape) for t in flat_tensors(form.client_work.type_signature.result)
        ]
        assert sorted(shapes) == sorted(7 * [(16, 3), (3,)] + [(3,), (7,)] + 4 * [()])


def flat_tensors(type_):
    import tensorflow_federated as tff

    if isinstance(type_, tff.FederatedType):
        return flat_tensors(type_.member)
    if isinstance(type_, tff.TensorType):
        return [type_]
    found = []
    for element in type_:
        found += flat_tensors(element)
    return found
