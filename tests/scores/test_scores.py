"""Scores: the papers' formulas, and what every score must keep."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tff_pmc import scores


def direct_score(c, order):
    """PMC eq. 6, term by term, for one client: the oracle of these tests."""
    total, product = 0.0, 1.0
    for column in order:
        product *= c[column]
        total += product
    return total


def direct_weights(raw, order):
    """PMC section 4.1 and eq. 5, client by client."""
    raw = np.asarray(raw, float)
    c = np.zeros_like(raw)
    for i in range(raw.shape[1]):
        if raw[:, i].sum() > 0:
            c[:, i] = raw[:, i] / raw[:, i].sum()
    s = np.array([direct_score(row, order) for row in c])
    return s / s.sum()


@st.composite
def raw_and_order(draw):
    m = draw(st.integers(1, 5))
    clients = draw(st.integers(1, 8))
    values = st.floats(1e-3, 1e3)
    raw = draw(hnp.arrays(float, (clients, m), elements=values))
    size = draw(st.integers(1, m))
    return raw, tuple(draw(st.permutations(range(m)))[:size])


ALL_SCORES = [
    scores.prioritized(order)
    for size in (1, 2, 3)
    for order in itertools.permutations(range(3), size)
] + [
    # A weighted average and a quality-quantity mixture are polynomial scores too.
    scores.PolynomialScore("0.2/0.3/0.5", {(0,): 0.2, (1,): 0.3, (2,): 0.5}, (0, 1, 2)),
    scores.PolynomialScore("mixture", {(0,): 0.7, (2,): 0.3}, (0, 2)),
    scores.weighted_average((0.5, 0.5), members=("DS", "MD")),
    scores.product(),
    scores.owa("most"),
    scores.owa((0.5, 0.3, 0.2)),
    scores.owa("all", members=("LD", "MD")),
    scores.choquet({("DS",): 0.4, ("LD",): 0.3}),
]


@pytest.fixture(params=ALL_SCORES, ids=lambda s: s.label)
def score(request):
    return request.param


class TestContract:
    """What every score must keep."""

    raw = np.array([[600, 2, 0.6], [600, 4, 0.5], [20, 1, 0.9], [0, 0, 0.7]])

    def test_weights_are_a_distribution(self, score):
        p = scores.participant_weights(self.raw, score)
        assert p.shape == (4,)
        assert (p >= 0).all()
        assert p.sum() == pytest.approx(1, abs=1e-12)

    def test_order_of_clients_does_not_matter(self, score):
        p = scores.participant_weights(self.raw, score)
        turned = scores.participant_weights(self.raw[::-1], score)
        np.testing.assert_allclose(turned[::-1], p, rtol=1e-12)

    def test_units_of_the_criteria_do_not_matter(self, score):
        p = scores.participant_weights(self.raw, score)
        scaled = scores.participant_weights(self.raw * [10, 0.1, 7], score)
        np.testing.assert_allclose(scaled, p, rtol=1e-12)

    def test_equal_clients_have_equal_weights(self, score):
        p = scores.participant_weights(np.ones((5, 3)), score)
        np.testing.assert_allclose(p, 0.2, rtol=1e-12)

    def test_more_of_a_criterion_never_lowers_the_score(self, score):
        low = np.array([0.2, 0.3, 0.4])
        for column in score.columns:
            high = low.copy()
            high[column] += 0.1
            assert score(high) >= score(low) - 1e-12  # Terms may be negative.

    def test_a_client_that_is_not_finite_has_weight_zero(self, score):
        raw = np.vstack([self.raw, [np.nan, 1, 1]])
        p = scores.participant_weights(raw, score)
        assert p[-1] == 0
        np.testing.assert_allclose(
            p[:-1], scores.participant_weights(self.raw, score), rtol=1e-12
        )

    def test_all_scores_zero_gives_no_weight(self, score):
        assert not scores.participant_weights(np.zeros((3, 3)), score).any()


@given(raw_and_order())
@settings(max_examples=300, deadline=None)
def test_the_monomial_route_equals_the_direct_formula(case):
    """sum_S coef_S r_S[k] / sum_k (the same) = PMC eq. 5 and 6."""
    raw, order = case
    score = scores.prioritized(order)
    basis = scores.Basis.all_subsets(raw.shape[1])
    of_normalized = basis.coefficients(score).astype(float)
    members = basis.membership()
    totals = raw.sum(axis=0)
    coefficients = of_normalized / np.where(members, totals, 1).prod(axis=1)
    monomials = np.where(members[None], raw[:, None, :], 1).prod(axis=2)
    s = monomials @ coefficients
    np.testing.assert_allclose(s / s.sum(), direct_weights(raw, order), rtol=1e-9)
    np.testing.assert_allclose(
        scores.participant_weights(raw, score), direct_weights(raw, order), rtol=1e-9
    )


def test_codes_and_columns_name_the_same_score():
    by_code = scores.prioritized(("LD", "DS"))
    assert by_code.terms == scores.prioritized((1, 0)).terms
    assert by_code.label == "LD,DS"
    other = scores.prioritized(("IS", "DS"), criteria=("DS", "CB", "IS"))
    assert other.terms == scores.prioritized((2, 0)).terms


def test_a_zero_total_silences_a_criterion_and_those_after_it():
    raw = np.array([[10.0, 0, 3], [30, 0, 5]])
    p = scores.participant_weights(raw, scores.prioritized((0, 1, 2)))
    np.testing.assert_allclose(p, [0.25, 0.75])


ONE = scores.prioritized((0,))


def terms(coefficients):
    return lambda: scores.PolynomialScore("bad", coefficients, (0, 1))


def weights(raw, score=ONE):
    return lambda: scores.participant_weights(raw, score)


def declared(method, ranges):
    return lambda: scores.Normalization.from_codes(method, ("DS", "LD"), ranges)


REFUSED = [
    *(
        (lambda order=order: scores.prioritized(order), message)
        for order, message in [
            ((), "empty"),
            (("DS", "DS"), "twice"),
            (("DS", "XX"), "unknown criterion 'XX'"),
            ("DS", "sequence"),
            ((-1,), "-1 is neither"),
            ((True,), "True is neither"),
            ((0.5,), "0.5 is neither"),
        ]
    ),
    (weights([[1.0, -2.0]]), "criterion 1 of client 0"),
    (weights([1.0, 2.0]), "clients, m"),
    (weights([[1.0]], lambda c: np.array([-1.0])), "value that is negative"),
    (weights([[1.0], [2.0]], lambda c: np.array([1.0])), "one value per client"),
    (weights([[1.0]], scores.prioritized((0, 1))), "m > 1"),
    (terms({}), "no terms"),
    (terms({(1, 0): 1.0}), "ascending"),
    (terms({(0,): -1.0}), "finite and not negative"),
    (terms({(0,): float("nan")}), "must be finite"),
    (declared("mean", None), "must be one of sum, max, range"),
    (declared("range", {"DS": (0, 1)}), "needs a range for LD"),
    (declared("range", {"DS": (1, 1), "LD": (0, 1)}), "must have 0 <= low < high"),
    (declared("sum", {"DS": (0, 1)}), "no other method takes ranges"),
    (declared("range", {"XX": (0, 1)}), "declared for XX"),
    (lambda: scores.dual(1.1), "lambda must be"),
    (lambda: scores.dual(float("nan")), "lambda must be"),
    (lambda: scores.dual(0.5, quality="LD"), "'LD'"),
    (lambda: scores.dual(0.5, quality="DS"), "got DS for both"),
    (lambda: scores.dual_grid(1), "steps"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_an_invalid_score_is_rejected_and_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_values_outside_their_range_are_clipped():
    normalization = scores.Normalization("range", ((10.0, 20.0),))
    c = scores.normalize([[5.0], [15.0], [25.0]], normalization)
    np.testing.assert_allclose(c[:, 0], [0, 0.5, 1])


def test_with_max_lower_priorities_count_for_any_number_of_clients():
    """With 100 equal clients but one, `sum` gives the second priority 1 %."""
    raw = np.ones((100, 2))
    raw[0, 1] = 0
    order = scores.prioritized((0, 1))
    by_sum = scores.participant_weights(raw, order)
    by_max = scores.participant_weights(raw, order, scores.Normalization("max"))
    assert by_sum[0] / by_sum[1] == pytest.approx(1 / (1 + 1 / 99))
    assert by_max[0] / by_max[1] == pytest.approx(1 / 2)


def test_duals_score_and_its_grid():
    score = scores.dual(0.3)
    assert score.label == "lambda=0.30"
    assert score((0.5, 0.1)) == pytest.approx(0.3 * 0.5 + 0.7 * 0.1)
    swapped = scores.dual(0.3, criteria=("DS", "ACC"))
    assert swapped((0.1, 0.5)) == pytest.approx(score((0.5, 0.1)))
    grid = scores.dual_grid()
    assert [s.label for s in grid[:3]] == ["lambda=0.00", "lambda=0.10", "lambda=0.20"]
    assert len(grid) == 11 and grid[-1].label == "lambda=1.00"
    assert len(scores.Basis.of(2, grid)) == 2  # Two sums serve them all.


class TestBasis:
    def test_an_ordering_needs_its_prefixes(self):
        basis = scores.Basis.of(3, [scores.prioritized((2, 0, 1))])
        assert basis.products == ((2,), (0, 2), (0, 1, 2))


def test_inequality_measures_by_hand():
    even, skewed = np.full(4, 0.25), np.array([0.7, 0.1, 0.1, 0.1])
    assert scores.effective_clients(even) == 4
    assert scores.effective_clients(skewed) == pytest.approx(1 / 0.52)
    assert scores.coefficient_of_variation(even) == 0
    # The deviations are 0.45 and three times -0.15: variance 0.0675.
    assert scores.coefficient_of_variation(skewed) == pytest.approx(0.0675**0.5 / 0.25)
    assert scores.total_variation(even, skewed) == pytest.approx(0.45)
    assert scores.effective_clients(np.zeros(3)) == 0
