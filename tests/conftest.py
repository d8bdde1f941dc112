"""What several tests share: one TFF worker, and a small federation."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np
import pytest

import leaf_data


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture(scope="session")
def tff():
    return pytest.importorskip("tensorflow_federated")


@pytest.fixture(scope="session")
def runtime():
    """A TFF worker, installed as the default context for the whole session."""
    from tff_pmc.runtime import Runtime

    with Runtime() as running:
        yield running


@pytest.fixture(scope="session")
def toy_examples():
    """Six clients of 3 to 8 four-by-four images in three classes."""
    generator = np.random.default_rng(7)
    sizes = [8, 3, 5, 6, 4, 7]
    splits = np.concatenate([[0], np.cumsum(sizes)])
    # Labels of client k are below 1 + k % 3: label diversity differs.
    y = np.concatenate(
        [generator.integers(0, 1 + k % 3, n) for k, n in enumerate(sizes)]
    )
    return leaf_data.Examples(
        generator.integers(0, 256, (len(y), 4, 4), dtype=np.uint8),
        y.astype(np.int32),
        splits.astype(np.int64),
        tuple(f"toy_{k}" for k in range(len(sizes))),
    )


@pytest.fixture(scope="session")
def toy_model():
    """A linear softmax model on the toy images: 51 parameters."""
    import tensorflow as tf
    import tensorflow_federated as tff

    generator = np.random.default_rng(3)

    @tf.function
    def predict(weights, x, training=True):
        del training
        (kernel, bias), _ = weights
        x = tf.cast(tf.reshape(x, [-1, 16]), tf.float32) / 255.0
        return x @ kernel + bias

    @tf.function
    def loss(output, label, sample_weight=None):
        del sample_weight
        return tf.reduce_mean(
            tf.nn.sparse_softmax_cross_entropy_with_logits(label, output)
        )

    return tff.learning.models.FunctionalModel(
        initial_weights=(
            (
                generator.normal(size=(16, 3)).astype(np.float32),
                np.zeros(3, np.float32),
            ),
            (),
        ),
        predict_on_batch_fn=predict,
        loss_fn=loss,
        input_spec=(
            tf.TensorSpec([None, 4, 4], tf.uint8),
            tf.TensorSpec([None], tf.int32),
        ),
    )
