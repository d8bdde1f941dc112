"""Local accuracies as counts, against NumPy."""

import numpy as np
import pytest

from tff_pmc import models, processes
from tff_pmc.processes.evaluation import evaluation_shards


@pytest.mark.parametrize("num_shards", [1, 3])
@pytest.mark.parametrize("batch_size", [4, 500])
def test_counts_equal_numpy(runtime, toy_examples, toy_model, num_shards, batch_size):
    import tensorflow_federated as tff

    evaluate = processes.build_federated_evaluation(
        toy_model, toy_examples.num_clients, batch_size=batch_size
    )
    trainable, _ = toy_model.initial_weights
    weights = tff.learning.models.ModelWeights(trainable, ())
    shards = evaluation_shards(toy_examples, num_shards=num_shards)
    counts = evaluate(weights, shards)
    expected = []
    for k in range(toy_examples.num_clients):
        part = toy_examples.client(k)
        x = part["x"].reshape(len(part["y"]), -1) / 255.0
        predicted = (x @ trainable[0] + trainable[1]).argmax(axis=1)
        expected.append((predicted == part["y"]).sum())
    assert list(counts) == expected
    assert 0 < sum(expected) < toy_examples.num_examples


def test_shards_hold_every_example_once(toy_examples):
    shards = evaluation_shards(toy_examples, num_shards=4)
    assert sum(len(shard["y"]) for shard in shards) == toy_examples.num_examples
    clients = np.concatenate([shard["client"] for shard in shards])
    assert (np.bincount(clients) == toy_examples.sizes).all()


def test_shards_are_cut_by_bytes(toy_examples):
    shards = evaluation_shards(toy_examples, num_shards=1, max_bytes=100)
    assert max(shard["x"].nbytes for shard in shards) <= 100
    assert sum(len(shard["y"]) for shard in shards) == toy_examples.num_examples


class TestCnn:
    def test_they_have_the_papers_numbers_of_parameters(self):
        assert models.num_parameters(models.mnist_cnn()) == 1_663_370
        assert models.num_parameters(models.femnist_cnn()) == 6_603_710

    def test_initial_weights_are_a_function_of_the_seed(self):
        def first(seed, **options):
            return models.mnist_cnn(seed=seed, **options).initial_weights[0][0]

        np.testing.assert_array_equal(first(1), first(1))
        assert not np.array_equal(first(1), first(2))
        assert not np.array_equal(first(1), first(1, initializer="glorot_normal"))

    @pytest.mark.parametrize("initializer", ["glorot_uniform", "glorot_normal"])
    def test_initial_kernels_are_kerass(self, initializer):
        """The same distribution as Keras's initializer: spread and bounds."""
        import tensorflow as tf

        kernels = models.mnist_cnn(initializer=initializer).initial_weights[0][::2]
        for kernel in kernels[1:3]:
            theirs = tf.keras.initializers.get(initializer)(kernel.shape).numpy()
            assert kernel.std() == pytest.approx(theirs.std(), rel=0.02)
            assert np.abs(kernel).max() == pytest.approx(np.abs(theirs).max(), rel=0.02)

    def test_linear_convolutions_are_another_model(self):
        import tensorflow as tf

        x = tf.constant(np.random.default_rng(0).integers(0, 256, (2, 28, 28)))
        x = tf.cast(x, tf.uint8)
        outputs = []
        for activation in ("relu", "none"):
            model = models.mnist_cnn(conv_activation=activation)
            outputs.append(model.predict_on_batch(model.initial_weights, x, False))
        assert outputs[0].shape == (2, 10)
        assert np.abs(outputs[0] - outputs[1]).max() > 1e-3

    @pytest.mark.parametrize("option", ["conv_activation", "initializer"])
    def test_unknown_choices_are_refused(self, option):
        with pytest.raises(ValueError, match=f"{option} must be one of"):
            models.mnist_cnn(**{option: "tanh"})


@pytest.mark.parametrize("num_shards", [1, 3])
def test_predictions_are_those_of_numpy_at_their_rows(
    runtime, toy_examples, toy_model, num_shards
):
    import tensorflow_federated as tff

    from tff_pmc import processes

    predict = processes.build_federated_prediction(
        toy_model, toy_examples.num_examples, batch_size=4
    )
    weights = tff.learning.models.ModelWeights(*toy_model.initial_weights)
    shards = processes.prediction_shards(toy_examples, num_shards=num_shards)
    assert len(shards) == num_shards
    kernel, bias = (np.asarray(w) for w in toy_model.initial_weights[0])
    x = toy_examples.x.reshape(toy_examples.num_examples, -1) / np.float32(255)
    np.testing.assert_array_equal(
        predict(weights, shards), (x @ kernel + bias).argmax(1)
    )
