"""Weighted average, OWA, Choquet: the formulas, and whole rounds against NumPy."""

import csv
import itertools
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tff_pmc import criteria, processes, scores
from tff_pmc.clients import packing
from tff_pmc.experiments import named, rows
from tff_pmc.experiments.config import ConfigError

CAPACITY = {
    ("DS",): 0.4,
    ("LD",): 0.3,
    ("MD",): 0.2,
    ("DS", "LD"): 0.8,
    ("DS", "MD"): 0.5,
    ("LD", "MD"): 0.4,
}
C = (0.5, 0.8, 0.9)
RANGES = {"DS": (0.0, 10.0), "LD": (0.0, 4.0), "MD": (0.0, 1.0)}


# --- Oracles: sorting, client by client, where the package sums minima ---------


def owa_by_sorting(c, weights):
    return sum(w * x for w, x in zip(weights, sorted(c, reverse=True)))


def choquet_by_sorting(c, capacity):
    """The rises of the sorted criteria; capacity by frozenset of columns."""
    order = sorted(range(len(c)), key=lambda i: c[i])
    total, before = 0.0, 0.0
    for place, column in enumerate(order):
        total += (c[column] - before) * capacity[frozenset(order[place:])]
        before = c[column]
    return total


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


def test_owa_by_hand():
    """Sorted 0.9, 0.8, 0.5: 0.5 x 0.9 + 0.3 x 0.8 + 0.2 x 0.5 = 0.79."""
    assert scores.owa((0.5, 0.3, 0.2))(C) == pytest.approx(0.79)


def test_choquet_by_hand():
    """DS 0.5 < LD 0.8 < MD 0.9.

    All reach 0.5, worth 1; LD and MD rise by 0.3, together worth 0.4; MD alone by 0.1,
    worth 0.2: 0.5 + 0.12 + 0.02 = 0.64.
    """
    assert scores.choquet(CAPACITY)(C) == pytest.approx(0.64)


def test_product_by_hand():
    score = scores.product(("ACC", "DS"))
    assert score((0.9, 0.2)) == pytest.approx(0.18)
    assert isinstance(score, scores.PolynomialScore)
    assert score.terms == {(0, 1): 1.0}


def test_moebius_by_hand():
    """Pairs: 0.8 - 0.4 - 0.3, 0.5 - 0.4 - 0.2, 0.4 - 0.3 - 0.2; the rest to 1."""
    value = {frozenset(subset): v for subset, v in CAPACITY.items()}
    value[frozenset(("DS", "LD", "MD"))] = 1.0
    found = scores.moebius(value)
    assert found[frozenset(("DS",))] == 0.4
    assert found[frozenset(("DS", "LD"))] == pytest.approx(0.1)
    assert found[frozenset(("DS", "MD"))] == pytest.approx(-0.1)
    assert found[frozenset(("LD", "MD"))] == pytest.approx(-0.1)
    # 0.4 + 0.3 + 0.2 + 0.1 - 0.1 - 0.1 = 0.8, so all three together have 0.2.
    assert found[frozenset(("DS", "LD", "MD"))] == pytest.approx(0.2)


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
def test_quantifiers_by_hand(quantifier, weights):
    assert scores.owa_weights(quantifier, 3) == pytest.approx(weights)
    assert scores.owa(quantifier)(C) == pytest.approx(owa_by_sorting(C, weights))


# --- Identities ----------------------------------------------------------------


@given(points(3))
def test_owa_has_the_mean_the_maximum_and_the_minimum(c):
    assert scores.owa((1 / 3,) * 3)(c) == pytest.approx(np.mean(c))
    assert scores.owa((1, 0, 0))(c) == pytest.approx(max(c))
    assert scores.owa((0, 0, 1))(c) == pytest.approx(min(c))
    assert scores.owa("any")(c) == pytest.approx(max(c))
    assert scores.owa("all")(c) == pytest.approx(min(c))


@given(capacities().flatmap(lambda case: st.tuples(st.just(case), points(case[0]))))
@settings(max_examples=200, deadline=None)
def test_the_minima_are_the_integral(case):
    """sum_S m(S) min_S c = the sum over the sorted criteria."""
    (m, capacity), c = case
    score = scores.choquet(capacity, ("DS", "LD", "MD", "XX")[:m])
    assert score(c) == pytest.approx(choquet_by_sorting(c, capacity), abs=1e-9)
    assert score(c) >= 0


@given(points(3), st.lists(st.floats(0.01, 1), min_size=3, max_size=3))
def test_additive_is_the_weighted_average_symmetric_is_owa(c, values):
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


def test_an_additive_capacity_needs_no_minima():
    additive = {("DS",): 0.25, ("LD",): 0.75}
    assert not scores.choquet(additive).minima
    assert set(scores.owa("most").minima) == {(0, 1), (0, 2), (1, 2), (0, 1, 2)}


# --- What is refused -----------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
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
        (
            lambda: scores.choquet({("DS",): 0.4, ("DS", "LD"): 1.0}),
            "no value for LD",
        ),
        (
            lambda: scores.choquet({**CAPACITY, ("LD", "DS"): 0.9}),
            r"names DS\+LD twice",
        ),
        (
            lambda: scores.choquet({**CAPACITY, ("DS", "LD"): 0.35}),
            r"not monotone: DS\+LD has 0.35 and its part DS 0.4",
        ),
        (
            lambda: scores.choquet({**CAPACITY, ("LD", "MD"): float("nan")}),
            r"not monotone: .*LD\+MD",
        ),
        (
            lambda: scores.choquet({**CAPACITY, ("DS",): -0.1}),
            "not monotone: DS has -0.1 and its part nothing 0",
        ),
        (lambda: scores.ChoquetScore("x", {(0,): 0.5}, (0,)), "must be 1"),
        (lambda: scores.named("sugeno", ("DS",)), "prioritized, weighted_average, owa"),
        (lambda: scores.named("owa", ("DS", "LD")), "score_weights or quantifier"),
        (
            lambda: scores.named("owa", ("DS",), score_weights=(1,), quantifier="all"),
            "one of them",
        ),
        (
            lambda: scores.named("product", ("DS",), score_weights=(1,)),
            "takes no score_weights",
        ),
        (
            lambda: scores.named(
                "choquet", ("DS", "LD", "MD"), capacity=[("DS", 0.4), ("LD", 0.4)]
            ),
            "must be of the criteria DS, LD, MD",
        ),
    ],
)
def test_what_is_no_operator_is_refused_by_name(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_names_and_parameters_make_the_scores():
    members = ("LD", "DS")
    assert scores.named("prioritized", members).terms == {(1,): 1, (0, 1): 1}
    average = scores.named("weighted_average", members, score_weights=(0.25, 0.75))
    assert average.terms == {(0,): 0.75, (1,): 0.25}
    assert scores.named("owa", members, quantifier="all").terms == {(0, 1): 1.0}
    assert scores.named("product", members).terms == {(0, 1): 1.0}
    capacity = [("DS", 0.25), ("LD", 0.5)]
    found = scores.named("choquet", members, capacity=capacity)
    assert found.terms == {(0,): 0.25, (1,): 0.5, (0, 1): 0.25}
    # The single-criterion baseline, beside any of them.
    alone = scores.named("choquet", ("DS",), capacity=capacity)
    assert (alone.label, alone.terms) == ("DS", {(0,): 1.0})


def test_labels_tell_scores_apart_and_have_no_blank():
    labels = [
        scores.owa("most").label,
        scores.owa("most", members=("DS", "LD")).label,
        scores.owa((0.5, 0.3, 0.2)).label,
        scores.weighted_average((0.5, 0.3, 0.2)).label,
        scores.choquet(CAPACITY).label,
        scores.product().label,
    ]
    assert labels[0] == "OWA[most]:DS,LD,MD"
    assert labels[4] == "Choquet[0.4,0.3,0.2,0.8,0.5,0.4]:DS,LD,MD"
    assert len(set(labels)) == len(labels)
    assert not any(" " in label for label in labels)


class TestBasis:
    def test_one_basis_serves_every_capacity(self):
        basis = scores.Basis.all_subsets(3, minima=True)
        assert len(basis) == 7
        assert basis.summed == ((0,), (1,), (2,))
        for score in (
            scores.owa("most"),
            scores.choquet(CAPACITY),
            scores.weighted_average((0.5, 0.3, 0.2)),
        ):
            assert basis.covers(score)
        assert not basis.covers(scores.prioritized((0, 1)))
        with pytest.raises(ValueError, match=r"needs the sums \[\(0, 1\)\]"):
            basis.vector(scores.product(members=("DS", "LD")))

    def test_a_score_needs_the_minima_it_has(self):
        basis = scores.Basis.of(3, [scores.owa("all"), scores.prioritized((0, 1))])
        assert (basis.summed, basis.minima) == (((0,), (0, 1)), ((0, 1, 2),))
        np.testing.assert_array_equal(basis.vector(scores.owa("all")), [0, 0, 1])

    def test_its_values_are_products_and_minima(self):
        from tff_pmc.clients.contribution import basis_values

        basis = scores.Basis(3, ((0,), (0, 2)), ((0, 1), (0, 1, 2)))
        found = basis_values(basis, np.array([C, (0.2, 0.1, 0)], np.float32))
        expected = [[0.5, 0.45, 0.5, 0.5], [0.2, 0, 0.1, 0]]
        np.testing.assert_allclose(found, expected, rtol=1e-6)


# --- Whole rounds ----------------------------------------------------------------

COHORT = [0, 2, 3, 5]
RATE = 0.3
BOTH = (scores.owa("most"), scores.choquet(CAPACITY))


def options(**more):
    import tensorflow_federated as tff

    return dict(
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
        local_epochs=2,
        **more,
    )


def trained_by_numpy(examples, initial, cohort):
    """Each client's model after two full-batch epochs, and its raw DS, LD, MD."""
    models, raw = [], []
    for k in cohort:
        part = examples.client(k)
        x = part["x"].reshape(len(part["y"]), -1) / 255.0
        kernel, bias = (w.astype(float) for w in initial)
        for _ in range(2):
            logits = x @ kernel + bias
            p = np.exp(logits - logits.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            error = (p - np.eye(3)[part["y"]]) / len(x)
            kernel, bias = kernel - RATE * x.T @ error, bias - RATE * error.sum(axis=0)
        moved = [kernel - initial[0], bias - initial[1]]
        norm = np.sqrt(sum((d**2).sum() for d in moved))
        models.append([kernel, bias])
        raw.append([len(x), len(set(part["y"])), 1 / np.sqrt(norm + 1)])
    return models, np.array(raw)


def oracle(score, c):
    """Scores by sorting, client by client."""
    if score.label.startswith("OWA"):
        return [owa_by_sorting(row, (1 / 15, 10 / 15, 4 / 15)) for row in c]
    columns = {"DS": 0, "LD": 1, "MD": 2}
    capacity = {
        frozenset(columns[code] for code in subset): value
        for subset, value in CAPACITY.items()
    }
    capacity[frozenset(range(3))] = 1.0
    return [choquet_by_sorting(row, capacity) for row in c]


def expected_model(score, examples, initial, cohort, normalization):
    models, raw = trained_by_numpy(examples, initial, cohort)
    scale = {
        "sum": raw.sum(axis=0),
        "max": raw.max(axis=0),
        "range": np.array([high for _, high in RANGES.values()]),
    }[normalization]
    s = np.array(oracle(score, np.minimum(raw / scale, 1)))
    p = s / s.sum()
    return [sum(p[k] * w for k, w in enumerate(part)) for part in zip(*models)]


def weights_of(process, state):
    return [np.asarray(w) for w in process.get_model_weights(state).trainable]


def assert_close(found, expected, tolerance=1e-5):
    for a, b in zip(found, expected):
        assert np.linalg.norm(a - b) <= tolerance * np.linalg.norm(b)


def ranges(normalization):
    return RANGES if normalization == "range" else None


@pytest.mark.parametrize("score", BOTH, ids=lambda score: score.label)
@pytest.mark.parametrize("normalization", ["sum", "max", "range"])
def test_two_stages_equal_numpy(runtime, toy_examples, toy_model, score, normalization):
    """Two rounds; one placement, then three."""
    process = processes.build_two_stage_fed_avg(
        toy_model,
        score=score,
        normalization=normalization,
        criteria_ranges=ranges(normalization),
        **options(),
    )
    state = process.initialize()
    model = weights_of(process, state)
    for shards, cohort in ((1, COHORT), (3, [1, 4, 5])):
        model = expected_model(score, toy_examples, model, cohort, normalization)
        data = packing.pack(toy_examples, cohort, num_shards=shards)
        state, metrics = process.next(state, data)
        assert_close(weights_of(process, state), model)
        assert metrics["client_work"]["train"]["clients"] == len(cohort)
    # The scores have to matter for the comparison to mean anything.
    plain = processes.build_prioritized_fed_avg(
        toy_model, priority=("DS",), **options()
    )
    other = plain.next(plain.initialize(), packing.pack(toy_examples, COHORT)).state
    first = process.next(process.initialize(), packing.pack(toy_examples, COHORT)).state
    gap = weights_of(plain, other)[0] - weights_of(process, first)[0]
    assert np.linalg.norm(gap) > 1e-3


@pytest.mark.parametrize("score", BOTH, ids=lambda score: score.label)
@pytest.mark.parametrize("basis", [None, scores.Basis.all_subsets(3, minima=True)])
def test_one_stage_equals_numpy_with_declared_ranges(
    runtime, toy_examples, toy_model, score, basis
):
    process = processes.build_prioritized_fed_avg(
        toy_model,
        score=score,
        basis=basis,
        normalization="range",
        criteria_ranges=RANGES,
        **options(),
    )
    state = process.initialize()
    initial = weights_of(process, state)
    expected = expected_model(score, toy_examples, initial, COHORT, "range")
    state, _ = process.next(state, packing.pack(toy_examples, COHORT, num_shards=2))
    assert_close(weights_of(process, state), expected)


def test_polynomials_are_the_same_in_one_stage_and_two(
    runtime, toy_examples, toy_model
):
    """The weighted average needs no second stage; it may be given one."""
    data = packing.pack(toy_examples, COHORT, num_shards=2)
    for score in (
        scores.weighted_average((0.5, 0.3, 0.2)),
        scores.prioritized(("LD", "MD", "DS")),
    ):
        one = processes.build_prioritized_fed_avg(toy_model, score=score, **options())
        two = processes.build_two_stage_fed_avg(toy_model, score=score, **options())
        (a, m), (b, n) = (p.next(p.initialize(), data) for p in (one, two))
        assert_close(weights_of(one, a), weights_of(two, b))
        totals = [x["aggregator"]["totals"] for x in (m, n)]
        np.testing.assert_allclose(*totals, rtol=1e-6)
        found = [x["aggregator"]["score"] for x in (m, n)]
        assert found[0] == pytest.approx(found[1], rel=1e-5)


def test_a_client_left_out_is_out_of_the_totals_too(runtime, toy_examples, toy_model):
    import tensorflow as tf

    broken = criteria.Criterion(
        "BR",
        "NaN for the client of five examples",
        "this test",
        lambda client: tf.where(tf.equal(tf.shape(client.y)[0], 5), np.nan, 1.0),
    )
    codes = ("DS", "LD", "BR")
    process = processes.build_two_stage_fed_avg(
        toy_model,
        score=scores.owa("most", codes),
        criteria=("DS", "LD", broken),
        **options(),
    )
    start = process.initialize()
    state, metrics = process.next(start, packing.pack(toy_examples, [0, 2, 3]))
    without, _ = process.next(start, packing.pack(toy_examples, [0, 3]))
    assert metrics["client_work"]["train"]["excluded"] == 1
    assert_close(weights_of(process, state), weights_of(process, without), 1e-6)


@pytest.mark.parametrize("two_stage", [False, True])
def test_a_search_over_operators_keeps_the_best(
    runtime, toy_examples, toy_model, two_stage
):
    candidates = [
        scores.owa("most"),
        scores.weighted_average((1 / 3,) * 3),
        scores.owa("any"),
    ]
    given = {} if two_stage else dict(normalization="range", criteria_ranges=RANGES)
    given["two_stage"] = two_stage
    judged = iter([5, 9, 7])
    online = processes.build_online_adjusted_fed_avg(
        toy_model,
        candidates=candidates,
        policy="best_of_all",
        judge=lambda weights, judges: np.array(next(judged)),
        **options(**given),
    )
    data = packing.pack(toy_examples, COHORT)
    output = online.next(online.initialize(), data, [])
    assert [trial.correct for trial in output.trials] == [5, 9, 7]
    assert int(output.state.candidate) == 1
    alone = processes.build_two_stage_fed_avg(
        toy_model,
        score=candidates[1],
        **options(**{k: v for k, v in given.items() if k != "two_stage"}),
    )
    state, _ = alone.next(alone.initialize(), data)
    assert_close(weights_of(online, output.state), weights_of(alone, state))


def test_one_stage_compiles_for_deployment_and_two_do_not(toy_model):
    import tensorflow_federated as tff

    score = scores.owa("most")
    ranged = dict(normalization="range", criteria_ranges=RANGES)
    one = processes.build_prioritized_fed_avg(
        toy_model, score=score, **options(**ranged)
    )
    two = processes.build_two_stage_fed_avg(toy_model, score=score, **options())
    for to_form in (
        tff.backends.mapreduce.get_map_reduce_form_for_computation,
        tff.backends.mapreduce.get_distribute_aggregate_form_for_computation,
    ):
        to_form(one.next)
        with pytest.raises(ValueError, match="broadcast dependent on aggregate"):
            to_form(two.next)


def test_what_cannot_be_built_is_refused_by_name(toy_model):
    import tensorflow_federated as tff

    from tff_pmc.aggregation import GaussianSums, PrioritizedMeanFactory

    score = scores.owa("most")
    for normalization in ("sum", "max"):
        with pytest.raises(ValueError, match="normalization='range'.*two_stage_fed"):
            processes.build_prioritized_fed_avg(
                toy_model, score=score, normalization=normalization, **options()
            )
    with pytest.raises(ValueError, match="normalization='range'"):
        PrioritizedMeanFactory(("DS", "LD", "MD"), score)
    build = processes.build_two_stage_fed_avg
    with pytest.raises(ValueError, match="excludes privacy"):
        build(
            toy_model,
            score=score,
            normalization="range",
            criteria_ranges=RANGES,
            clip_norm=1.0,
            privacy=GaussianSums(1.0),
            **options(),
        )
    with pytest.raises(ValueError, match="excludes scalar_sum_factory"):
        build(
            toy_model,
            score=score,
            scalar_sum_factory=tff.aggregators.SumFactory(),
            **options(),
        )
    with pytest.raises(ValueError, match="packed"):
        build(toy_model, score=score, packed=False, **options())
    with pytest.raises(ValueError, match="scores.Score"):
        build(toy_model, score="owa", **options())


# --- From the command line -------------------------------------------------------

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHOQUET = "--capacity=DS:0.4,LD:0.3,MD:0.2,DS+LD:0.8,DS+MD:0.5,LD+MD:0.4"


def run(*arguments):
    return subprocess.run(
        [sys.executable, str(ROOT / "run_experiments.py"), *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=240,
    )


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--score=median"], "--score=median: value should be one of <prioritized|w"),
        (["--score=owa"], "--score=owa: it takes score_weights or quantifier"),
        (
            ["--score=owa", "--score_weights=0.5,0.5"],
            "--score=owa: the OWA of 3 criteria needs 3 weights, got 2",
        ),
        (["--score=weighted_average", "--score_weights=1,x"], "--score_weights=1,x"),
        (["--quantifier=most"], "--score=prioritized: it takes no quantifier"),
        (["--score=choquet", "--capacity=DS:x"], "'DS:x' is not CODE+CODE:VALUE"),
        (["--score=choquet", "--capacity=XX:0.1"], "unknown criterion 'XX'"),
        (
            ["--score=choquet", CHOQUET.replace("0.8", "0.35")],
            "--score=choquet: the capacity is not monotone: DS+LD has 0.35 and its",
        ),
        (
            ["--score=choquet", CHOQUET, "--priority=DS,LD"],
            "--score=choquet: the capacity must be of the criteria DS, LD",
        ),
        (
            ["--score=owa", "--quantifier=most", "--adjustment=backtracking"],
            "--adjustment=backtracking searches orderings, which --score=owa does",
        ),
        (
            ["--score=owa", "--quantifier=most", "--priority=LD"],
            "--score=owa has nothing to combine",
        ),
        (["--experiment=lr_search", "--score=product"], "--score does not go with"),
    ],
)
def test_a_bad_flag_is_one_line_and_exit_code_2(arguments, says):
    done = run(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert says in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("normalization", ["sum", "range"])
def test_a_run_records_the_scores_weights(tmp_path, normalization):
    """Two stages, then one; the baseline beside it, and the weights by hand."""
    flags = []
    if normalization == "range":
        flags = ["--normalization=range", "--criteria_ranges=DS=0:80,LD=0:10,MD=0:1"]
    done = run(
        *("--experiment=quickstart", "--rounds=1", "--local_epochs=1"),
        *("--score=choquet", CHOQUET, "--priority=DS", "--priority=MD,LD,DS", *flags),
        f"--output_dir={tmp_path / 'out'}",
    )
    assert done.returncode == 0, done.stderr
    assert ("two aggregations a round" in done.stdout) == (normalization == "sum")
    label = "Choquet[0.4,0.3,0.2,0.8,0.5,0.4]:DS,LD,MD"
    assert label in done.stdout
    folder = tmp_path / "out" / "Choquet-0.4-0.3-0.2-0.8-0.5-0.4-DS-LD-MD"
    assert (tmp_path / "out" / "DS" / "rounds.csv").exists()
    assert table(folder / "rounds.csv")[0]["ordering"] == label
    cohort = table(folder / "cohort.csv")
    raw = np.array([[float(row[code]) for code in RANGES] for row in cohort])
    scale = raw.sum(axis=0) if normalization == "sum" else np.array([80, 10, 1])
    s = np.array(oracle(scores.choquet(CAPACITY), raw / scale))
    recorded = [float(row["weight"]) for row in cohort]
    np.testing.assert_allclose(recorded, s / s.sum(), rtol=1e-5)
    weights = table(folder / "weights.csv")
    assert [row["ordering"] for row in weights if row["in_force"] == "1"] == [label]
    assert len(weights) == 10


def test_settings_decide_form_label_and_folder():
    def config(**more):
        changes = {"priority": ("DS", "LD", "MD"), "quantifier": "most", **more}
        return named.settings("quickstart", {"score": "owa", **changes})

    assert config().two_stage
    ranges = ((0.0, 50.0), (0.0, 10.0), (0.0, 1.0))
    assert not config(normalization="range", criteria_ranges=ranges).two_stage
    assert not config(priority=("LD",)).two_stage
    average = config(
        score="weighted_average", quantifier="", score_weights=(0.5, 0.3, 0.2)
    )
    assert not average.two_stage
    assert average.folder == "average-0.5-0.3-0.2-DS-LD-MD"
    assert config().folder == "OWA-most-DS-LD-MD"
    with pytest.raises(ConfigError, match="--adjustment.*--score=owa"):
        config(adjustment="best_of_all")
    found = rows.weight_rows(1, config(), np.ones((3, 3)))
    assert [row["ordering"] for row in found if row["in_force"]] == [config().label]


def test_reports_tell_the_scores_apart():
    from tff_pmc.reports import read, reference_export

    settings = {"priority": ["LD", "DS"], "criteria": ["DS", "LD", "MD"]}
    assert read.score_label(settings) == "LD,DS"
    settings.update(score="owa", score_weights=[0.5, 0.5], quantifier="")
    assert read.score_label(settings) == "OWA[0.5,0.5]:DS,LD"
    settings.update(score="owa", priority=["DS", "LD", "MD"], score_weights=[1, 0, 0])
    with pytest.raises(reference_export.DataError, match="its score is owa"):
        reference_export.index_of(
            {"settings": settings, "data": {"name": "digits5k"}}, "out"
        )
