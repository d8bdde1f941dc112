"""The criterion aggregation as one factory, by hand, and what may make its sums."""

import itertools

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tf, tff

RAW = np.array([[600, 2, 0.5], [20, 4, 0.8], [100, 1, 0.9]], np.float32)
UPDATES = np.array([[1, 2], [3, -1], [0, 5]], np.float32)
CODES = ("DS", "LD", "MD")
ORDER = (1, 0, 2)
RANGES = {"DS": (0, 1000), "LD": (0, 10), "MD": (0, 1)}


def hand_mean(raw, updates, order, scale):
    """The weighted mean with criteria divided by `scale`, client by client."""
    c = raw / scale
    s = np.array([np.cumprod(row[list(order)]).sum() for row in c])
    return (s[:, None] * updates).sum(axis=0) / s.sum()


def create(factory):
    return factory.create(tff.TensorType(np.float32, [2]), factory.weight_type)


class TestFactory:
    @pytest.mark.parametrize("method", ["sum", "max"])
    def test_two_stages_sort_normalized_criteria(self, runtime, method):
        """OWA from the largest to the smallest, each client by itself."""
        weights = (0.5, 0.3, 0.2)
        factory = tff_pmc.PrioritizedMeanFactory(
            ("DS", "LD", "MD"),
            scores.owa(weights, ("DS", "LD", "MD")),
            sums=tff_pmc.SumOptions(method, clip_norm=3.0),
        )
        process = create(factory)
        output = process.next(process.initialize(), list(UPDATES), list(RAW))
        c = RAW / (RAW.sum(axis=0) if method == "sum" else RAW.max(axis=0))
        s = np.array([sorted(row, reverse=True) @ np.array(weights) for row in c])
        norms = np.linalg.norm(UPDATES, axis=1, keepdims=True)
        clipped = UPDATES * np.minimum(1, 3 / norms)
        np.testing.assert_allclose(output.result, s / s.sum() @ clipped, rtol=1e-5)

    def test_a_score_weighs_by_its_codes_in_other_columns(self, runtime):
        score = scores.prioritized(("DS", "LD"))
        factory = tff_pmc.PrioritizedMeanFactory(("MD", "LD", "DS"), score)
        process = create(factory)
        raw = list(RAW[:, ::-1])
        output = process.next(process.initialize(), list(UPDATES), raw)
        expected = hand_mean(RAW, UPDATES, (0, 1), RAW.sum(axis=0))
        np.testing.assert_allclose(output.result, expected, rtol=1e-5)

    @pytest.mark.parametrize("kind", [set, dict.fromkeys])
    def test_an_unordered_argument_is_rejected(self, kind):
        for args in ((kind(CODES), ("DS",)), (CODES, kind(CODES))):
            with pytest.raises(ValueError, match="must be a sequence, got"):
                tff_pmc.PrioritizedMeanFactory(*args)

    def test_options_that_two_stages_do_not_support_raise(self):
        args = ("DS", "LD"), scores.owa((0.7, 0.3), ("DS", "LD"))
        secure = tff.aggregators.SecureSumFactory(8.0)
        with pytest.raises(ValueError, match="totals in the clear"):
            sums = tff_pmc.SumOptions(scalar_sum_factory=secure)
            tff_pmc.PrioritizedMeanFactory(*args, sums=sums)

    def test_a_scalar_weight_raises(self):
        factory = tff_pmc.PrioritizedMeanFactory(("DS", "LD"), ("LD",))
        with pytest.raises(TypeError, match="raw criteria"):
            factory.create(tff.TensorType(np.float32, [2]), tff.TensorType(np.float32))


@pytest.mark.parametrize(
    ("method", "order"),
    [*(("sum", order) for order in itertools.permutations(range(3)))]
    + [("max", ORDER), ("range", ORDER)],
)
def test_each_normalization_and_ordering_equals_the_direct_formula(
    runtime, method, order
):
    codes = CODES
    ranges = RANGES if method == "range" else None
    normalization = scores.Normalization.from_codes(method, codes, ranges)
    sums = tff_pmc.SumOptions(method, ranges)
    process = create(tff_pmc.PrioritizedMeanFactory(codes, order, sums=sums))
    output = process.next(process.initialize(), list(UPDATES), list(RAW))
    scale = {"sum": RAW.sum(axis=0), "max": RAW.max(axis=0)}.get(method, [1000, 10, 1])
    expected = hand_mean(RAW, UPDATES, order, scale)
    np.testing.assert_allclose(output.result, expected, rtol=1e-5)
    # The TF-free weights say the same.
    p = scores.participant_weights(RAW, scores.prioritized(order), normalization)
    np.testing.assert_allclose(p @ UPDATES, expected, rtol=1e-6)


BOUND = {"clip_norm": 1.0}


@pytest.mark.parametrize(
    ("sums", "updates", "sizes", "expected"),
    [
        # (3, 4) is clipped to the norm 1 and then weighed 30 : 10.
        (BOUND, [(3, 4), (0.5, 0)], (30, 10), (0.575, 0.6)),
        # (1e20, 0) has an infinite float32 norm; clipped to 1 it is (1, 0).
        (BOUND, [(1e20, 0), (0, 0.5)], (1, 1), (0.5, 0.25)),
        # Left out: not finite, above the default norm, its square, a product above it.
        ({}, [(np.inf, 0), (3, 4)], (1, 1), (3, 4)),
        ({}, [(2e6, 0), (3, 4)], (1, 1), (3, 4)),
        ({}, [(1e25, 0), (3, 4)], (1, 1), (3, 4)),
        ({}, [(1e30, 0), (0, 3)], (1e20, 1), (0, 3)),
    ],
)
def test_a_large_update_is_clipped_or_excluded(runtime, sums, updates, sizes, expected):
    options = tff_pmc.SumOptions(**sums)
    process = create(tff_pmc.PrioritizedMeanFactory(("DS",), ("DS",), sums=options))
    values = list(np.array(updates, np.float32))
    weights = [np.array([size], np.float32) for size in sizes]
    output = process.next(process.initialize(), values, weights)
    np.testing.assert_allclose(output.result, expected, rtol=1e-5)
    assert output.measurements["excluded"] == (not sums)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        # A product of 1e-50, or a total of 6e38, is outside float32: excluded.
        ([(1e-25, 1e-25), (1e-25, 1e-25)], (0, 0)),
        ([(3e38, 1), (3e38, 1)], (0, 0)),
        ([(3e38, 1), (1, 1)], (3, 4)),
        ([(1e-25, 1e-25), (0, 1)], (0, 0)),
        # The edges of what is safe; a criterion of 0 is safe, too.
        ([(2e-15, 1e-15), (1e-15, 1e-15)], (5 / 3, 7 / 3)),
        ([(2e14, 4e14), (1e14, 4e14)], (5 / 3, 7 / 3)),
        ([(1, 0), (0, 1)], (1, 1.5)),
    ],
)
def test_a_product_beyond_float32_excludes_the_client(runtime, raw, expected):
    """With DS 2 : 1 and LD equal, the scores are 2/3 + 1/3 and 1/3 + 1/6."""
    process = create(tff_pmc.PrioritizedMeanFactory(("DS", "LD"), ("DS", "LD")))
    updates = np.array([(1, 1.5), (3, 4)], np.float32)
    weights = list(np.array(raw, np.float32))
    output = process.next(process.initialize(), list(updates), weights)
    np.testing.assert_allclose(output.result, expected, rtol=1e-5)


# --- The factories that may make the sums: TFF's, declared ones, and those refused


def doubling():
    """A sum that is doubled, to be seen in the result."""

    class Factory(tff.aggregators.UnweightedAggregationFactory):
        def create(self, value_type):
            plain = tff.aggregators.SumFactory().create(value_type)

            @tff.tensorflow.computation(value_type)
            def double(value):
                return tf.nest.map_structure(lambda v: 2 * v, value)

            @tff.federated_computation(*plain.next.type_signature.parameter)
            def next_fn(state, value):
                output = plain.next(state, value)
                doubled = tff.federated_map(double, output.result)
                return tff.templates.MeasuredProcessOutput(
                    output.state, doubled, output.measurements
                )

            return tff.templates.AggregationProcess(plain.initialize, next_fn)

    return Factory()


# Doubled scalars: T doubles, and so do the monomials: s is as it was, and the models'
# factor 1/T/s halves.
@pytest.mark.parametrize(
    ("name", "factor"), [("model_sum_factory", 2), ("scalar_sum_factory", 0.5)]
)
def test_the_factories_are_injected_separately(runtime, name, factor):
    sums = tff_pmc.SumOptions(**{name: tff_pmc.DeclaredSumFactory(doubling())})
    process = create(tff_pmc.PrioritizedMeanFactory(("DS",), ("DS",), sums=sums))
    raw = [row[:1] for row in RAW]
    output = process.next(process.initialize(), list(UPDATES), raw)
    expected = factor * (RAW[:, :1] * UPDATES).sum(axis=0) / 720
    np.testing.assert_allclose(output.result, expected, rtol=1e-5)


def refused_factories():
    """Factories that do not sum what the packs send, by the names of their classes."""
    aggregators = tff.aggregators
    private = aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
        noise_multiplier=1.0, clients_per_round=10, clip=1.0
    )
    wrapped = tff.learning.dp_aggregator(0.1, 10)
    clipping = aggregators.clipping_factory(1.0, aggregators.SumFactory())
    factories = [private, wrapped, clipping, aggregators.UnweightedMeanFactory()]
    return {type(factory).__name__: factory for factory in factories}


@pytest.mark.parametrize("option", ["model_sum_factory", "scalar_sum_factory"])
def test_a_factory_not_known_to_sum_is_rejected_and_named(option):
    for name, factory in refused_factories().items():
        for kind, needed in (
            (tff_pmc.SumOptions, ()),
            (tff_pmc.aggregation.SumPlan, (scores.Basis.singles(1),)),
        ):
            with pytest.raises(ValueError, match=f"{option} cannot be a {name}, .*Sum"):
                kind(*needed, **{option: factory})
    aggregators = tff.aggregators
    for factory in (
        aggregators.SumFactory(),
        aggregators.SecureSumFactory(8.0),
        aggregators.EncodedSumFactory.quantize_above_threshold(8, threshold=0),
    ):
        assert getattr(tff_pmc.SumOptions(**{option: factory}), option) is factory


def test_a_factory_known_not_to_sum_cannot_be_declared():
    refused = refused_factories()
    for name in ("DifferentiallyPrivateFactory", "UnweightedMeanFactory", "str"):
        with pytest.raises(ValueError, match=f"a {name} does not sum"):
            tff_pmc.DeclaredSumFactory(refused.get(name, "sum"))
