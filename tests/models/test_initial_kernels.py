"""The distribution of initial kernels."""

import numpy as np
import pytest

from tff_pmc import models


@pytest.mark.parametrize("initializer", ["glorot_uniform", "glorot_normal"])
def test_initial_kernels_are_kerass(initializer):
    """The same distribution as Keras's initializer: spread and bounds."""
    import tensorflow as tf

    kernels = models.mnist_cnn(initializer=initializer).initial_weights[0][::2]
    for kernel in kernels[1:3]:
        theirs = tf.keras.initializers.get(initializer)(kernel.shape).numpy()
        assert kernel.std() == pytest.approx(theirs.std(), rel=0.02)
        assert np.abs(kernel).max() == pytest.approx(np.abs(theirs).max(), rel=0.02)
