"""Sums, and the updates that follow, against NumPy, given the same client models."""

import itertools

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

ORDERS = [
    order for size in (1, 2, 3) for order in itertools.permutations(range(3), size)
]


@pytest.fixture(scope="module")
def clients():
    """Raw criteria [5, 3], and updates of two tensors for each client."""
    generator = np.random.default_rng(11)
    raw = np.stack(
        [
            generator.integers(1, 600, 5),
            generator.integers(1, 5, 5),
            generator.uniform(0.3, 0.9, 5),
        ],
        axis=1,
    ).astype(np.float32)
    updates = [generator.normal(size=(5, *shape)) for shape in ((6, 4), (4,))]
    return raw, [update.astype(np.float32) for update in updates]


def numpy_mean(raw, updates, order):
    """The aggregate in float64, client by client: weights, then a mean."""
    raw = raw.astype(float)
    c = raw / raw.sum(axis=0)
    s = np.zeros(len(raw))
    for k in range(len(raw)):
        product = 1.0
        for column in order:
            product *= c[k, column]
            s[k] += product
    p = s / s.sum()
    return [
        sum(p[k] * update[k].astype(float) for k in range(len(raw)))
        for update in updates
    ]


def run(process, state, raw, updates, basis):
    """One call with each client in a pack of its own."""
    columns = [list(monomial) for monomial in basis.summed]
    values, weights = [], []
    for k in range(len(raw)):
        r = np.array([raw[k, c].prod() for c in columns], np.float32)
        values.append(tuple([f * update[k] for update in updates] for f in r))
        weights.append({"criteria": raw[k], "monomials": r})
    return process.next(state, values, weights)


@pytest.fixture(scope="module")
def process(runtime, clients):
    update_type = tff.to_type([(np.float32, (6, 4)), (np.float32, (4,))])
    return tff_pmc.aggregation.build_basis_aggregation(
        update_type,
        tff_pmc.aggregation.SumPlan(scores.Basis.all_subsets(3)),
        scores.prioritized((0,)),
    )


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_every_ordering_from_the_same_sums(process, clients, order):
    """Weights and aggregate equal NumPy's to 1e-6 for all 15 orderings."""
    raw, updates = clients
    basis = scores.Basis.all_subsets(3)
    state = process.initialize()
    state["coefficients"] = basis.coefficients(scores.prioritized(order))
    output = run(process, state, raw, updates, basis)
    for found, expected in zip(output.result, numpy_mean(raw, updates, order)):
        scale = np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * scale)
    totals = output.measurements["totals"]
    np.testing.assert_allclose(totals, raw.sum(axis=0), rtol=1e-6)


def test_a_minimal_basis_gives_the_same(runtime, clients):
    raw, updates = clients
    score = scores.prioritized((2, 0, 1))
    basis = scores.Basis.of(3, [score])
    update_type = tff.to_type([(np.float32, (6, 4)), (np.float32, (4,))])
    process = tff_pmc.aggregation.build_basis_aggregation(
        update_type, tff_pmc.aggregation.SumPlan(basis), score
    )
    output = run(process, process.initialize(), raw, updates, basis)
    for found, expected in zip(output.result, numpy_mean(raw, updates, (2, 0, 1))):
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)


def test_no_weight_at_all_gives_a_zero_update(process, clients):
    raw, updates = clients
    basis = scores.Basis.all_subsets(3)
    output = run(process, process.initialize(), 0 * raw, updates, basis)
    assert output.measurements["score"] == 0
    assert not any(np.any(part) for part in output.result)
