"""Local accuracies as counts, and single predictions, against NumPy."""

import numpy as np
import pytest

import tff_pmc
from tff_pmc._lazy import tf, tff
from tff_pmc.settings.training_settings import LocalTraining


@pytest.mark.parametrize("batch_size", [4, 500])
def test_counts_equal_numpy(runtime, toy_examples, toy_model, batch_size):
    evaluate = tff_pmc.build_federated_evaluation(
        toy_model, toy_examples.num_clients, batch_size=batch_size
    )
    trainable, _ = toy_model.initial_weights
    weights = tff.learning.models.ModelWeights(trainable, ())
    expected = []
    for k in range(toy_examples.num_clients):
        part = toy_examples.client(k)
        x = part["x"].reshape(len(part["y"]), -1) / 255.0
        predicted = (x @ trainable[0] + trainable[1]).argmax(axis=1)
        expected.append((predicted == part["y"]).sum())
    assert 0 < sum(expected) < toy_examples.num_examples
    in_all = tff_pmc.build_federated_evaluation(toy_model, batch_size=batch_size)
    none = tff.learning.models.ModelWeights([w * np.nan for w in trainable], ())
    for num_packs in (1, 3):
        packs = tff_pmc.evaluation_packs(toy_examples, num_packs=num_packs)
        assert list(evaluate(weights, packs)) == expected
        assert int(in_all(weights, packs)) == sum(expected)
        assert int(in_all(none, packs)) == 0  # And not what has the label 0.


@pytest.mark.parametrize(
    "options", [{"num_packs": 4}, {"num_packs": 10**9}, {"max_bytes": 100}]
)
def test_packs_hold_every_example_once(toy_examples, options):
    packs = tff_pmc.evaluation_packs(toy_examples, **options)
    assert len(packs) >= min(options.get("num_packs", 2), toy_examples.num_examples)
    assert max(pack["x"].nbytes for pack in packs) <= options.get("max_bytes", 10**6)
    clients = np.concatenate([pack["client"] for pack in packs])
    assert (np.bincount(clients) == toy_examples.sizes).all()
    labels = np.concatenate([pack["y"] for pack in packs])
    np.testing.assert_array_equal(labels, toy_examples.y)


@pytest.mark.parametrize(
    "options", [{"num_clients": 2.5}, {"num_clients": 0}, {"batch_size": 0}]
)
def test_invalid_arguments_of_an_evaluation_are_named(toy_model, options):
    with pytest.raises(ValueError, match=f"{[*options][0]} must be "):
        tff_pmc.build_federated_evaluation(toy_model, **options)
    with pytest.raises(TypeError, match="examples must be leaf_data.Examples, as data"):
        tff_pmc.evaluation_packs(options)


def test_more_clients_than_num_clients_are_reported_by_name(
    runtime, toy_examples, toy_model
):
    trainable, _ = toy_model.initial_weights
    weights = tff.learning.models.ModelWeights(trainable, ())
    packs = tff_pmc.evaluation_packs(toy_examples)
    for build in (
        tff_pmc.build_federated_evaluation,
        tff_pmc.processes.build_loss_sums,
    ):
        evaluate = build(toy_model, 5)
        with pytest.raises(ValueError, match="num_clients=5 is too small: .* is 5"):
            evaluate(weights, packs)


@pytest.mark.parametrize("first", [0, slice(0, 1)])
def test_a_model_with_one_output_has_no_accuracy(toy_model, first, assert_one_line):
    """The highest of one score is always the first, so all would be in class 0."""

    @tf.function
    def predict_one(weights, x, training=True):
        return toy_model.predict_on_batch(weights, x, training)[:, first]

    single = tff.learning.models.FunctionalModel(
        initial_weights=toy_model.initial_weights,
        predict_on_batch_fn=predict_one,
        loss_fn=tf.function(lambda output, label, sample_weight=None: 0.0),
        input_spec=toy_model.input_spec,
    )
    build = tff_pmc.build_federated_evaluation
    predict = tff_pmc.processes.build_federated_prediction
    for call in (lambda: build(single), lambda: predict(single, 9)):
        assert_one_line(ValueError, call, "must have a score for each class")


@pytest.mark.parametrize("several", ["[None, 7]", "[None, 1]", "a pair"])
def test_a_packed_model_of_several_labels_is_rejected(toy_model, several):
    """They would be compared with one prediction, or with those of other examples."""
    x, y = toy_model.input_spec
    shapes = {"[None, 7]": [None, 7], "[None, 1]": [None, 1]}
    label = tf.TensorSpec(shapes.get(several, y.shape), y.dtype)
    model = tff.learning.models.FunctionalModel(
        initial_weights=toy_model.initial_weights,
        predict_on_batch_fn=toy_model.predict_on_batch,
        loss_fn=toy_model.loss,
        input_spec=(x, (label, label) if several == "a pair" else label),
    )
    with pytest.raises(ValueError, match="one label each.*packed=False"):
        tff_pmc.build_federated_evaluation(model)


def test_predictions_equal_numpy_row_by_row(runtime, toy_examples, toy_model):
    predict = tff_pmc.processes.build_federated_prediction(
        toy_model, toy_examples.num_examples, batch_size=4
    )
    weights = tff.learning.models.ModelWeights(*toy_model.initial_weights)
    kernel, bias = (np.asarray(w) for w in toy_model.initial_weights[0])
    x = toy_examples.x.reshape(toy_examples.num_examples, -1) / np.float32(255)
    expected = (x @ kernel + bias).argmax(1)
    for num_packs in (1, 3):
        packs = tff_pmc.processes.prediction_packs(toy_examples, num_packs=num_packs)
        assert len(packs) == num_packs
        np.testing.assert_array_equal(predict(weights, packs), expected)
    none = tff.learning.models.ModelWeights((kernel * np.nan, bias), ())
    assert set(predict(none, packs)) == {-1}


def test_local_tuning_predicts_for_each_client(
    runtime, toy_examples, toy_model, sgd, trained_alone
):
    """What NumPy's tuned models answer; -1 for the clients who take no part."""
    x = toy_examples.x
    predict = tff_pmc.processes.build_local_tuning_prediction(
        toy_model,
        *(6, len(x)),
        client_optimizer_fn=sgd(),
        training=LocalTraining(local_epochs=1),
        prediction_batch_size=10,
    )
    received = tff.learning.models.ModelWeights(*toy_model.initial_weights)
    packs = tff_pmc.pack(toy_examples, [0, 2, 5], num_packs=2)
    answers = np.asarray(predict(received, packs, x))
    assert answers.shape == (6, len(x))
    assert (answers[[1, 3, 4]] == -1).all()
    tuned = [0, 2, 5]
    for k in tuned:
        kernel, bias = trained_alone(toy_model, toy_examples, k)
        expected = (x.reshape(-1, 16) / 255.0 @ kernel + bias).argmax(axis=1)
        np.testing.assert_array_equal(answers[k], expected)
