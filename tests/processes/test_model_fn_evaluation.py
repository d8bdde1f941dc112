"""The evaluation of any TFF model, against TFF's own `build_fed_eval`."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff


@pytest.fixture(scope="module")
def model_fn(keras_model_fn):
    return keras_model_fn()


@pytest.fixture(scope="module")
def clients(toy_examples, float_datasets):
    """All six clients, in batches of three."""
    return float_datasets(toy_examples, range(6), 3)


@pytest.fixture(scope="module")
def tffs_evaluation():
    """The metrics of TFF's own evaluation, and the weights that it begins with."""

    def run(model, clients):
        process = tff.learning.algorithms.build_fed_eval(model)
        state = process.initialize()
        metrics = process.next(state, clients).metrics["client_work"]["eval"]
        return state.global_model_weights, metrics["current_round_metrics"]

    return run


def losses_of(weights, examples):
    """Losses and hits of each example of a linear softmax model, in NumPy."""
    kernel, bias = (np.asarray(w, float) for w in weights.trainable)
    scores = examples.x.reshape(len(examples.y), -1) / 255.0 @ kernel + bias
    top = scores.max(axis=1)
    logsum = np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top
    rows = np.arange(len(examples.y))
    return logsum - scores[rows, examples.y], scores.argmax(axis=1) == examples.y


def test_a_model_fn_is_evaluated_as_tff_does(
    runtime, model_fn, clients, toy_examples, tffs_evaluation
):
    weights, expected = tffs_evaluation(model_fn, clients)
    figures = tff_pmc.build_federated_evaluation(model_fn)(weights, clients)
    assert set(figures["metrics"]) == set(expected)
    assert {"loss", "sparse_categorical_accuracy", "num_examples"} <= set(expected)
    for name in expected:
        np.testing.assert_allclose(figures["metrics"][name], expected[name], rtol=1e-5)
    losses, hits = losses_of(weights, toy_examples)
    assert (figures["examples"], figures["correct"]) == (len(hits), hits.sum())
    assert figures["loss_sum"] == pytest.approx(losses.sum(), rel=1e-5)


def test_the_counts_of_each_client_are_at_its_number(
    runtime, model_fn, clients, toy_examples, tffs_evaluation
):
    """In any order, and zeros for clients that are not there."""
    weights, expected = tffs_evaluation(model_fn, [clients[k] for k in (4, 1)])
    numbered = [tff_pmc.with_client_number(clients[k], k) for k in (4, 1)]
    evaluate = tff_pmc.build_federated_evaluation(model_fn, 6)
    figures = evaluate(weights, numbered)
    losses, hits = losses_of(weights, toy_examples)
    splits = toy_examples.row_splits
    for k in range(6):
        rows = slice(splits[k], splits[k + 1]) if k in (1, 4) else slice(0)
        assert figures["examples"][k] == len(hits[rows])
        assert figures["correct"][k] == hits[rows].sum()
        assert figures["loss_sum"][k] == pytest.approx(losses[rows].sum(), rel=1e-5)
    assert figures["metrics"]["loss"] == pytest.approx(expected["loss"], rel=1e-5)
    with pytest.raises(ValueError, match="0 or more, got -1"):
        tff_pmc.with_client_number(clients[0], -1)


def test_a_regression_has_no_correct_examples(runtime):
    def model_fn():
        dense = tf.keras.layers.Dense(1, kernel_initializer="ones", input_shape=(2,))
        return tff.learning.models.from_keras_model(
            tf.keras.Sequential([dense]),
            tf.keras.losses.MeanSquaredError(),
            input_spec=(
                tf.TensorSpec([None, 2], tf.float32),
                tf.TensorSpec([None, 1], tf.float32),
            ),
            metrics=[tf.keras.metrics.MeanAbsoluteError()],
        )

    x = np.array([[1, 2], [0, 1], [3, 1]], np.float32)
    y = np.array([[1], [1], [5]], np.float32)  # The model says 3, 1, 4.
    data = [tf.data.Dataset.from_tensor_slices((x, y)).batch(2)]
    weights = tff.learning.models.ModelWeights(
        [np.ones((2, 1), np.float32), np.zeros(1, np.float32)], []
    )
    figures = tff_pmc.build_federated_evaluation(model_fn)(weights, data)
    assert list(figures) == ["examples", "loss_sum", "metrics"]
    assert figures["loss_sum"] == pytest.approx(4 + 0 + 1)
    assert figures["metrics"]["mean_absolute_error"] == pytest.approx(1)


def test_packed_examples_give_the_models_metrics_too(
    runtime, metric_model, toy_examples, datasets, tffs_evaluation
):
    name = "sparse_categorical_accuracy"
    batches = datasets(toy_examples, range(6), 3)
    weights, expected = tffs_evaluation(metric_model, batches)
    packs = tff_pmc.evaluation_packs(toy_examples)
    evaluate = tff_pmc.build_federated_evaluation(metric_model, 6, batch_size=4)
    figures = evaluate(weights, packs)
    _, hits = losses_of(weights, toy_examples)
    assert figures["correct"].sum() == hits.sum()
    assert figures["metrics"][name] == pytest.approx(hits.mean())
    assert figures["metrics"][name] == pytest.approx(expected[name])
    as_batches = tff_pmc.build_federated_evaluation(metric_model, packed=False)
    assert as_batches(weights, batches)["metrics"][name] == expected[name]


def test_packed_examples_need_a_functional_model(model_fn):
    with pytest.raises(ValueError, match="need a tff.learning.models.FunctionalModel"):
        tff_pmc.build_federated_evaluation(model_fn, packed=True)


def test_tffs_functional_model_of_keras_is_judged(runtime, toy_examples, sgd):
    """TFF lets it be called in graphs alone; the losses and hits are NumPy's."""
    layers = tf.keras.layers
    inner = tf.keras.Sequential(
        [layers.Rescaling(1 / 255, input_shape=(4, 4)), layers.Flatten()]
    )
    inner.add(layers.Dense(3))
    spec = (tf.TensorSpec([None, 4, 4], tf.uint8), tf.TensorSpec([None], tf.int32))
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model = tff.learning.models.functional_model_from_keras(inner, loss, spec)
    online = tff_pmc.build_online_adjusted_fed_avg(
        model,
        criteria=("LOSS", "DS"),
        client_optimizer_fn=sgd(),
        local_epochs=1,
    )
    state = online.initialize()
    weights = online.get_model_weights(state)
    losses, hits = losses_of(weights, toy_examples)
    judges = tff_pmc.evaluation_packs(toy_examples)
    assert tff_pmc.build_federated_evaluation(model)(weights, judges) == hits.sum()
    output = online.next(state, tff_pmc.pack(toy_examples, range(6)), judges)
    of_clients = np.split(losses, toy_examples.row_splits[1:-1])
    total = sum(part.mean() for part in of_clients if len(part))
    np.testing.assert_allclose(
        output.metrics["aggregator"]["totals"][0], total, rtol=1e-4
    )
