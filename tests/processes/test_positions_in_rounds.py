"""Rounds and evaluations with a label for each position, against NumPy."""

import collections

import numpy as np
import pytest

import leaf_data
import tff_pmc
from tff_pmc._lazy import tf, tff
from tff_pmc.models.functional import classifier

RATE, TOKENS, CLASSES, LENGTH = 0.1, 6, 4, 3
SIZES = (4, 7, 5, 2)
SPLITS = np.cumsum((0, *SIZES))
NAMES = ("a", "b", "c", "masked")
CODES = ("DS", "NP", "LD", "CB", "LOSS")


def make_examples(x, y):
    return leaf_data.Examples(x, y, SPLITS, NAMES)


@pytest.fixture(scope="module")
def examples():
    """Four clients with three tokens per example, the last without a label."""
    random = np.random.default_rng(6)
    x = random.integers(0, TOKENS, (SPLITS[-1], LENGTH)).astype(np.int32)
    y = random.integers(-1, CLASSES, x.shape).astype(np.int32)
    y[SPLITS[3] :] = leaf_data.MASKED
    return make_examples(x, y)


def initial_table():
    return np.random.default_rng(8).normal(size=(TOKENS, CLASSES)).astype(np.float32)


def table_model(label_shape=(LENGTH,)):
    """A table of scores by token: each position depends on its own token alone."""

    @tf.function(autograph=False)
    def predict(weights, x, training=True):
        scores = tf.gather(weights[0][0], x)
        return scores if label_shape else scores[:, 0]

    length = label_shape[0] if label_shape else 1
    return classifier(
        [initial_table()],
        predict,
        (length,),
        element_dtype="int32",
        label_shape=label_shape,
    )


def keras_model_fn():
    """The same model of Keras, with its accuracy."""
    table = tf.keras.layers.Embedding(TOKENS, CLASSES, input_length=LENGTH)
    keras_model = tf.keras.Sequential([table])
    keras_model.set_weights([initial_table()])
    spec = tf.TensorSpec([None, LENGTH], tf.int32)
    return tff.learning.models.from_keras_model(
        keras_model,
        tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        input_spec=(spec, spec),
        metrics=[tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")],
    )


def losses_and_gradient(table, x, y):
    """The losses of the positions that count, and the gradient of their mean."""
    gradient, losses = np.zeros_like(table), []
    for token, label in zip(x.ravel(), y.ravel()):
        if label < 0:
            continue
        shares = np.exp(table[token]) / np.exp(table[token]).sum()
        losses.append(-np.log(shares[label]))
        gradient[token] += shares - np.eye(CLASSES)[label]
    return np.array(losses), gradient / max(1, len(losses))


def expected_round(examples):
    """The criteria of the clients, the new table, and the losses of the last epoch."""
    start = initial_table().astype(float)
    raw, tables, loss_sum = [], [], 0.0
    for k in range(3):
        client = examples.client(k)
        labels = client["y"][client["y"] >= 0]
        counts = np.unique(labels, return_counts=True)[1]
        table = start
        for _ in range(2):
            losses, gradient = losses_and_gradient(table, client["x"], client["y"])
            table = table - RATE * gradient
        first, _ = losses_and_gradient(start, client["x"], client["y"])
        balance = counts.min() / counts.max() if len(counts) > 1 else 0.0
        raw.append((SIZES[k], len(labels), len(counts), balance, first.mean()))
        tables.append(table)
        loss_sum += losses.sum()
    weights = np.array(raw)[:, 1] / sum(row[1] for row in raw)
    return np.array(raw), np.tensordot(weights, tables, 1), loss_sum


@pytest.fixture(scope="module")
def run_round(build_prioritized, datasets):
    """A round of two epochs, weighted by NP: the weights and the metrics."""

    def run(model, examples, packed):
        process = build_prioritized(
            model, criteria=CODES, priority=("NP",), local_epochs=2, packed=packed
        )
        clients = datasets(examples, range(4), 100)
        if packed:
            clients = tff_pmc.pack(examples, range(4))
        state, metrics = process.next(process.initialize(), clients)
        return process.get_model_weights(state), metrics

    return run


@pytest.fixture(scope="module")
def keras_functional():
    from tff_pmc.models.tff_types.keras_models import as_functional

    return as_functional(keras_model_fn)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("kind", ["functional", "keras"])
def test_a_round_counts_positions(
    runtime, examples, run_round, keras_functional, kind, packed
):
    model = table_model()
    if kind == "keras":
        model = keras_functional if packed else keras_model_fn
    weights, metrics = run_round(model, examples, packed)
    raw, table, loss_sum = expected_round(examples)
    np.testing.assert_allclose(weights.trainable[0], table, rtol=1e-5, atol=1e-6)
    totals = metrics["aggregator"]["totals"]
    np.testing.assert_allclose(totals, raw.sum(axis=0), rtol=1e-5)
    train = metrics["client_work"]["train"]
    assert (train["clients"], train["excluded"]) == (4, 1)
    assert train["examples"] == raw[:, 1].sum()
    np.testing.assert_allclose(train["loss_sum"], loss_sum, rtol=1e-5)


@pytest.mark.parametrize("kind", ["functional", "keras"])
def test_an_evaluation_counts_positions(
    runtime, examples, datasets, keras_functional, kind
):
    packed_model, dataset_model = table_model(), table_model()
    if kind == "keras":
        packed_model, dataset_model = keras_functional, keras_model_fn
    table = initial_table()
    hits = (table[examples.x].argmax(axis=2) == examples.y) & (examples.y >= 0)
    correct = np.add.reduceat(hits.sum(axis=1), SPLITS[:-1])
    losses = [
        losses_and_gradient(table, *examples.client(k).values())[0].sum()
        for k in range(4)
    ]
    weights = tff.learning.models.ModelWeights(*packed_model.initial_weights)
    evaluate = tff_pmc.build_federated_evaluation(packed_model, 4, batch_size=3)
    result = evaluate(weights, tff_pmc.evaluation_packs(examples))
    measured = result["correct"] if kind == "keras" else result
    np.testing.assert_array_equal(measured, correct)
    sums = tff_pmc.processes.build_loss_sums(packed_model, 4, batch_size=3)
    np.testing.assert_allclose(
        sums(weights, tff_pmc.evaluation_packs(examples)), losses, rtol=1e-5
    )
    evaluate = tff_pmc.build_federated_evaluation(dataset_model, packed=False)
    whole = evaluate(weights, datasets(examples, range(4), 3))
    assert (whole["correct"], whole["examples"]) == (
        correct.sum(),
        examples.num_labels,
    )
    np.testing.assert_allclose(whole["loss_sum"], sum(losses), rtol=1e-5)
    if kind == "keras":
        expected = correct.sum() / whole["examples"]
        for metrics in (result["metrics"], whole["metrics"]):
            assert metrics["accuracy"] == pytest.approx(expected, rel=1e-6)
    predict = tff_pmc.processes.build_federated_prediction(
        packed_model, examples.num_examples
    )
    predicted = predict(weights, tff_pmc.processes.prediction_packs(examples))
    np.testing.assert_array_equal(predicted, table[examples.x].argmax(axis=2))


def test_tokens_of_masked_positions_change_nothing(runtime, examples, run_round):
    random = np.random.default_rng(9)
    garbage = random.integers(0, TOKENS, examples.x.shape).astype(np.int32)
    changed = make_examples(
        np.where(examples.y < 0, garbage, examples.x), np.array(examples.y)
    )
    assert not np.array_equal(changed.x, examples.x)
    model = table_model()
    flat = [
        tf.nest.flatten(run_round(model, part, True)) for part in (examples, changed)
    ]
    for array, other in zip(*flat):
        np.testing.assert_array_equal(array, other)


def test_one_position_is_one_label(runtime, examples, run_round):
    """To the bit, in training, losses, criteria and counts."""
    x = examples.x[: SPLITS[3], :1]
    y = np.maximum(examples.y[: SPLITS[3], :1], 0)
    results = []
    for shape, labels in (((1,), y), ((), y[:, 0])):
        part = leaf_data.Examples(x, labels, SPLITS[:4], NAMES[:3])
        model = table_model(shape)
        process = tff_pmc.build_prioritized_fed_avg(
            model,
            client_optimizer_fn=tff.learning.optimizers.build_sgdm(RATE),
            criteria=CODES,
            priority=("LD", "DS", "NP"),
            local_epochs=2,
            batch_size=2,
        )
        packs = tff_pmc.pack(part, range(3))
        state, metrics = process.next(process.initialize(), packs)
        weights = process.get_model_weights(state)
        count = tff_pmc.build_federated_evaluation(model, 3)
        packs = tff_pmc.evaluation_packs(part)
        sums = tff_pmc.processes.build_loss_sums(model, 3)
        arrays = collections.OrderedDict(
            metrics=metrics, counts=count(weights, packs), sums=sums(weights, packs)
        )
        flat = tf.nest.flatten((weights.trainable[0], arrays))
        results.append([np.asarray(array) for array in flat])
    for array, other in zip(*results):
        np.testing.assert_array_equal(array, other)


def test_the_server_counts_positions(runtime, examples):
    """The confusion matrix, F1, the judge and the criterion ACC."""
    from tff_pmc import criteria
    from tff_pmc.processes import server_evaluation

    model = table_model()
    weights = tff.learning.models.ModelWeights(*model.initial_weights)
    predicted = initial_table()[examples.x].argmax(axis=2)
    expected = np.zeros((CLASSES, CLASSES), int)
    np.add.at(expected, (examples.y[examples.y >= 0], predicted[examples.y >= 0]), 1)
    x, y = np.asarray(examples.x), np.asarray(examples.y)
    confusion = server_evaluation.build_confusion(model, x, y, CLASSES)
    np.testing.assert_array_equal(confusion(weights), expected)
    judge = server_evaluation.build_server_judge(model, x, y, CLASSES)
    assert judge(weights, None) == np.trace(expected)
    accuracy = criteria.server_accuracy(model, x, y, power=2.0)
    client = criteria.LocalClient(None, None, weights, weights)
    share = np.trace(expected) / expected.sum()
    assert float(accuracy.value(client)) == pytest.approx(share**2, rel=1e-6)
