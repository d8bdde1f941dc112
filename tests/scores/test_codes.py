"""Scores and ranges by the codes of criteria, whatever the order of the columns."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from tff_pmc import criteria, scores, search

RAW = {"DS": [30.0, 10.0, 20.0], "LD": [2.0, 6.0, 4.0], "MD": [0.5, 0.7, 0.2]}
C = {code: np.array(values) / sum(values) for code, values in RAW.items()}
CAPACITY = {("DS",): 0.2, ("LD",): 0.7}  # Both: 1.
# A score, and what it computes of normalized criteria by code.
BY_CODES = [
    (scores.single("LD"), lambda c: c["LD"]),
    (scores.single("MW"), lambda c: c["MD"]),
    (scores.prioritized(("LD", "MD")), lambda c: c["LD"] * (1 + c["MD"])),
    (
        scores.weighted_average((0.75, 0.25), members=("LD", "DS")),
        lambda c: 0.75 * c["LD"] + 0.25 * c["DS"],
    ),
    (
        scores.weighted_average((0.5, 0.3, 0.2)),
        lambda c: 0.5 * c["DS"] + 0.3 * c["LD"] + 0.2 * c["MD"],
    ),
    (scores.product(members=("MD", "LD")), lambda c: c["MD"] * c["LD"]),
    (
        scores.dual(0.25, "LD", "DS", criteria=("DS", "LD")),
        lambda c: 0.25 * c["LD"] + 0.75 * c["DS"],
    ),
    (
        scores.owa((0.75, 0.25), members=("LD", "MD")),
        lambda c: (
            0.75 * np.maximum(c["LD"], c["MD"]) + 0.25 * np.minimum(c["LD"], c["MD"])
        ),
    ),
    (
        # The smaller counts whole, and what rises above it by what it is worth.
        scores.choquet(CAPACITY),
        lambda c: (
            np.minimum(c["DS"], c["LD"])
            + 0.2 * np.maximum(c["DS"] - c["LD"], 0)
            + 0.7 * np.maximum(c["LD"] - c["DS"], 0)
        ),
    ),
]
ORDERS = [("DS", "LD", "MD"), ("LD", "MD", "DS"), ("MD", "X", "DS", "LD")]
NAMED = {
    "frame": lambda codes: pd.DataFrame({code: RAW[code] for code in codes}),
    "whole numbers with a gap": lambda codes: pd.DataFrame(
        {code: pd.array([*RAW[code]], "Float64") for code in codes}
    ),
    "rows": lambda codes: [
        {code: RAW[code][k] for code in (codes, codes[::-1])[k % 2]} for k in range(3)
    ],
    "rows of a frame": lambda codes: [
        row for _, row in NAMED["frame"](codes).iterrows()
    ],
    "named tuples": lambda codes: [*NAMED["frame"](codes).itertuples(index=False)],
    "mapping": lambda codes: {code: RAW[code] for code in codes},
    "structured": lambda codes: np.array(
        list(zip(*(RAW[code] for code in codes))), [(code, float) for code in codes]
    ),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("score", "by_hand"), BY_CODES, ids=lambda v: str(v)[:0])
def test_a_score_weighs_by_its_codes_in_any_columns(score, by_hand, order):
    c = np.stack([C.get(code, np.full(3, 9.0)) for code in order], axis=1)
    reordered = score.over(order)
    np.testing.assert_allclose(reordered(c), by_hand(C), rtol=1e-12)
    assert reordered.label == score.label
    assert reordered.over(order) is reordered
    # And from there to other columns again.
    np.testing.assert_allclose(
        reordered.over(("LD", "DS", "MD"))(
            c[:, [order.index(x) for x in RAW]][:, [1, 0, 2]]
        ),
        by_hand(C),
        rtol=1e-12,
    )


@pytest.mark.parametrize("kind", NAMED)
@pytest.mark.parametrize(("score", "by_hand"), BY_CODES, ids=lambda v: str(v)[:0])
def test_columns_with_names_are_found_by_codes(score, by_hand, kind):
    columns = NAMED[kind](("MD", "LD", "DS"))
    s = by_hand(C)
    weights = scores.participant_weights(columns, score)
    np.testing.assert_allclose(weights, s / s.sum(), rtol=1e-12)


def test_numbers_stay_columns():
    c = np.array([[0.1, 0.2, 0.7]])
    assert scores.prioritized((1,)).over(("LD", "MD", "DS"))(c) == 0.2
    mixed = scores.prioritized(("LD", 2)).over(("LD", "MD", "DS"))
    assert mixed(c) == pytest.approx(0.1 + 0.1 * 0.7)
    frame = pd.DataFrame(c, columns=["LD", "MD", "DS"])
    assert scores.single(1)(frame) == 0.2
    assert scores.single("LD")(pd.DataFrame(c)) == 0.2  # Columns without names.
    assert scores.single("LD")(frame.iloc[0]) == 0.1  # One client.
    step = scores.PolynomialScore(
        "s", {(0,): 1.0}, (0,), {0: 1.0, 1: -1.0}, ("LD", "MD")
    )
    assert step.over(("MD", "LD")).step_length((2.0, 8.0)) == 8 / 2


@pytest.mark.parametrize("order", [("DS", "LD"), ("LD", "DS")])
def test_ranges_belong_to_their_codes(order):
    ranges = {"LD": (0, 10), "DS": (10, 30)}
    normalization = scores.Normalization.from_codes("range", ("DS", "LD"), ranges)
    frame = pd.DataFrame({code: RAW[code] for code in order})
    c = {"DS": np.array([1, 0, 0.5]), "LD": np.array([0.2, 0.6, 0.4])}
    normalized = scores.normalize(frame, normalization)
    np.testing.assert_allclose(normalized, np.stack([c[x] for x in order], 1))
    weights = scores.participant_weights(frame, scores.single("LD"), normalization)
    np.testing.assert_allclose(weights, c["LD"] / 1.2)


def test_masked_or_missing_values_are_excluded():
    raw = np.ma.array([[30, 2], [10, 99], [20, 6]], mask=[[0, 0], [0, 1], [0, 0]])
    expected = [2 / 8, 0, 6 / 8]
    frame = pd.DataFrame({"LD": pd.array([2, None, 6], "Int64"), "DS": [30, 10, 20]})
    mapping = {"DS": raw[:, 0], "LD": raw[:, 1]}
    for values in (raw, [*raw], frame, mapping):
        weights = scores.participant_weights(values, scores.single("LD"))
        np.testing.assert_allclose(weights, expected)
    assert np.isnan(scores.single("LD")(raw)).tolist() == [False, True, False]
    assert raw.data.tolist() == [[30, 2], [10, 99], [20, 6]]  # As it was.


def test_measures_of_weights_ignore_masked_values():
    masked = np.ma.array([0.5, 0.5, 0.9], mask=[0, 0, 1])
    assert scores.coefficient_of_variation(masked) == 0
    assert scores.effective_clients(masked) == 2
    assert scores.total_variation(masked, [0.75, 0.25, 0.0]) == 0.25
    p, q = pd.Series({"a": 0.75, "b": 0.25}), pd.Series({"b": 0.25, "a": 0.75})
    assert scores.total_variation(p, q) == 0
    with pytest.raises(ValueError, match="different clients"):
        scores.total_variation(p, pd.Series({"a": 0.5, "c": 0.5}))


def test_a_basis_finds_codes_and_names_its_sums():
    basis = scores.Basis.all_subsets(("LD", "DS"))
    assert basis.coefficients(scores.single("DS")).tolist() == [0, 1, 0]
    assert basis.names == {"products": ("LD", "DS", "LD.DS")}
    order = scores.prioritized(("LD", "DS"))
    assert scores.Basis.of(("LD", "DS"), [order]).products == ((0,), (0, 1))
    minima = scores.Basis.all_subsets(("LD", "DS"), minima=True)
    assert minima.names == {"products": ("LD", "DS"), "minima": ("LD.DS",)}
    powers = scores.Basis.all_subsets(("DS^-0.5", "größe", "min"))
    for built in (basis, minima, powers):
        assert scores.Basis.of_names(built.criteria, built.names) == built
    with pytest.raises(ValueError, match="over the criteria LD, DS, .* are DS, LD"):
        basis.over(("DS", "LD"))


TWO = ("DS", "LD")
NO_COLUMNS = [
    (lambda: scores.single("MD").over(TWO), "'MD' weighs by the criterion MD.*DS, LD"),
    (lambda: scores.owa("most").over(TWO), "by the criterion MD"),
    (lambda: scores.prioritized(("LD", 0)).over(("LD", "DS")), "by its number"),
    (lambda: scores.Basis.of(TWO, [scores.single("MD")]), "by the criterion MD"),
    (
        lambda: scores.Basis.singles(TWO).coefficients(scores.single("MD")),
        "by the criterion MD",
    ),
    (lambda: scores.single("DS", ("DS", "DS")), "criteria names a code twice"),
    (
        lambda: scores.participant_weights(
            pd.DataFrame({"DS": [1.0]}), scores.single("LD")
        ),
        "by the criterion LD",
    ),
    (
        lambda: scores.normalize(pd.DataFrame({"DS": [1], "client": ["20_29"]})),
        "the column 'client' must contain numbers: '20_29' is text",
    ),
    (
        lambda: scores.normalize(pd.DataFrame([[1.0, 2.0]])[[1, 0]]),
        r"named by codes of criteria, got \[1, 0\]",
    ),
    (
        lambda: scores.normalize([{"DS": 1}, {"LD": 2}]),
        "rows have different names",
    ),
    (
        lambda: scores.normalize(pd.DataFrame({"DS": pd.to_datetime(["2020"])})),
        "the column 'DS' must contain numbers: they are times",
    ),
    (
        lambda: scores.Normalization("range", {(0.0, 1.0), (0.0, 2.0)}),
        "ranges must be a sequence",
    ),
    (
        lambda: scores.normalize(pd.DataFrame([[1, 2]], columns=["DS", "DS"])),
        "a column appears twice: DS, DS",
    ),
    (
        lambda: scores.normalize(
            pd.DataFrame({"LD": [1.0]}),
            scores.Normalization.from_codes("range", ("DS",), {"DS": (0, 1)}),
        ),
        "needs a range for LD",
    ),
]


@pytest.mark.parametrize(("make", "message"), NO_COLUMNS)
def test_a_criterion_without_a_column_is_rejected_and_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


UNORDERED = {
    "set": lambda items: {*items},
    "frozenset": frozenset,
    "dict": lambda items: dict.fromkeys(items, 0.5),
    "text": lambda items: "DS",
}
HALVES = (0.25, 0.75)
TAKING = {
    "order": lambda order: scores.prioritized(order(TWO)),
    "criteria of an ordering": lambda order: scores.single("DS", order(TWO)),
    "members of an average": lambda order: scores.weighted_average(
        HALVES, members=order(TWO)
    ),
    "weights of an average": lambda order: scores.weighted_average(
        order(HALVES), members=TWO
    ),
    "criteria of an average": lambda order: scores.weighted_average(HALVES, order(TWO)),
    "members of a product": lambda order: scores.product(members=order(TWO)),
    "criteria of a product": lambda order: scores.product(order(TWO)),
    "members of OWA": lambda order: scores.owa("most", members=order(TWO)),
    "criteria of OWA": lambda order: scores.owa("most", order(TWO)),
    "criteria of Choquet": lambda order: scores.choquet(CAPACITY, order(TWO)),
    "criteria of dual": lambda order: scores.dual(0.5, "LD", "DS", order(TWO)),
    "criteria of ranges": lambda order: scores.Normalization.from_codes(
        "range", order(TWO), {"DS": (0, 1), "LD": (0, 1)}
    ),
    "criteria of a basis": lambda order: scores.Basis.all_subsets(order(TWO)),
    "other columns": lambda order: scores.single("DS").over(order(TWO)),
    "measured": lambda order: criteria.resolve(order(TWO)),
    "searched": lambda order: search.orderings(order(TWO)),
}


@pytest.mark.parametrize("kind", UNORDERED)
@pytest.mark.parametrize("taking", TAKING)
def test_an_unordered_argument_is_rejected(taking, kind):
    with pytest.raises(ValueError, match="must be a sequence, got"):
        TAKING[taking](UNORDERED[kind])


ORDERED = {
    **{kind.__name__: kind for kind in (list, tuple, np.array, iter)},
    "Index": pd.Index,
    "Series": pd.Series,
    "keys": lambda items: dict.fromkeys(items).keys(),
    "values": lambda items: dict(enumerate(items)).values(),
}


@pytest.mark.parametrize("kind", ORDERED)
@pytest.mark.parametrize("taking", TAKING)
def test_an_ordered_argument_is_accepted(taking, kind):
    assert TAKING[taking](ORDERED[kind]) is not None


def test_owa_applies_weights_in_order():
    for wrong in ({0.25, 0.75}, {0.25: 1, 0.75: 2}):
        with pytest.raises(ValueError, match="weights of the OWA must be a sequence"):
            scores.owa(wrong, ("DS", "LD"))


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_earlier_names_of_fields_work_and_warn():
    with pytest.warns(DeprecationWarning, match="PolynomialScore.step is called step_"):
        score = scores.PolynomialScore("s", {(0,): 1.0}, (0,), step={0: -1.0})
    with pytest.warns(DeprecationWarning, match="PolynomialScore.length is called"):
        assert score.length((4.0,)) == score.step_length((4.0,)) == 0.25
    with pytest.warns(DeprecationWarning):
        replaced = dataclasses.replace(score, step={0: 1.0})
    assert (score.step_powers, replaced.step_powers) == ({0: -1.0}, {0: 1.0})
    with pytest.warns(DeprecationWarning, match="Basis.summed is called products"):
        basis = scores.Basis(1, summed=((0,),), scales_step=True)
    with pytest.warns(DeprecationWarning):
        assert (basis.summed, basis.steps) == (((0,),), True)
    assert scores.Normalization.declared("sum", ("DS",)) == scores.Normalization("sum")
