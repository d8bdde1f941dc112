"""One contract for every aggregator, and Dual's baselines by NumPy and in a process."""

import asyncio
import functools

import numpy as np
import pytest

from tff_pmc import processes, scores
from tff_pmc.aggregation import PrioritizedMeanFactory, baselines
from tff_pmc.clients import packing
from tff_pmc.criteria import Criterion
from tff_pmc.processes.baseline_fed_avg import (
    build_baseline_fed_avg,
    build_local_tuning_prediction,
)

SIZES = np.array([30, 10, 5, 20, 15], np.float32)
GENERATOR = np.random.default_rng(2)
UPDATES = [
    GENERATOR.normal(size=(5, *shape)).astype(np.float32) for shape in ((3, 2), (2,))
]

CODES = ("DS", "LD")
MAX = {"normalization": scores.Normalization("max")}
RANGES = {"normalization": scores.Normalization("range", ((0.0, 50.0), (0.0, 100.0)))}
# What `momentum` and `personalized` give in round 1 is eta and alpha times the mean.
FACTORIES = {
    **baselines.BASELINES,
    "personalized_text": lambda: baselines.personalized(form="text"),
    "prioritized": lambda: PrioritizedMeanFactory(("DS",), ("DS",)),
    **{
        name: functools.partial(PrioritizedMeanFactory, CODES, score, **RANGES)
        for name, score in {
            "ordering": ("LD", "DS"),
            "weighted_average": scores.weighted_average((0.3, 0.7), CODES),
            "product": scores.product(CODES),
            "dual": scores.dual(0.3, "LD", "DS", CODES),
            "owa": scores.owa("most", CODES),
            "choquet": scores.choquet({"DS": 0.2, "LD": 0.3}, CODES),
        }.items()
    },
    **{
        f"two_stage_{name}": functools.partial(
            PrioritizedMeanFactory, CODES, score, two_stage=True, **options
        )
        for name, score, options in [
            ("ordering", ("LD", "DS"), {}),
            ("owa", scores.owa("most", CODES), {}),
            ("choquet", scores.choquet({"DS": 0.2, "LD": 0.3}, CODES), MAX),
        ]
    },
}
SCALE = {"personalized": 0.5}
# One level of 256, of a span of at most 6.
TOLERANCE = {"quantized": 6 / 255 / 2}


class Aggregator:
    """A factory's process, to which a client is two tensors and a size."""

    def __init__(self, name):
        import tensorflow_federated as tff

        self.name, factory = name, FACTORIES[name]()
        self.weighs = getattr(factory, "weight_type", baselines.WEIGHT_TYPE)
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


@pytest.fixture(scope="module", params=FACTORIES)
def aggregator(runtime, request):
    return Aggregator(request.param)


def assert_equal(found, expected, atol):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


class TestContract:
    def test_the_order_of_clients_does_not_matter(self, aggregator):
        order = [3, 1, 4, 0, 2]
        first, *_ = aggregator.next(UPDATES, SIZES)
        second, *_ = aggregator.next([u[order] for u in UPDATES], SIZES[order])
        assert_equal(first, second, 2e-6)

    def test_identical_updates_give_that_update(self, aggregator):
        same = [np.repeat(u[:1], 5, axis=0) for u in UPDATES]
        found, *_ = aggregator.next(same, SIZES)
        scale = SCALE.get(aggregator.name, 1)
        assert_equal(found, [scale * u[0] for u in same], aggregator.atol)

    def test_a_single_client_gives_its_update(self, aggregator):
        found, *_ = aggregator.next([u[2:3] for u in UPDATES], SIZES[2:3])
        scale = SCALE.get(aggregator.name, 1)
        assert_equal(found, [scale * u[2] for u in UPDATES], aggregator.atol)

    def test_the_first_result_is_in_the_range_of_the_clients(self, aggregator):
        scale = SCALE.get(aggregator.name, 1)
        found, *_ = aggregator.next(UPDATES, SIZES)
        for tensor, updates in zip(found, UPDATES):
            assert (tensor >= scale * updates.min(axis=0) - aggregator.atol).all()
            assert (tensor <= scale * updates.max(axis=0) + aggregator.atol).all()

    def test_the_state_can_be_saved_and_goes_on_the_same(self, aggregator, tmp_path):
        import tensorflow_federated as tff

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
    def test_a_client_that_is_not_finite_is_left_out(self, aggregator, bad):
        broken = [u.copy() for u in UPDATES]
        broken[1][3, 0] = bad
        kept = [0, 1, 2, 4]
        found, _, measured = aggregator.next(broken, SIZES)
        expected, *_ = aggregator.next([u[kept] for u in UPDATES], SIZES[kept])
        assert_equal(found, expected, 2e-6)
        assert measured.get("left_out", 1) == 1  # Prioritized: by the client work.

    def test_without_any_weight_the_update_is_zero(self, aggregator):
        found, *_ = aggregator.next(UPDATES, 0 * SIZES)
        assert_equal(found, [0 * u[0] for u in UPDATES], 1e-6)


# --- Each by its formula ------------------------------------------------------


def weighted(updates, sizes=SIZES):
    p = sizes.astype(float) / sizes.sum()
    return [np.tensordot(p, u.astype(float), axes=1) for u in updates]


def rounds(name, count, **options):
    """The results of the same updates in `count` rounds, and the last state."""
    import tensorflow_federated as tff

    update_type = tff.to_type([(np.float32, (3, 2)), (np.float32, (2,))])
    factory = baselines.BASELINES[name](**options)
    process = factory.create(update_type, baselines.WEIGHT_TYPE)
    state, results = process.initialize(), []
    for _ in range(count):
        output = process.next(state, [list(t) for t in zip(*UPDATES)], list(SIZES))
        state = output.state
        results.append([np.asarray(tensor) for tensor in output.result])
    return results


class TestFormulas:
    def test_means(self, runtime):
        (simple,) = rounds("simple_average", 1)
        assert_equal(simple, [u.astype(float).mean(axis=0) for u in UPDATES], 1e-6)
        (mean,) = rounds("weighted_mean", 1)
        assert_equal(mean, weighted(UPDATES), 1e-6)

    def test_the_simple_average_is_tffs_unweighted_mean(self, runtime):
        import tensorflow_federated as tff

        update_type = tff.to_type([(np.float32, (3, 2)), (np.float32, (2,))])
        process = tff.aggregators.UnweightedMeanFactory().create(update_type)
        values = [list(tensors) for tensors in zip(*UPDATES)]
        theirs = process.next(process.initialize(), values).result
        assert_equal(rounds("simple_average", 1)[0], theirs, 1e-6)

    def test_the_median_of_odd_and_even_numbers(self, runtime):
        aggregator = Aggregator("median")
        odd, *_ = aggregator.next(UPDATES, SIZES)
        assert_equal(odd, [np.median(u, axis=0) for u in UPDATES], 0)
        four = [u[:4] for u in UPDATES]
        even, *_ = aggregator.next(four, SIZES[:4])
        assert_equal(even, [np.median(u, axis=0) for u in four], 1e-7)

    def test_the_median_refuses_more_clients_than_it_has_room_for(self, runtime):
        with pytest.raises(Exception, match="room for 4 clients, not"):
            rounds("median", 1, max_clients=4)

    def test_momentum(self, runtime):
        """v1 = g, v2 = (1 + beta) g, v3 = (1 + beta + beta^2) g, each times eta."""
        beta, eta = 0.5, 0.2
        mean = weighted(UPDATES)
        results = rounds("momentum", 3, beta=beta, eta=eta)
        for result, factor in zip(results, (1, 1.5, 1.75)):
            assert_equal(result, [eta * factor * g for g in mean], 1e-6)

    def test_personalized_is_a_mix_of_old_and_mean_model(self, runtime):
        old, alpha = 7.0, 0.3
        (update,) = rounds("personalized", 1, alpha=alpha)
        mixed = [alpha * (old - g) + (1 - alpha) * old for g in weighted(UPDATES)]
        assert_equal([old - u for u in update], mixed, 1e-6)

    def test_laplace_noise_has_its_scale_its_seed_and_new_draws(self, runtime):
        import tensorflow_federated as tff

        def draw(seed, epsilon, rounds=1):
            factory = baselines.laplace(epsilon, seed)
            process = factory.create(
                tff.TensorType(np.float32, [20000]), baselines.WEIGHT_TYPE
            )
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
    def test_quantized_to_the_nearest_of_q_levels_per_tensor(self, runtime, levels):
        def quantize(tensor):
            tensor = tensor.astype(float)
            low, span = tensor.min(), tensor.max() - tensor.min()
            return low + np.round((tensor - low) / span * (levels - 1)) * (
                span / (levels - 1)
            )

        (found,) = rounds("quantized", 1, levels=levels)
        expected = weighted([np.stack([quantize(t) for t in u]) for u in UPDATES])
        assert_equal(found, expected, 1e-5)

    @pytest.mark.parametrize(
        "name, options",
        [
            ("median", {"max_clients": 0}),
            ("momentum", {"beta": 1.0}),
            ("momentum", {"eta": 0.0}),
            ("personalized", {"alpha": 0.0}),
            ("personalized", {"form": "both"}),
            ("laplace", {"epsilon": 0.0}),
            ("quantized", {"levels": 100}),
            ("quantized", {"levels": 1}),
        ],
    )
    def test_what_is_out_of_range_is_named(self, name, options):
        with pytest.raises(ValueError, match=next(iter(options))):
            baselines.BASELINES[name](**options)

    def test_a_negative_weight_and_another_type_are_refused(self, runtime):
        import tensorflow_federated as tff

        with pytest.raises(Exception, match="negative"):
            Aggregator("weighted_mean").next(UPDATES, -SIZES)
        with pytest.raises(TypeError, match="number of examples"):
            baselines.median().create(
                tff.TensorType(np.float32, [2]), tff.TensorType(np.float32, [1])
            )


# --- In a process ---------------------------------------------------------------


def sgd(rate, momentum=None):
    import tensorflow_federated as tff

    return tff.learning.optimizers.build_sgdm(rate, momentum)


def build(model, factory, **options):
    return build_baseline_fed_avg(
        model, factory, client_optimizer_fn=sgd(0.1), **options
    )


def run(process, examples, cohorts, num_shards=None):
    """The trainable weights after the rounds, and the last metrics."""
    state = process.initialize()
    for cohort in cohorts:
        shards = packing.pack(examples, cohort, num_shards=num_shards or len(cohort))
        output = process.next(state, shards)
        state = output.state
    weights = process.get_model_weights(state).trainable
    return [np.asarray(w, float) for w in weights], output.metrics


def trained_alone(model, examples, k, weights=None):
    """One full-batch step on client k, in NumPy: a linear softmax model."""
    kernel, bias = model.initial_weights[0] if weights is None else weights
    client = examples.client(k)
    x = client["x"].reshape(-1, 16).astype(float) / 255
    scores_ = x @ kernel.astype(float) + bias
    p = np.exp(scores_ - scores_.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    error = (p - np.eye(3)[client["y"]]) / len(x)
    return kernel - 0.1 * x.T @ error, bias - 0.1 * error.sum(axis=0)


COHORT = [0, 1, 2, 3]


class TestProcess:
    @pytest.mark.parametrize("name", baselines.BASELINES)
    def test_two_rounds(self, runtime, toy_examples, toy_model, name):
        process = build(toy_model, FACTORIES[name](), report_num_clients=6)
        weights, metrics = run(process, toy_examples, [COHORT, [4, 5]])
        assert all(np.isfinite(w).all() for w in weights)
        assert metrics["aggregator"]["left_out"] == 0
        train = metrics["client_work"]["train"]
        assert (train["clients"], train["excluded"], train["examples"]) == (2, 0, 11)
        assert train["criteria_by_client"][:, 0].tolist() == [0, 0, 0, 0, 4, 7]
        assert train["excluded_by_client"].tolist() == [0] * 6
        assert train["loss_sum"] > 0
        assert metrics["finalizer"]["update_rejected"] == 0

    @pytest.mark.parametrize("name", ["simple_average", "weighted_mean", "median"])
    def test_a_round_is_that_of_numpy(self, runtime, toy_examples, toy_model, name):
        weights, _ = run(build(toy_model, FACTORIES[name]()), toy_examples, [COHORT])
        models = zip(*(trained_alone(toy_model, toy_examples, k) for k in COHORT))
        sizes = np.array([8, 3, 5, 6])
        combine = {
            "simple_average": lambda w: np.mean(w, axis=0),
            "weighted_mean": lambda w: np.average(w, axis=0, weights=sizes),
            "median": lambda w: np.median(w, axis=0),
        }[name]
        assert_equal(weights, [combine(np.stack(w)) for w in models], 1e-6)

    def test_the_weighted_mean_is_federated_averaging(
        self, runtime, toy_examples, toy_model
    ):
        """The same model as the process that sees sums only."""
        options = {"local_epochs": 2, "batch_size": 2, "seed": 4}
        mean = build(toy_model, baselines.weighted_mean(), **options)
        sums = processes.build_prioritized_fed_avg(
            toy_model, criteria=("DS",), client_optimizer_fn=sgd(0.1), **options
        )
        cohorts = [COHORT, [2, 5]]
        found, _ = run(mean, toy_examples, cohorts)
        expected, _ = run(sums, toy_examples, cohorts, num_shards=1)
        assert_equal(found, expected, 1e-5)

    def test_momentum_is_tffs_server_optimizer(self, runtime, toy_examples, toy_model):
        cohorts = [COHORT, [2, 5], [0, 1]]
        ours = build(toy_model, baselines.momentum(0.8, 0.5))
        theirs = build(
            toy_model, baselines.weighted_mean(), server_optimizer_fn=sgd(0.5, 0.8)
        )
        found, _ = run(ours, toy_examples, cohorts)
        expected, _ = run(theirs, toy_examples, cohorts)
        assert_equal(found, expected, 1e-6)

    def test_a_shard_of_two_clients_fails(self, runtime, toy_examples, toy_model):
        process = build(toy_model, baselines.weighted_mean())
        with pytest.raises(Exception, match="exactly one client"):
            run(process, toy_examples, [COHORT], num_shards=3)

    def test_tffs_own_factories_serve(self, runtime, toy_examples, toy_model):
        import tensorflow_federated as tff

        process = build(toy_model, tff.aggregators.UnweightedMeanFactory())
        found, _ = run(process, toy_examples, [COHORT])
        simple = build(toy_model, baselines.simple_average())
        expected, _ = run(simple, toy_examples, [COHORT])
        assert_equal(found, expected, 1e-6)

    def test_more_criteria_are_measured_and_do_not_count(
        self, runtime, toy_examples, toy_model
    ):
        process = build(
            toy_model,
            baselines.weighted_mean(),
            criteria=("LD", "DS"),
            report_num_clients=6,
        )
        found, metrics = run(process, toy_examples, [COHORT])
        raw = metrics["client_work"]["train"]["criteria_by_client"]
        assert raw[:4, 1].tolist() == [8, 3, 5, 6] and raw[0, 0] == 1
        only = build(toy_model, baselines.weighted_mean())
        assert_equal(found, run(only, toy_examples, [COHORT])[0], 0)

    def test_what_does_not_fit_is_named(self, toy_model):
        with pytest.raises(TypeError, match="factory .* got str"):
            build(toy_model, "median")
        with pytest.raises(ValueError, match="DS"):
            build(toy_model, baselines.median(), criteria=("LD",))
        with pytest.raises(ValueError, match="local_epochs"):
            build(toy_model, baselines.median(), local_epochs=0)


def test_local_tuning_answers_for_each_client(runtime, toy_examples, toy_model):
    """What NumPy's tuned models answer; -1 for the clients who take no part."""
    x = toy_examples.x
    predict = build_local_tuning_prediction(
        toy_model, 6, len(x), client_optimizer_fn=sgd(0.1), prediction_batch_size=10
    )
    import tensorflow_federated as tff

    received = tff.learning.models.ModelWeights(*toy_model.initial_weights)
    shards = packing.pack(toy_examples, [0, 2, 5], num_shards=2)
    answers = np.asarray(predict(received, shards, x))
    assert answers.shape == (6, len(x))
    assert (answers[[1, 3, 4]] == -1).all()
    tuned = [0, 2, 5]
    for k in tuned:
        kernel, bias = trained_alone(toy_model, toy_examples, k)
        expected = (x.reshape(-1, 16) / 255.0 @ kernel + bias).argmax(axis=1)
        np.testing.assert_array_equal(answers[k], expected)


# --- The dual criterion ---------------------------------------------------------


class TestDual:
    def test_the_score_and_the_grid(self):
        score = scores.dual(0.3)
        assert score.label == "lambda=0.30"
        assert score((0.5, 0.1)) == pytest.approx(0.3 * 0.5 + 0.7 * 0.1)
        swapped = scores.dual(0.3, criteria=("DS", "ACC"))
        assert swapped((0.1, 0.5)) == pytest.approx(score((0.5, 0.1)))
        grid = scores.dual_grid()
        assert [s.label for s in grid[:3]] == [
            "lambda=0.00",
            "lambda=0.10",
            "lambda=0.20",
        ]
        assert len(grid) == 11 and grid[-1].label == "lambda=1.00"
        assert len(scores.Basis.of(2, grid)) == 2  # Two sums serve them all.

    @pytest.mark.parametrize(
        "call, says",
        [
            (lambda: scores.dual(1.1), "lambda"),
            (lambda: scores.dual(float("nan")), "lambda"),
            (lambda: scores.dual(0.5, quality="LD"), "LD"),
            (lambda: scores.dual(0.5, quality="DS"), "both DS"),
            (lambda: scores.dual_grid(1), "steps"),
        ],
    )
    def test_what_is_out_of_range_is_named(self, call, says):
        with pytest.raises(ValueError, match=says):
            call()

    def test_the_best_lambda_of_the_grid_without_retraining(
        self, runtime, toy_examples, toy_model
    ):
        """The judge prefers the kernel nearest to that of lambda = .7, in NumPy."""
        import tensorflow as tf
        import tensorflow_federated as tff

        models = [trained_alone(toy_model, toy_examples, k) for k in COHORT]
        sizes = np.array([8, 3, 5, 6])
        # Made-up accuracies, .9 of the client of 3 examples and .2 of the others.
        quality = np.where(sizes == 3, 0.9, 0.2)

        def candidate(lambda_):
            p = lambda_ * quality / quality.sum() + (1 - lambda_) * sizes / sizes.sum()
            return [np.average(np.stack(w), axis=0, weights=p) for w in zip(*models)]

        candidates = [candidate(step / 10) for step in range(11)]
        target = candidates[7][0].astype(np.float32)
        weights_type = tff.to_type(
            tff.learning.models.ModelWeights(
                (
                    tff.TensorType(np.float32, (16, 3)),
                    tff.TensorType(np.float32, (3,)),
                ),
                (),
            )
        )

        @tff.tensorflow.computation(weights_type)
        def closeness(weights):
            distance = tf.norm(weights.trainable[0] - target)
            return tf.cast(1e6 / (1.0 + 1e4 * distance), tf.int32)

        @tff.federated_computation(
            tff.FederatedType(weights_type, tff.SERVER),
            tff.FederatedType(np.int32, tff.CLIENTS),
        )
        def judge(weights, clients):
            del clients
            return tff.federated_map(closeness, weights)

        accuracy = Criterion(
            "ACC",
            "made-up accuracy",
            "a test",
            lambda client: tf.where(tf.equal(tf.size(client.y), 3), 0.9, 0.2),
        )
        online = processes.build_online_adjusted_fed_avg(
            toy_model,
            candidates=scores.dual_grid(),
            criteria=(accuracy, "DS"),
            policy="best_of_all",
            judge=judge,
            client_optimizer_fn=sgd(0.1),
        )
        shards = packing.pack(toy_examples, COHORT, num_shards=2)
        output = online.next(online.initialize(), shards, [0])
        assert sorted(t.candidate for t in output.trials) == list(range(11))
        for trial in output.trials:  # Each candidate's model is NumPy's.
            distance = np.linalg.norm(candidates[trial.candidate][0] - candidates[7][0])
            expected = 1e6 / (1 + 1e4 * distance)
            assert trial.correct == pytest.approx(expected, rel=0.01)
        assert online.candidates[output.state.candidate].label == "lambda=0.70"
        assert len(output.metrics["aggregator"]["monomials"]) == 2
        found = online.get_model_weights(output.state).trainable
        assert_equal(found, candidates[7], 1e-6)
