"""Dual's search for lambda in a whole round, against NumPy."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tf
from tff_pmc.criteria import Criterion

COHORT = [0, 1, 2, 3]


def test_the_best_lambda_of_the_grid_without_retraining(
    runtime, toy_examples, toy_model, trained_alone, sgd, assert_equal
):
    """The judge prefers the kernel nearest to that of lambda = .7, in NumPy."""
    models = [trained_alone(toy_model, toy_examples, k) for k in COHORT]
    sizes = np.array([8, 3, 5, 6])
    # Made-up accuracies, .9 of the client of 3 examples and .2 of the others.
    quality = np.where(sizes == 3, 0.9, 0.2)

    def candidate(lambda_):
        p = lambda_ * quality / quality.sum() + (1 - lambda_) * sizes / sizes.sum()
        return [np.average(np.stack(w), axis=0, weights=p) for w in zip(*models)]

    candidates = [candidate(step / 10) for step in range(11)]
    target = candidates[7][0].astype(np.float32)

    def judge(weights, unused_clients):
        distance = np.linalg.norm(weights.trainable[0] - target)
        return np.int32(1e6 / (1 + 1e4 * distance))

    accuracy = Criterion(
        "ACC",
        "made-up accuracy",
        "a test",
        lambda client: tf.where(tf.equal(tf.size(client.y), 3), 0.9, 0.2),
    )
    online = tff_pmc.build_online_adjusted_fed_avg(
        toy_model,
        candidates=scores.dual_grid(),
        criteria=(accuracy, "DS"),
        policy="best_of_all",
        judge=judge,
        client_optimizer_fn=sgd(),
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
