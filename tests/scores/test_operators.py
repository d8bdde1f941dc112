"""Weighted average, OWA, Choquet: the formulas."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_pmc import scores

C = (0.5, 0.8, 0.9)


@st.composite
def capacities(draw):
    """A random capacity: each set is worth the most of its parts, and some more."""
    m = draw(st.integers(1, 4))
    values = {frozenset(): 0.0}
    for size in range(1, m + 1):
        for subset in map(frozenset, itertools.combinations(range(m), size)):
            parts = [values[subset - {i}] for i in subset]
            values[subset] = max(parts) + draw(st.floats(0, 1))
    whole = values[frozenset(range(m))]
    if whole == 0:
        values[frozenset(range(m))] = whole = 1.0
    del values[frozenset()]
    return m, {subset: value / whole for subset, value in values.items()}


def points(m):
    return st.lists(st.floats(0, 1), min_size=m, max_size=m)


# --- Numbers worked by hand ----------------------------------------------------


def test_weighted_average_by_hand():
    """0.5 x 0.5 + 0.3 x 0.8 + 0.2 x 0.9 = 0.25 + 0.24 + 0.18 = 0.67."""
    assert scores.weighted_average((0.5, 0.3, 0.2))(C) == pytest.approx(0.67)
    # In the order of the members, whatever the columns'.
    by_name = scores.weighted_average((0.5, 0.3, 0.2), members=("MD", "DS", "LD"))
    assert by_name(C) == pytest.approx(0.5 * 0.9 + 0.3 * 0.5 + 0.2 * 0.8)


def test_product_by_hand():
    score = scores.product(("ACC", "DS"))
    assert score((0.9, 0.2)) == pytest.approx(0.18)
    assert isinstance(score, scores.PolynomialScore)
    assert score.terms == {(0, 1): 1.0}


@pytest.mark.parametrize(
    ("quantifier", "weights"),
    [
        ("any", (1, 0, 0)),
        ("all", (0, 0, 1)),
        # Q(r) = 2r up to 1/2: Q(1/3) = 2/3, Q(2/3) = 1.
        ("at_least_half", (2 / 3, 1 / 3, 0)),
        # Q(r) = 2r - 1 from 1/2 on: Q(1/3) = 0, Q(2/3) = 1/3.
        ("as_many_as_possible", (0, 1 / 3, 2 / 3)),
        # Q(r) = (r - 0.3) / 0.5: Q(1/3) = 1/15, Q(2/3) = 11/15.
        ("most", (1 / 15, 10 / 15, 4 / 15)),
    ],
)
def test_quantifiers_by_hand(quantifier, weights, owa_by_sorting):
    assert scores.owa_weights(quantifier, 3) == pytest.approx(weights)
    assert scores.owa(quantifier)(C) == pytest.approx(owa_by_sorting(C, weights))


# --- Identities ----------------------------------------------------------------


@given(capacities().flatmap(lambda case: st.tuples(st.just(case), points(case[0]))))
@settings(max_examples=200, deadline=None)
def test_the_sum_over_minima_equals_the_choquet_integral(choquet_by_sorting, case):
    """sum_S m(S) min_S c = the sum over the sorted criteria."""
    (m, capacity), c = case
    score = scores.choquet(capacity, ("DS", "LD", "MD", "XX")[:m])
    assert score(c) == pytest.approx(choquet_by_sorting(c, capacity), abs=1e-9)
    assert score(c) >= 0


@given(points(3), st.lists(st.floats(0.01, 1), min_size=3, max_size=3))
def test_additive_is_the_weighted_average_symmetric_is_owa(owa_by_sorting, c, values):
    weights = [value / sum(values) for value in values]
    codes = ("DS", "LD", "MD")
    subsets = [s for n in (1, 2) for s in itertools.combinations(range(3), n)]
    additive = {s: sum(weights[i] for i in s) for s in subsets}
    symmetric = {s: sum(weights[: len(s)]) for s in subsets}
    average = scores.weighted_average(weights, codes)
    assert scores.choquet(additive, codes)(c) == pytest.approx(average(c))
    assert scores.choquet(symmetric, codes)(c) == pytest.approx(
        owa_by_sorting(c, weights)
    )
    assert scores.owa(weights, codes)(c) == pytest.approx(owa_by_sorting(c, weights))


@given(capacities())
def test_moebius_and_back(case):
    _, capacity = case
    back = scores.from_moebius(scores.moebius(capacity))
    assert set(back) == set(capacity)
    for subset, value in capacity.items():
        assert back[subset] == pytest.approx(value, abs=1e-12)


# --- What is refused -----------------------------------------------------------


REFUSED = [
    (lambda: scores.owa((0.5, 0.5)), "3 criteria needs 3 weights, got 2"),
    (lambda: scores.owa((0.5, 0.6, -0.1)), r"in \[0, 1\], got 0.5,0.6,-0.1"),
    (lambda: scores.owa((0.5, 0.3, 0.1)), "0.5,0.3,0.1 sum to 0.9"),
    (lambda: scores.owa((0.5, float("nan"), 0.5)), "0.5,nan,0.5"),
    (lambda: scores.owa("few"), "quantifier must be one of any, .*'few'"),
    (lambda: scores.owa("most", members=("DS", "XX")), "unknown criterion 'XX'"),
    (lambda: scores.weighted_average((1, 1, 1)), "sum to 1"),
    (lambda: scores.product(members=("DS", "DS")), "twice"),
    (lambda: scores.choquet({}), "names no criteria"),
    (lambda: scores.choquet({"DS": 0.4}), "all criteria, DS, must be 1, got 0.4"),
    (lambda: scores.choquet({"XX": 1.0}), "unknown criterion 'XX'"),
    (lambda: scores.choquet({("DS",): 0.4, ("DS", "LD"): 1.0}), "no value for LD"),
    (lambda: scores.ChoquetScore("x", {(0,): 0.5}, (0,)), "must be 1"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_an_invalid_operator_is_rejected_and_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({("LD", "DS"): 0.9}, r"names DS\+LD twice"),
        ({("DS", "LD"): 0.35}, r"not monotone: DS\+LD has 0.35 and its part DS 0.4"),
        ({("LD", "MD"): float("nan")}, r"not monotone: .*LD\+MD"),
        ({("DS",): -0.1}, "not monotone: DS has -0.1 and its part nothing 0"),
    ],
)
def test_an_invalid_capacity_is_rejected_and_named(capacity, changes, message):
    with pytest.raises(ValueError, match=message):
        scores.choquet({**capacity, **changes})


def test_labels_distinguish_scores_and_have_no_blank(capacity):
    labels = [
        scores.owa("most").label,
        scores.owa("most", members=("DS", "LD")).label,
        scores.owa((0.5, 0.3, 0.2)).label,
        scores.weighted_average((0.5, 0.3, 0.2)).label,
        scores.choquet(capacity).label,
        scores.product().label,
    ]
    assert labels[0] == "OWA[most]:DS,LD,MD"
    assert labels[4] == "Choquet[0.4,0.3,0.2,0.8,0.5,0.4]:DS,LD,MD"
    assert len(set(labels)) == len(labels)
    assert not any(" " in label for label in labels)


class TestBasis:
    def test_one_basis_serves_every_capacity(self, capacity):
        basis = scores.Basis.all_subsets(3, minima=True)
        assert len(basis) == 7
        assert basis.products == ((0,), (1,), (2,))
        average = scores.weighted_average((0.5, 0.3, 0.2))
        for score in (scores.owa("most"), scores.choquet(capacity), average):
            assert basis.covers(score)
        with pytest.raises(ValueError, match=r"needs the sums \[\(0, 1\)\]"):
            basis.coefficients(scores.product(members=("DS", "LD")))
        assert not scores.choquet({("DS",): 0.25, ("LD",): 0.75}).minima  # Additive.

    def test_a_score_needs_its_minima_in_the_basis(self):
        basis = scores.Basis.of(3, [scores.owa("all"), scores.prioritized((0, 1))])
        assert (basis.products, basis.minima) == (((0,), (0, 1)), ((0, 1, 2),))
        np.testing.assert_array_equal(basis.coefficients(scores.owa("all")), [0, 0, 1])

    def test_the_values_of_a_basis_are_products_and_minima(self):
        from tff_pmc.aggregation.contributions import client_weights

        basis = scores.Basis(3, ((0,), (0, 2)), ((0, 1), (0, 1, 2)))
        values = client_weights(basis, np.array([C, (0.2, 0.1, 0)], np.float32))
        expected = [[0.5, 0.45, 0.5, 0.5], [0.2, 0, 0.1, 0]]
        np.testing.assert_allclose(values, expected, rtol=1e-6)
