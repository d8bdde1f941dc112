"""Whole rounds under OWA and Choquet, in one stage and in two, against NumPy."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

RANGES = {"DS": (0.0, 10.0), "LD": (0.0, 4.0), "MD": (0.0, 1.0)}
COHORT = [0, 2, 3, 5]
RATE = 0.3
PAIRS, ALL = ((0, 1), (0, 2), (1, 2)), (0, 1, 2)


def sums_of(normalization="range"):
    ranges = RANGES if normalization == "range" else None
    return tff_pmc.SumOptions(normalization, ranges)


def options(**arguments):
    return dict(
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
        local_epochs=2,
        **arguments,
    )


@pytest.fixture(params=["OWA", "Choquet", "ordering"])
def score(request, capacity):
    if request.param == "OWA":
        return scores.owa("most")
    if request.param == "ordering":
        return scores.prioritized(("LD", "MD", "DS"))
    return scores.choquet(capacity)


@pytest.fixture
def oracle(owa_by_sorting, choquet_by_sorting, capacity):
    """Scores by sorting, client by client; of an ordering by its products."""

    def scores_of(score, c):
        if score.label == "LD,MD,DS":
            return np.cumprod(c[:, [1, 2, 0]], axis=1).sum(axis=1)
        if score.label.startswith("OWA"):
            return [owa_by_sorting(row, (1 / 15, 10 / 15, 4 / 15)) for row in c]
        columns = {"DS": 0, "LD": 1, "MD": 2}
        by_column = {
            frozenset(columns[code] for code in subset): value
            for subset, value in capacity.items()
        }
        by_column[frozenset(range(3))] = 1.0
        return [choquet_by_sorting(row, by_column) for row in c]

    return scores_of


@pytest.fixture
def expected_model(oracle, score, toy_examples, numpy_sgd, numpy_criteria):
    """The model after a round of two full-batch epochs, client by client."""

    def expected(initial, cohort, normalization):
        clients = [toy_examples.client(k) for k in cohort]
        models = [numpy_sgd(initial, client, RATE, epochs=2) for client in clients]
        raw = np.array([numpy_criteria(c, initial, m) for c, m in zip(clients, models)])
        scale = {
            "sum": raw.sum(axis=0),
            "max": raw.max(axis=0),
            "range": np.array([high for _, high in RANGES.values()]),
        }[normalization]
        s = np.array(oracle(score, np.minimum(raw / scale, 1)))
        return [np.average(w, axis=0, weights=s) for w in map(np.stack, zip(*models))]

    return expected


@pytest.mark.parametrize(
    ("normalization", "basis"),
    [
        ("sum", None),
        ("max", None),
        ("range", None),
        ("range", scores.Basis(3, ((0,), (1,), (2,), (1, 2), ALL), (*PAIRS, ALL))),
    ],
)
def test_rounds_equal_numpy(
    runtime,
    toy_examples,
    toy_model,
    expected_model,
    score,
    normalization,
    basis,
    weights_of,
    assert_close,
):
    """Two rounds; one pack, then three."""
    process = tff_pmc.build_prioritized_fed_avg(
        toy_model, score=score, basis=basis, sums=sums_of(normalization), **options()
    )
    state = process.initialize()
    model = weights_of(process, state)
    for packs, cohort in ((1, COHORT), (3, [1, 4, 5])):
        model = expected_model(model, cohort, normalization)
        data = tff_pmc.pack(toy_examples, cohort, num_packs=packs)
        state, metrics = process.next(state, data)
        assert_close(weights_of(process, state), model, 1e-5)
        assert metrics["client_work"]["train"]["clients"] == len(cohort)


@pytest.mark.parametrize("two_stage", [False, True])
def test_a_search_over_operators_keeps_the_best(
    runtime, toy_examples, toy_model, two_stage, assert_close, weights_of
):
    average = scores.weighted_average((1 / 3,) * 3)
    candidates = [scores.owa("most"), average, scores.owa("any")]
    sums = sums_of("sum" if two_stage else "range")
    judged = iter([5, 9, 7])
    online = tff_pmc.build_online_adjusted_fed_avg(
        toy_model,
        candidates=candidates,
        policy="best_of_all",
        judge=lambda weights, judges: np.array(next(judged)),
        **options(sums=sums),
    )
    data = tff_pmc.pack(toy_examples, COHORT)
    output = online.next(online.initialize(), data, [])
    assert [trial.correct for trial in output.trials] == [5, 9, 7]
    assert int(output.state.index) == 1
    alone = tff_pmc.build_prioritized_fed_avg(
        toy_model, score=candidates[1], **options(sums=sums)
    )
    state, _ = alone.next(alone.initialize(), data)
    assert_close(weights_of(online, output.state), weights_of(alone, state), 1e-5)


def test_one_stage_compiles_for_deployment_and_two_do_not(toy_model):
    score = scores.owa("most")
    ranged = {"sums": sums_of()}
    one_stage = tff_pmc.build_prioritized_fed_avg(
        toy_model, score=score, **options(**ranged)
    )
    two = tff_pmc.build_prioritized_fed_avg(toy_model, score=score, **options())
    for to_form in (
        tff.backends.mapreduce.get_map_reduce_form_for_computation,
        tff.backends.mapreduce.get_distribute_aggregate_form_for_computation,
    ):
        to_form(one_stage.next)
        with pytest.raises(ValueError, match="broadcast dependent on aggregate"):
            to_form(two.next)
    deployable = {"score": score, "deployable": True}
    tff_pmc.build_prioritized_fed_avg(toy_model, **deployable, **options(**ranged))
    with pytest.raises(ValueError, match="OWA.* is not deployable .*two stages"):
        tff_pmc.build_prioritized_fed_avg(toy_model, **deployable, **options())
