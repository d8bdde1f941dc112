"""Dual's baselines and its search for lambda, in whole rounds."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc.criteria import Criterion


def assert_equal(found, expected, atol):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol)


def sgd(rate, momentum=None):
    import tensorflow_federated as tff

    return tff.learning.optimizers.build_sgdm(rate, momentum)


def build(model, factory, **options):
    return tff_pmc.processes.build_factory_fed_avg(
        model, factory, client_optimizer_fn=sgd(0.1), **options
    )


def run(process, examples, cohorts, num_packs=None):
    """The trainable weights after the rounds, and the last metrics."""
    state = process.initialize()
    for cohort in cohorts:
        packs = tff_pmc.pack(examples, cohort, num_packs=num_packs or len(cohort))
        output = process.next(state, packs)
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
SIZES = np.array([8, 3, 5, 6, 4, 7])
BETA, ETA, ALPHA, BITS = 0.8, 0.5, 0.3, 5


def rounded(models):
    return np.round(models * (2**BITS - 1)) / (2**BITS - 1)


def with_momentum(models, old, n, memory):
    """M_k = beta M_{k-1} + (sum n_i / n theta_i - theta); theta + eta M_k."""
    memory = BETA * memory + (np.tensordot(n / n.sum(), models, 1) - old)
    return old + ETA * memory, memory


# Name -> the factory, the client's step, and what the page prints: from the clients'
# models, the old global model, the numbers of examples and the memory to the new ones.
PRINTED = {
    "simple_average": (
        lambda: tff_pmc.BASELINES["simple_average"](),
        None,
        lambda models, old, n, m: (models.sum(axis=0) / len(n), m),
    ),
    "weighted_mean": (
        lambda: tff_pmc.BASELINES["weighted_mean"](),
        None,
        lambda models, old, n, m: (np.tensordot(n / n.sum(), models, 1), m),
    ),
    "median": (
        lambda: tff_pmc.BASELINES["median"](),
        None,
        lambda models, old, n, m: (np.median(models, axis=0), m),
    ),
    "momentum": (
        lambda: tff_pmc.aggregation.baselines.momentum(BETA, ETA),
        None,
        with_momentum,
    ),
    "personalized": (
        lambda: tff_pmc.aggregation.baselines.personalized(ALPHA),
        None,
        lambda models, old, n, m: (
            ALPHA * old + (1 - ALPHA) * (models.sum(axis=0) / len(n)),
            m,
        ),
    ),
    "quantized": (
        lambda: tff_pmc.BASELINES["simple_average"](),
        lambda: tff_pmc.aggregation.quantize_parameters(BITS),
        lambda models, old, n, m: (rounded(models).sum(axis=0) / len(n), m),
    ),
}


class TestProcess:
    @pytest.mark.parametrize(
        "name",
        [
            "simple_average",
            "weighted_mean",
            "median",
            "momentum",
            "personalized",
            "laplace",
            "quantized_updates",
        ],
    )
    def test_two_rounds(self, runtime, toy_examples, toy_model, name):
        process = build(toy_model, tff_pmc.BASELINES[name](), report_num_clients=6)
        weights, metrics = run(process, toy_examples, [COHORT, [4, 5]])
        assert all(np.isfinite(w).all() for w in weights)
        assert metrics["aggregator"]["left_out"] == 0
        train = metrics["client_work"]["train"]
        assert (train["clients"], train["excluded"], train["examples"]) == (2, 0, 11)
        assert train["criteria_by_client"][:, 0].tolist() == [0, 0, 0, 0, 4, 7]
        assert train["excluded_by_client"].tolist() == [0] * 6
        assert train["loss_sum"] > 0
        assert metrics["finalizer"]["update_rejected"] == 0

    @pytest.mark.parametrize("name", PRINTED)
    def test_two_rounds_are_those_of_the_printed_formula(
        self, runtime, toy_examples, toy_model, name
    ):
        """Dual's Table I in NumPy: theta_k from theta_{k-1} and the clients' models."""
        factory, step, formula = PRINTED[name]
        step = step and step()
        cohorts = [COHORT, [1, 2, 5]]
        process = build(toy_model, factory(), client_step=step)
        found, _ = run(process, toy_examples, cohorts)
        theta = [np.asarray(w, float) for w in toy_model.initial_weights[0]]
        memory = [np.zeros_like(w) for w in theta]
        for cohort in cohorts:
            alone = (trained_alone(toy_model, toy_examples, k, theta) for k in cohort)
            models = [np.stack(w) for w in zip(*alone)]
            n = SIZES[cohort]
            steps = [formula(w, old, n, m) for w, old, m in zip(models, theta, memory)]
            theta, memory = zip(*steps)
        assert_equal(found, theta, 2e-6)

    def test_laplace_is_the_simple_average_and_noise_of_its_scale(
        self, runtime, toy_examples, toy_model
    ):
        """At twice the epsilon half of the same noise."""
        simple, _ = run(
            build(toy_model, tff_pmc.aggregation.baselines.simple_average()),
            toy_examples,
            [COHORT],
        )
        noises = []
        for epsilon in (50.0, 100.0):
            process = build(
                toy_model, tff_pmc.aggregation.baselines.laplace(epsilon, seed=3)
            )
            noisy, _ = run(process, toy_examples, [COHORT])
            noises.append([a - b for a, b in zip(noisy, simple)])
        assert_equal(noises[1], [noise / 2 for noise in noises[0]], 1e-6)
        assert 0.01 < np.abs(noises[0][0]).mean() < 0.03

    def test_a_client_that_is_left_out_takes_no_step(
        self, runtime, toy_examples, toy_model
    ):
        """Its update stays 0, which an unweighted factory of TFF's counts as one."""
        import tensorflow as tf
        import tensorflow_federated as tff

        broken = Criterion(
            "BROKEN",
            "not finite for the client of three examples",
            "a test",
            lambda client: tf.where(tf.equal(tf.size(client.y), 3), np.nan, 1.0),
        )
        process = build(
            toy_model,
            tff.aggregators.UnweightedMeanFactory(),
            client_step=lambda received, update: received,
            criteria=("DS", broken),
        )
        found, metrics = run(process, toy_examples, [[0, 1]])
        assert metrics["client_work"]["train"]["excluded"] == 1
        # The other's update became the whole model, and half of it is taken off.
        first = [np.asarray(w, float) for w in toy_model.initial_weights[0]]
        assert_equal(found, [w / 2 for w in first], 1e-6)

    def test_the_weighted_mean_is_federated_averaging(
        self, runtime, toy_examples, toy_model
    ):
        """The same model as the process that sees sums only."""
        options = {"local_epochs": 2, "batch_size": 2, "seed": 4}
        mean = build(
            toy_model, tff_pmc.aggregation.baselines.weighted_mean(), **options
        )
        sums = tff_pmc.processes.build_prioritized_fed_avg(
            toy_model, criteria=("DS",), client_optimizer_fn=sgd(0.1), **options
        )
        cohorts = [COHORT, [2, 5]]
        found, _ = run(mean, toy_examples, cohorts)
        expected, _ = run(sums, toy_examples, cohorts, num_packs=1)
        assert_equal(found, expected, 1e-5)

    def test_momentum_is_tffs_server_optimizer(self, runtime, toy_examples, toy_model):
        cohorts = [COHORT, [2, 5], [0, 1]]
        ours = build(toy_model, tff_pmc.aggregation.baselines.momentum(0.8, 0.5))
        theirs = build(
            toy_model,
            tff_pmc.aggregation.baselines.weighted_mean(),
            server_optimizer_fn=sgd(0.5, 0.8),
        )
        found, _ = run(ours, toy_examples, cohorts)
        expected, _ = run(theirs, toy_examples, cohorts)
        assert_equal(found, expected, 1e-6)

    def test_a_pack_of_two_clients_fails(self, runtime, toy_examples, toy_model):
        process = build(toy_model, tff_pmc.aggregation.baselines.weighted_mean())
        with pytest.raises(Exception, match="exactly one client"):
            run(process, toy_examples, [COHORT], num_packs=3)

    def test_tffs_own_factories_serve(self, runtime, toy_examples, toy_model):
        import tensorflow_federated as tff

        process = build(toy_model, tff.aggregators.UnweightedMeanFactory())
        found, _ = run(process, toy_examples, [COHORT])
        simple = build(toy_model, tff_pmc.aggregation.baselines.simple_average())
        expected, _ = run(simple, toy_examples, [COHORT])
        assert_equal(found, expected, 1e-6)

    def test_more_criteria_are_measured_and_do_not_count(
        self, runtime, toy_examples, toy_model
    ):
        process = build(
            toy_model,
            tff_pmc.aggregation.baselines.weighted_mean(),
            criteria=("LD", "DS"),
            report_num_clients=6,
        )
        found, metrics = run(process, toy_examples, [COHORT])
        raw = metrics["client_work"]["train"]["criteria_by_client"]
        assert raw[:4, 1].tolist() == [8, 3, 5, 6] and raw[0, 0] == 1
        only = build(toy_model, tff_pmc.aggregation.baselines.weighted_mean())
        assert_equal(found, run(only, toy_examples, [COHORT])[0], 0)

    def test_what_does_not_fit_is_named(self, toy_model):
        with pytest.raises(TypeError, match="factory .* got str"):
            build(toy_model, "median")
        with pytest.raises(ValueError, match="DS"):
            build(toy_model, tff_pmc.aggregation.baselines.median(), criteria=("LD",))
        with pytest.raises(ValueError, match="local_epochs"):
            build(toy_model, tff_pmc.aggregation.baselines.median(), local_epochs=0)
        with pytest.raises(ValueError, match="only clip_norm can be given"):
            build(
                toy_model,
                tff_pmc.aggregation.baselines.median(),
                sums=tff_pmc.SumOptions(normalization="max"),
            )

    def test_an_update_is_clipped_before_the_factory_sees_it(
        self, runtime, toy_examples, toy_model
    ):
        sums = tff_pmc.SumOptions(clip_norm=0.01)
        process = build(
            toy_model, tff_pmc.aggregation.baselines.weighted_mean(), sums=sums
        )
        found, _ = run(process, toy_examples, [[2]])
        first = [np.asarray(w, float) for w in toy_model.initial_weights[0]]
        moved = np.sqrt(sum(((a - b) ** 2).sum() for a, b in zip(found, first)))
        assert moved == pytest.approx(0.01, rel=1e-4)


def test_local_tuning_answers_for_each_client(runtime, toy_examples, toy_model):
    """What NumPy's tuned models answer; -1 for the clients who take no part."""
    x = toy_examples.x
    predict = tff_pmc.processes.build_local_tuning_prediction(
        toy_model, 6, len(x), client_optimizer_fn=sgd(0.1), prediction_batch_size=10
    )
    import tensorflow_federated as tff

    received = tff.learning.models.ModelWeights(*toy_model.initial_weights)
    packs = tff_pmc.pack(toy_examples, [0, 2, 5], num_packs=2)
    answers = np.asarray(predict(received, packs, x))
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
        online = tff_pmc.processes.build_online_adjusted_fed_avg(
            toy_model,
            candidates=scores.dual_grid(),
            criteria=(accuracy, "DS"),
            policy="best_of_all",
            judge=judge,
            client_optimizer_fn=sgd(0.1),
        )
        packs = tff_pmc.pack(toy_examples, COHORT, num_packs=2)
        output = online.next(online.initialize(), packs, [0])
        assert sorted(t.index for t in output.trials) == list(range(11))
        for trial in output.trials:  # Each candidate's model is NumPy's.
            distance = np.linalg.norm(candidates[trial.index][0] - candidates[7][0])
            expected = 1e6 / (1 + 1e4 * distance)
            assert trial.correct == pytest.approx(expected, rel=0.01)
        assert online.candidates[output.state.index].label == "lambda=0.70"
        assert len(output.metrics["aggregator"]["monomials"]) == 2
        found = online.get_model_weights(output.state).trainable
        assert_equal(found, candidates[7], 1e-6)
