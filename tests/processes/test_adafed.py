"""AdaFed against NumPy: server-measured weights, class weights, own models."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

import tff_pmc
from tff_pmc import scores
from tff_pmc._lazy import tff

RATE = 0.5


@pytest.fixture(scope="module")
def server():
    """40 pictures and labels of the server's own."""
    generator = np.random.default_rng(5)
    x = generator.integers(0, 256, (40, 4, 4), dtype=np.uint8)
    return x, generator.integers(0, 3, 40).astype(np.int32)


# --- The oracle: NumPy, float64, one client after another ---------------------


def scores_of(weights, x):
    return x.reshape(len(x), -1) / 255.0 @ weights[0] + weights[1]


def accuracy(weights, x, y):
    return (scores_of(weights, x).argmax(axis=1) == y).mean()


def class_weights_of(weights, x, y, epsilon=0.1):
    answers, f1 = scores_of(weights, x).argmax(axis=1), []
    for c in range(3):
        right = ((answers == c) & (y == c)).sum()
        wrong = ((answers == c) != (y == c)).sum()
        f1.append(2 * right / max(2 * right + wrong, 1))
    return np.where(np.bincount(y, minlength=3) > 0, 1 / (np.array(f1) + epsilon), 1)


def oracle_round(train, weights, own_models, examples, server, weigh, factors):
    """New weights, and the new models of clients that keep their own."""
    x, y = server
    models, raw = [], []
    for k in range(examples.num_clients):
        part = examples.client(k)
        start = own_models.get(k, weights)
        trained = train(start, part, RATE, epochs=2, class_weights=factors)
        models.append(trained)
        raw.append(weigh(accuracy(trained, x, y), len(part["y"])))
    p = np.array(raw) / np.sum(raw)
    mean = tuple(sum(p[k] * m[i] for k, m in enumerate(models)) for i in range(2))
    return mean, {k: models[k] for k in own_models}


def build(model, server, **options):
    return tff_pmc.build_adafed(
        model,
        server_examples=server,
        num_classes=3,
        client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
        local_epochs=2,
        **options,
    )


@pytest.mark.parametrize(
    ("options", "weigh"),
    [
        ({}, lambda acc, n: acc),
        ({"adapt_loss": False}, lambda acc, n: acc),
        ({"power": 3.0, "epsilon": 0.5}, lambda acc, n: acc**3),
        ({"score": scores.product(("ACC", "DS"))}, lambda acc, n: acc * n),
        ({"score": scores.single(1), "adapt_loss": False}, lambda acc, n: n),
        ({"keep_own_model": (4, 1)}, lambda acc, n: acc),
    ],
    ids=[
        "accuracy",
        "weights_only",
        "power_and_epsilon",
        "times_samples",
        "fedavg",
        "own",
    ],
)
def test_three_rounds_equal_numpy(
    runtime, toy_packed_model, toy_examples, server, options, weigh, numpy_sgd
):
    process = build(toy_packed_model, server, **options)
    state = process.initialize()
    weights = [np.asarray(w, float) for w in toy_packed_model.initial_weights[0]]
    own_models = dict.fromkeys(options.get("keep_own_model", ()), weights)
    packs = tff_pmc.pack(toy_examples, range(6), num_packs=2)
    factors = np.ones(3)  # Algorithm 1 adapts the loss after a round, line 11.
    for _ in range(3):
        state, metrics = process.next(state, packs)
        if options.get("adapt_loss", True):  # They travel with the model.
            class_weights = metrics["distributor"]["class_weights"]
            np.testing.assert_allclose(class_weights, factors, rtol=1e-3)
        weights, own_models = oracle_round(
            numpy_sgd, weights, own_models, toy_examples, server, weigh, factors
        )
        if options.get("adapt_loss", True):
            epsilon = options.get("epsilon", 0.1)
            factors = class_weights_of(weights, *server, epsilon)
    trainable = process.get_model_weights(state).trainable
    for a, b in zip(trainable, weights):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_models_of_absent_clients_are_kept_to_the_bit(
    runtime, toy_packed_model, toy_examples, server
):
    """A client that sits out a round finds its model as it left it, to the bit."""
    process = build(toy_packed_model, server, keep_own_model=(4, 1))
    state = process.initialize()
    first = state.client_work["memory"]
    state = process.next(state, tff_pmc.pack(toy_examples, [0, 1], num_packs=1)).state
    after = state.client_work["memory"]
    np.testing.assert_array_equal(after.trainable[0][0], first.trainable[0][0])
    assert np.abs(after.trainable[0][1] - first.trainable[0][1]).max() > 1e-3


def test_a_class_without_examples_at_the_server_has_weight_one(
    runtime, toy_packed_model, toy_examples, server
):
    """Nothing is known of class 2; what is predicted as it counts for the others."""
    x, y = server
    process = build(toy_packed_model, (x, y % 2), epsilon=0.25)
    packs = tff_pmc.pack(toy_examples, range(6), num_packs=1)
    state = process.next(process.initialize(), packs).state
    metrics = process.next(state, packs).metrics
    class_weights = metrics["distributor"]["class_weights"]
    assert float(class_weights[2]) == 1
    weights = state.global_model_weights.trainable
    expected = class_weights_of(weights, x, y % 2, 0.25)
    np.testing.assert_allclose(class_weights, expected, rtol=1e-5)
    assert (expected[:2] != 1).all()


@pytest.mark.parametrize(
    "confusion",
    [
        np.diag([0, 5, 5, 5]),  # Labels from 1.
        [[0, 0, 0, 0], [0, 3, 2, 0], [1, 0, 4, 0], [0, 0, 0, 0]],
        [[0, 2], [0, 0]],
        [[4, 1, 0], [2, 6, 1], [0, 0, 3]],
    ],
)
def test_macro_f1_equals_scikit_learns(confusion):
    """The mean over present or predicted classes; the F1 of others is NaN."""
    from tff_pmc.processes.server_evaluation import f1_by_class

    counts = np.array(confusion)
    label, answer = (
        np.repeat(i.ravel(), counts.ravel()) for i in np.indices(counts.shape)
    )
    f1 = np.asarray(f1_by_class(counts))
    classes = np.unique([label, answer])
    expected = f1_score(label, answer, average=None, labels=classes, zero_division=0)
    np.testing.assert_allclose(f1[classes], expected, rtol=1e-6)
    assert np.isnan(np.delete(f1, classes)).all()
    macro = f1_score(label, answer, average="macro", zero_division=0)
    np.testing.assert_allclose(np.nanmean(f1), macro, rtol=1e-6)


def test_adafed_compiles_to_map_reduce_form_with_only_sums(
    runtime, toy_packed_model, server, sent_shapes
):
    # One sum of a model, two totals, one monomial, four counts: no client's accuracy.
    expected = sorted([(16, 3), (3,), (2,), (1,)] + 4 * [()])
    assert sent_shapes(build(toy_packed_model, server)) == (expected, [])


def test_the_server_judges_alone(runtime, toy_packed_model, server):
    weights = tff.learning.models.ModelWeights(*toy_packed_model.initial_weights)
    judge = tff_pmc.build_server_judge(toy_packed_model, *server, 3)
    expected = round(accuracy(toy_packed_model.initial_weights[0], *server) * 40)
    assert judge(weights, []) == expected
