"""The CNNs of MNIST and FEMNIST: sizes, initial weights, variants."""

import numpy as np
import pytest

from tff_pmc import models


class TestCnn:
    def test_they_have_the_papers_numbers_of_parameters(self):
        for model, count in (
            (models.mnist_cnn(), 1_663_370),
            (models.femnist_cnn(), 6_603_710),
        ):
            assert sum(w.size for w in model.initial_weights[0]) == count

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
