"""The factories that may make the sums: TFF's, declared ones, and those refused."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tf, tff

RAW = np.array([[600, 2, 0.5], [20, 4, 0.8], [100, 1, 0.9]], np.float32)
UPDATES = np.array([[1, 2], [3, -1], [0, 5]], np.float32)


def create(factory):
    return factory.create(tff.TensorType(np.float32, [2]), factory.weight_type)


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
    """What is no sum of what the packs send, by the name of its class."""
    aggregators = tff.aggregators
    private = aggregators.DifferentiallyPrivateFactory.gaussian_fixed(
        noise_multiplier=1.0, clients_per_round=10, clip=1.0
    )
    wrapped = tff.learning.dp_aggregator(0.1, 10)
    clipping = aggregators.clipping_factory(1.0, aggregators.SumFactory())
    found = [private, wrapped, clipping, aggregators.UnweightedMeanFactory()]
    return {type(factory).__name__: factory for factory in found}


@pytest.mark.parametrize("option", ["model_sum_factory", "scalar_sum_factory"])
def test_what_is_not_known_to_sum_is_refused_by_name(option):
    for name, factory in refused_factories().items():
        for kind, needed in (
            (tff_pmc.SumOptions, ()),
            (tff_pmc.aggregation.SumPlan, (scores.Basis.singles(1),)),
        ):
            with pytest.raises(ValueError, match=f"{option} cannot be a {name}: .*Sum"):
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
