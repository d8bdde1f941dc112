"""What processes weigh by: the codes of a score, in whichever columns it has them."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tf
from tff_pmc.criteria import Criterion

CODES = ("LD", "DS")  # Not in the order of the defaults.
COHORT = [0, 2, 3, 5]
LD, DS = scores.single("LD"), scores.single("DS")
# A score, and what it computes of the shares of LD and DS.
WEIGHINGS = {
    "single": (LD, lambda ld, ds: ld),
    "ordering": (scores.prioritized(("DS", "LD")), lambda ld, ds: ds * (1 + ld)),
    "average": (
        scores.weighted_average((0.75, 0.25), members=("LD", "DS")),
        lambda ld, ds: 0.75 * ld + 0.25 * ds,
    ),
    "dual": (
        scores.dual(0.125, "LD", "DS", criteria=("DS", "LD")),
        lambda ld, ds: 0.125 * ld + 0.875 * ds,
    ),
    "product": (scores.product(("DS", "LD")), lambda ld, ds: ld * ds),
    "number": (scores.prioritized((1,)), lambda ld, ds: ds),
}
MINIMA = {
    "owa": (scores.owa("all", ("DS", "LD")), np.minimum),
    "choquet": (
        scores.choquet({("DS",): 0.25, ("LD",): 0.75}),
        lambda ld, ds: 0.75 * ld + 0.25 * ds,
    ),
    "average": WEIGHINGS["average"],
}


@pytest.fixture(scope="module")
def raw(toy_examples):
    """LD and DS of the cohort, float [clients] each."""
    labels = [toy_examples.client(k)["y"] for k in COHORT]
    counts = [len({*y.tolist()}) for y in labels], [len(y) for y in labels]
    assert len({*counts[0]}) > 1 < len({*counts[1]})
    return np.array(counts, float)


@pytest.fixture
def check_model(toy_examples, toy_model, trained_alone, weights_of, assert_close):
    """Checks that a state's model is the clients' mean with these weights."""
    models = [trained_alone(toy_model, toy_examples, k) for k in COHORT]

    def check(process, state, weights):
        expected = [np.average(w, axis=0, weights=weights) for w in zip(*models)]
        assert_close(weights_of(process, state), expected, 1e-5)

    return check


def shares(values):
    return values / values.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("minima", "method"),
    [(False, "sum"), (False, "max"), (True, "sum"), (True, "range")],
)
def test_current_scores_weigh_by_codes_and_the_metrics_show_it(
    runtime,
    toy_examples,
    toy_model,
    build_prioritized,
    raw,
    check_model,
    minima,
    method,
):
    """One process, in two stages with minima; every score over its sums."""
    ranges = {"DS": (0, 100), "LD": (1, 5)} if method == "range" else None
    basis = scores.Basis.all_subsets(CODES, minima=minima)
    process = build_prioritized(
        toy_model,
        score=LD,
        criteria=CODES,
        basis=basis,
        sums=tff_pmc.SumOptions(method, ranges),
        report_cohort=6,
    )
    c = {
        "sum": lambda: shares(raw),
        "max": lambda: raw / raw.max(axis=1, keepdims=True),
        "range": lambda: np.array([(raw[0] - 1) / 4, raw[1] / 100]),
    }[method]()
    packs = tff_pmc.pack(toy_examples, COHORT)
    for score, by_hand in (MINIMA if minima else WEIGHINGS).values():
        expected = shares(by_hand(*c))
        state = tff_pmc.with_score(process.initialize(), basis, score)
        state, metrics = process.next(state, packs)
        check_model(process, state, expected)
        for codes in (None, CODES, ("DS", "LD")):
            table = tff_pmc.cohort_weights(metrics, codes)
            assert list(table)[1:3] == [*(codes or CODES)]
            np.testing.assert_array_equal(table["LD"], raw[0])
            np.testing.assert_array_equal(table["DS"], raw[1])
            np.testing.assert_allclose(table["weight"], expected, rtol=1e-6)
    other = tff_pmc.cohort_weights(metrics, score=DS, normalization=scores.SUM)
    np.testing.assert_allclose(other["weight"], shares(raw[1]), rtol=1e-6)


def test_a_built_score_weighs_by_codes(
    runtime, toy_examples, toy_model, build_prioritized, raw, check_model
):
    """The state has no score, as after `initialize`."""
    packs = tff_pmc.pack(toy_examples, COHORT)
    for criteria, score in ((CODES, LD), (("MD", *CODES), scores.product(CODES))):
        process = build_prioritized(toy_model, score=score, criteria=criteria)
        state = process.next(process.initialize(), packs).state
        check_model(process, state, raw[0] if score is LD else raw[0] * raw[1])


def test_searches_and_counterfactuals_weigh_by_codes(
    runtime, toy_examples, toy_model, sgd, raw, check_model
):
    seen = []

    def judge(weights, unused_data):
        seen.append([np.asarray(w) for w in weights.trainable])
        return np.int32(5)

    online = tff_pmc.build_online_adjusted_fed_avg(
        toy_model,
        client_optimizer_fn=sgd(),
        local_epochs=1,
        criteria=CODES,
        candidates=[DS, scores.prioritized(("LD", "DS")), LD],
        first=scores.single("LD", ("LD", "DS")),
        others=[scores.product(("DS", "LD"))],
        report_cohort=4,
        judge=judge,
    )
    assert online.parts.first == 2
    packs, start = tff_pmc.pack(toy_examples, COHORT), online.initialize()
    output = online.next(start, packs, [0])
    check_model(online, output.state, raw[0])
    table = tff_pmc.cohort_weights(output.metrics)
    np.testing.assert_allclose(table["weight"], shares(raw[0]), rtol=1e-6)
    asked_scores = [scores.single("DS", ("MD", "DS")), scores.product(("DS", "LD"))]
    effects = tff_pmc.counterfactuals(online, start, packs, [0], iter(asked_scores))
    assert effects["score"].tolist() == ["DS", "product:DS,LD"]
    for model, weights in zip(seen[-2:], (raw[1], raw[0] * raw[1])):
        state = online.set_model_weights(start, tff_model(model))
        check_model(online, state, weights)
    with pytest.raises(ValueError, match="'MD' weighs by the criterion MD"):
        tff_pmc.counterfactuals(online, start, packs, [0], [scores.single("MD")])


def tff_model(trainable):
    from tff_pmc._lazy import tff

    return tff.learning.models.ModelWeights(trainable, ())


def test_adafed_takes_a_score_by_codes(
    runtime, toy_examples, toy_packed_model, sgd, raw, weights_of, assert_close
):
    """ACC is the first of its columns; DS and LD are not."""
    server = tf.zeros([40, 4, 4], tf.uint8).numpy(), np.zeros(40, np.int32)
    how = dict(client_optimizer_fn=sgd(), server_examples=server, num_classes=3)
    how |= dict(adapt_loss=False, local_epochs=1, criteria=("DS", "LD"))
    models = []
    for score in (LD, scores.single(2)):
        process = tff_pmc.build_adafed(toy_packed_model, score=score, **how)
        packs = tff_pmc.pack(toy_examples, COHORT)
        state = process.next(process.initialize(), packs).state
        models.append(weights_of(process, state))
    assert_close(*models, 0)


def test_a_basis_without_codes_takes_only_columns(toy_model, build_prioritized):
    basis = scores.Basis.all_subsets(2)
    process = build_prioritized(toy_model, criteria=CODES, basis=basis)
    state = process.initialize()
    by_column = tff_pmc.with_score(state, basis, scores.prioritized((1,)))
    assert by_column.aggregator["coefficients"].tolist() == [0, 1, 0]
    with pytest.raises(ValueError, match="'DS' is over codes, but the basis has none"):
        tff_pmc.with_score(state, basis, DS)
    over = scores.Basis.all_subsets(CODES)
    with pytest.raises(ValueError, match="the criterion MD, and the .* LD, DS"):
        tff_pmc.with_score(state, over, scores.single("MD"))


def test_metrics_of_another_factory_name_criteria_and_need_a_score(
    runtime, toy_examples, toy_model, build_factory
):
    process = build_factory(
        toy_model,
        tff_pmc.aggregation.median(),
        criteria=("LD", "DS"),
        report_cohort=4,
    )
    packs = tff_pmc.pack(toy_examples, COHORT, num_packs=4)
    metrics = process.next(process.initialize(), packs).metrics
    with pytest.raises(ValueError, match="the metrics have no score"):
        tff_pmc.cohort_weights(metrics)
    table = tff_pmc.cohort_weights(metrics, score=DS)
    sizes = [len(toy_examples.client(k)["y"]) for k in COHORT]
    assert table["DS"].tolist() == sizes
    np.testing.assert_allclose(table["weight"], shares(np.array(sizes)))


@pytest.mark.parametrize(
    "clients", [{"a", "b", "c", "d"}, dict.fromkeys("abcd"), "abcd"]
)
def test_names_of_clients_have_an_order(
    runtime, toy_examples, toy_model, build_prioritized, clients
):
    process = build_prioritized(
        toy_model, criteria=CODES, report_cohort=4, priority=("LD",)
    )
    metrics = process.next(process.initialize(), tff_pmc.pack(toy_examples, COHORT))[1]
    with pytest.raises(ValueError, match="clients must be a sequence"):
        tff_pmc.cohort_weights(metrics, clients=clients)


def test_a_power_has_a_name_in_the_metrics(runtime, toy_examples, toy_model, sgd, raw):
    """In the pure form metrics are parameters, whose names TensorFlow restricts."""
    criterion = Criterion(
        "größe", "", "", lambda client: tf.size(tf.unique(client.y).y)
    )
    process = tff_pmc.build_online_adjusted_iterative_process(
        toy_model,
        client_optimizer_fn=sgd(),
        local_epochs=1,
        criteria=("DS^0.5", criterion),
        candidates=[scores.prioritized(("DS^0.5", "größe"), ("größe", "DS^0.5"))],
        report_cohort=4,
    )
    tests = tff_pmc.evaluation_packs(toy_examples, num_packs=1)
    pairs = tff_pmc.pair_packs(tff_pmc.pack(toy_examples, COHORT), tests)
    _, metrics = process.next(process.initialize(), pairs)
    table = tff_pmc.cohort_weights(metrics)
    assert list(table)[1:3] == ["DS^0.5", "größe"]
    root, labels = shares(np.sqrt(raw[1])), shares(raw[0])
    expected = shares(root * (1 + labels))
    np.testing.assert_allclose(table["weight"], expected, rtol=1e-6)
