"""Dual's Table I: whole rounds of its baselines by the formulas on the page."""

import numpy as np
import pytest

import tff_pmc

COHORT = [0, 1, 2, 3]
SIZES = np.array([8, 3, 5, 6, 4, 7])
BETA, ETA, ALPHA, BITS = 0.8, 0.5, 0.3, 5


def rounded(models):
    return np.round(models * (2**BITS - 1)) / (2**BITS - 1)


def with_momentum(models, old, n, memory):
    """M_k = beta M_{k-1} + (sum n_i / n theta_i - theta); theta + eta M_k."""
    memory = BETA * memory + (np.tensordot(n / n.sum(), models, 1) - old)
    return old + ETA * memory, memory


def simple(models):
    return models.sum(axis=0) / len(models)


# By name of the factory: its options, and what the page prints: from the clients'
# models, the old global model, the numbers of examples and the memory to the new ones.
PRINTED = {
    "simple_average": ({}, lambda models, old, n, m: (simple(models), m)),
    "weighted_mean": (
        {},
        lambda models, old, n, m: (np.tensordot(n / n.sum(), models, 1), m),
    ),
    "median": ({}, lambda models, old, n, m: (np.median(models, axis=0), m)),
    "momentum": ({"beta": BETA, "eta": ETA}, with_momentum),
    "personalized": (
        {"alpha": ALPHA},
        lambda models, old, n, m: (ALPHA * old + (1 - ALPHA) * simple(models), m),
    ),
    "quantized": ({}, lambda models, old, n, m: (simple(rounded(models)), m)),
}


@pytest.mark.parametrize("name", PRINTED)
def test_two_rounds_equal_the_printed_formula(
    runtime,
    toy_examples,
    toy_model,
    name,
    build_factory,
    run_rounds,
    trained_alone,
    assert_equal,
):
    """Dual's Table I in NumPy: theta_k from theta_{k-1} and the clients' models."""
    options, formula = PRINTED[name]
    factory, step = tff_pmc.BASELINES.get(name), None
    if name == "quantized":
        factory = tff_pmc.BASELINES["simple_average"]
        step = tff_pmc.aggregation.quantize_parameters(BITS)
    cohorts = [COHORT, [1, 2, 5]]
    process = build_factory(toy_model, factory(**options), client_step=step)
    weights, _ = run_rounds(process, toy_examples, cohorts)
    theta = [np.asarray(w, float) for w in toy_model.initial_weights[0]]
    memory = [np.zeros_like(w) for w in theta]
    for cohort in cohorts:
        alone = (trained_alone(toy_model, toy_examples, k, theta) for k in cohort)
        models = [np.stack(w) for w in zip(*alone)]
        n = SIZES[cohort]
        steps = [formula(w, old, n, m) for w, old, m in zip(models, theta, memory)]
        theta, memory = zip(*steps)
    assert_equal(weights, theta, 2e-6)
