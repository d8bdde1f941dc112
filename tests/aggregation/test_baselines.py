"""One contract for every aggregator, and Dual's baselines by NumPy."""

import asyncio

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

SIZES = np.array([30, 10, 5, 20, 15], np.float32)
GENERATOR = np.random.default_rng(2)
UPDATES = [
    GENERATOR.normal(size=(5, *shape)).astype(np.float32) for shape in ((3, 2), (2,))
]

CODES = ("DS", "LD")
MAX = {"normalization": "max"}
DECLARED = {"DS": (0.0, 50.0), "LD": (0.0, 100.0)}
RANGES = {"normalization": "range", "criteria_ranges": DECLARED}


def weight_type():
    return tff.TensorType(np.float32)


def test_every_baseline_is_covered_by_these_tests(baseline_names):
    assert list(tff_pmc.BASELINES) == baseline_names


# All but the baselines in their own forms: score, two stages, options of the sums.
CHOQUET = scores.choquet({"DS": 0.2, "LD": 0.3}, CODES)
PRIORITIZED = {
    "ordering": (("LD", "DS"), RANGES),
    "dual": (scores.dual(0.3, "LD", "DS", CODES), RANGES),
    "choquet": (CHOQUET, RANGES),
    "two_stage_choquet": (CHOQUET, MAX),
}


def others(name):
    if name == "personalized_text":
        return tff_pmc.aggregation.personalized(form="text")
    score, options = PRIORITIZED[name]
    sums = tff_pmc.SumOptions(**options)
    return tff_pmc.PrioritizedMeanFactory(CODES, score, sums=sums)


# In round 1 `momentum` gives eta times the mean, `personalized` 1 - alpha times it.
SCALE = {"personalized": 0.5}
# One level of 256, of a span of at most 6.
TOLERANCE = {"quantized_updates": 6 / 255 / 2}


class Aggregator:
    """A factory's process, to which a client is two tensors and a size."""

    def __init__(self, name):
        self.name = name
        baseline = tff_pmc.BASELINES.get(name)
        factory = baseline() if baseline else others(name)
        self.weighs = getattr(factory, "weight_type", weight_type())
        update_type = tff.to_type([(np.float32, (3, 2)), (np.float32, (2,))])
        self.process = factory.create(update_type, self.weighs)
        self.atol = TOLERANCE.get(name, 0) + 2e-6

    def next(self, updates, sizes, state=None):
        """The result's two tensors, and the state after the round."""
        state = self.process.initialize() if state is None else state
        values = [list(tensors) for tensors in zip(*updates)]
        shape = tuple(self.weighs.shape)  # Of criteria, all alike, or of one number.
        weights = [np.full(shape, n, np.float32) for n in sizes]
        output = self.process.next(state, values, weights)
        result = [np.asarray(tensor) for tensor in output.result]
        if self.name == "laplace":
            result = [r - n for r, n in zip(result, self.noise(state))]
        return result, output.state, output.measurements

    def noise(self, state):
        """The round's noise: what comes out of updates that are all 0."""
        values = [[np.zeros((3, 2), np.float32), np.zeros(2, np.float32)]]
        output = self.process.next(state, values, [np.float32(1)])
        return [np.asarray(tensor) for tensor in output.result]


class Contract:
    """What holds of every aggregator."""

    def test_the_order_of_clients_does_not_matter(self, aggregator, assert_equal):
        order = [3, 1, 4, 0, 2]
        first, *_ = aggregator.next(UPDATES, SIZES)
        second, *_ = aggregator.next([u[order] for u in UPDATES], SIZES[order])
        assert_equal(first, second, 2e-6)

    def test_identical_updates_give_that_update(self, aggregator, assert_equal):
        identical = [np.repeat(u[:1], 5, axis=0) for u in UPDATES]
        result, *_ = aggregator.next(identical, SIZES)
        scale = SCALE.get(aggregator.name, 1)
        assert_equal(result, [scale * u[0] for u in identical], aggregator.atol)

    def test_a_saved_state_continues_identically(
        self, aggregator, tmp_path, assert_equal
    ):
        manager = tff.program.FileProgramStateManager(str(tmp_path))
        _, state, _ = aggregator.next(UPDATES, SIZES)
        loaded = state
        if state:  # There is nothing to save of one without a state.
            asyncio.run(manager.save(state, 1))
            loaded = asyncio.run(manager.load(1, state))
        going_on, *_ = aggregator.next(UPDATES, SIZES, state)
        resumed, *_ = aggregator.next(UPDATES, SIZES, loaded)
        assert_equal(resumed, going_on, 0)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_a_client_that_is_not_finite_is_excluded(
        self, aggregator, bad, assert_equal
    ):
        broken = [u.copy() for u in UPDATES]
        broken[1][3, 0] = bad
        kept = [0, 1, 2, 4]
        result, _, measured = aggregator.next(broken, SIZES)
        expected, *_ = aggregator.next([u[kept] for u in UPDATES], SIZES[kept])
        assert_equal(result, expected, 2e-6)
        assert (
            measured.get("excluded", 1) == measured.get("left_out", 1) == 1
        )  # Prioritized: by the client work.

    def test_without_any_weight_the_update_is_zero(self, aggregator, assert_equal):
        result, *_ = aggregator.next(UPDATES, 0 * SIZES)
        assert_equal(result, [0 * u[0] for u in UPDATES], 1e-6)


class TestBaselines(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def aggregator(cls, runtime, baseline_name):
        return Aggregator(baseline_name)


class TestOthers(Contract):
    @pytest.fixture(scope="class", params=["personalized_text", *PRIORITIZED])
    @classmethod
    def aggregator(cls, runtime, request):
        return Aggregator(request.param)


# --- Each by its formula ------------------------------------------------------


def one_round(name, **options):
    """The result of the updates in one round."""
    update_type = tff.to_type([(np.float32, (3, 2)), (np.float32, (2,))])
    process = tff_pmc.BASELINES[name](**options).create(update_type, weight_type())
    values = [list(tensors) for tensors in zip(*UPDATES)]
    return process.next(process.initialize(), values, list(SIZES)).result


class TestFormulas:
    """Those of Dual's Table I are in tests/processes/test_printed_baselines.py."""

    def test_laplace_noise_has_its_scale_and_seed_and_is_redrawn_each_round(
        self, runtime
    ):
        def draw(seed, epsilon, rounds=1):
            factory = tff_pmc.aggregation.laplace(epsilon, seed)
            value_type = tff.TensorType(np.float32, [20000])
            process = factory.create(value_type, weight_type())
            state, zeros = process.initialize(), [np.zeros(20000, np.float32)]
            for _ in range(rounds):
                output = process.next(state, zeros, [np.float32(1)])
                state = output.state
            return output.result

        noise = draw(1, 1.0)
        # E|x| = scale, E x^2 = 2 scale^2; a normal of that mean has pi / 2.
        assert np.abs(noise).mean() == pytest.approx(1, rel=0.03)
        assert np.square(noise).mean() == pytest.approx(2, rel=0.08)
        assert abs(noise.mean()) < 0.03
        np.testing.assert_array_equal(noise, draw(1, 1.0))
        np.testing.assert_allclose(draw(1, 4.0), noise / 4, rtol=1e-6)
        for other in (draw(2, 1.0), draw(1, 1.0, rounds=2)):
            assert abs(np.corrcoef(noise, other)[0, 1]) < 0.03

    @pytest.mark.parametrize("levels", [2, 16, 256])
    def test_updates_are_quantized_per_tensor_to_the_nearest_level(
        self, runtime, levels, assert_equal
    ):
        def quantize(tensor):
            tensor = tensor.astype(float)
            low, span = tensor.min(), tensor.max() - tensor.min()
            return low + np.round((tensor - low) / span * (levels - 1)) * (
                span / (levels - 1)
            )

        result = one_round("quantized_updates", levels=levels)
        p = SIZES.astype(float) / SIZES.sum()
        sent = [np.stack([quantize(t) for t in u]) for u in UPDATES]
        assert_equal(result, [np.tensordot(p, u, axes=1) for u in sent], 1e-5)

    @pytest.mark.parametrize(
        "name, options",
        [
            ("momentum", {"beta": 1.0}),
            ("momentum", {"eta": 0.0}),
            ("personalized", {"alpha": 1.0}),
            ("personalized", {"form": "both"}),
            ("laplace", {"epsilon": 0.0}),
            ("quantized_updates", {"levels": 100}),
            ("quantized_updates", {"levels": 1}),
        ],
    )
    def test_values_out_of_range_are_named(self, name, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            tff_pmc.BASELINES[name](**options)

    def test_a_negative_weight_or_a_wrong_type_raises(self, runtime):
        with pytest.raises(Exception, match="negative"):
            Aggregator("weighted_mean").next(UPDATES, -SIZES)
        with pytest.raises(TypeError, match="number of examples"):
            tff_pmc.aggregation.median().create(
                tff.TensorType(np.float32, [2]), tff.TensorType(np.float32, [1])
            )


def test_a_parameter_halfway_is_rounded_to_the_even_multiple():
    zero = [np.zeros(4, np.float32)]
    halves = [np.array([-0.5, -1.5, -2.5, -3.5], np.float32)]
    (sent,) = tff_pmc.aggregation.quantize_parameters(1)(zero, halves)
    assert (-np.asarray(sent)).tolist() == [0, 2, 2, 4]
    for bits in (0, 17):
        with pytest.raises(ValueError, match="bits must be from 1 to 16"):
            tff_pmc.aggregation.quantize_parameters(bits)
