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


def test_the_factories_are_injected_separately(runtime, toy_examples):
    """Scalars and models go through the factories they are given."""

    class Doubling:
        """A sum that is doubled, to be seen in the result."""

        def __new__(cls):
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

                    return tff.templates.AggregationProcess(plain.initialize, next_fn)

            return Factory()

    for name, factor in (("model_sum_factory", 2.0), ("scalar_sum_factory", 1.0)):
        sums = tff_pmc.SumOptions(**{name: tff_pmc.DeclaredSumFactory(Doubling())})
        factory = tff_pmc.PrioritizedMeanFactory(("DS",), ("DS",), sums=sums)
        process = create(factory)
        raw = [row[:1] for row in RAW]
        output = process.next(process.initialize(), list(UPDATES), raw)
        # Doubled scalars: T doubles, and so do the monomials: s is as it was,
        # and the models' factor 1/T/s halves.
        expected = (RAW[:, :1] * UPDATES).sum(axis=0) / 720
        expected = expected * (factor if factor == 2 else 0.5)
        np.testing.assert_allclose(output.result, expected, rtol=1e-5)


def test_secure_sums_give_the_mean():
    """Under TFF's test backend, which executes secure aggregation."""
    import subprocess
    import sys

    code = """
import numpy as np, tensorflow_federated as tff
from tff_pmc.aggregation import PrioritizedMeanFactory, SumOptions
tff.backends.test.set_sync_test_cpp_execution_context()
secure = tff.aggregators.SecureSumFactory(upper_bound_threshold=10000.0,
                                      lower_bound_threshold=-10000.0)
factory = PrioritizedMeanFactory(
    ("DS", "LD"), ("LD", "DS"),
    sums=SumOptions(model_sum_factory=secure, scalar_sum_factory=secure))
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
    refused = refused_factories()
    assert {"DifferentiallyPrivateFactory", "UnweightedMeanFactory"} < set(refused)
    for name, factory in refused.items():
        with pytest.raises(ValueError, match=f"{option} cannot be a {name}: .*Sum"):
            tff_pmc.SumOptions(**{option: factory})
        with pytest.raises(ValueError, match=f"{option} cannot be a {name}: .*Sum"):
            tff_pmc.aggregation.SumPlan(scores.Basis.singles(1), **{option: factory})


@pytest.mark.parametrize("option", ["model_sum_factory", "scalar_sum_factory"])
def test_tffs_sums_are_taken(option):
    aggregators = tff.aggregators
    for factory in (
        aggregators.SumFactory(),
        aggregators.SecureSumFactory(8.0),
        aggregators.EncodedSumFactory.quantize_above_threshold(8, threshold=0),
    ):
        assert getattr(tff_pmc.SumOptions(**{option: factory}), option) is factory


def test_a_factory_known_not_to_sum_cannot_be_declared():
    refused = refused_factories()
    for name in ("DifferentiallyPrivateFactory", "UnweightedMeanFactory"):
        with pytest.raises(ValueError, match=f"a {name} does not sum"):
            tff_pmc.DeclaredSumFactory(refused[name])
    with pytest.raises(ValueError, match="a str does not sum"):
        tff_pmc.DeclaredSumFactory("sum")
