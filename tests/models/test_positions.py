"""A label per position: what counts of a batch, against NumPy."""

import numpy as np
import pytest

from tff_pmc import models
from tff_pmc._lazy import tf, tff
from tff_pmc.models import functional, positions

LABELS = np.array([[2, -1, 0], [-1, -1, -1], [1, 1, -1]], np.int32)
SCORES = np.random.default_rng(4).normal(size=(3, 3, 4)).astype(np.float32)


def cross_entropies(scores, labels):
    """The losses of the positions that count, in order."""
    shares = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    pairs = [
        (share, label)
        for share, label in zip(shares.reshape(-1, shares.shape[-1]), labels.ravel())
        if label >= 0
    ]
    return np.array([-np.log(share[label]) for share, label in pairs])


@pytest.mark.parametrize(
    ("output", "labels", "expected"),
    [
        (("float32", [3, 5, 4]), ("int32", [3, 5]), True),
        (("float32", [3, 1, 4]), ("int64", [3, 1]), True),
        (("float32", [3, 5, 6, 4]), ("int32", [3, 5, 6]), True),
        (("float32", [3, 4]), ("int32", [3]), False),
        (("float32", [3, 4]), ("int32", [3, 1]), False),  # A column of labels.
        (("float32", [3, 4]), ("int32", [3, 4]), False),  # One-hot labels.
        (("float32", [3, 5, 4]), ("float32", [3, 5]), False),  # A regression.
        (("int32", [3, 5, 4]), ("int32", [3, 5]), False),
        (("float32", None), ("int32", [3, 5]), False),
        (("float32", [3, 5, 4]), ("int32", None), False),
    ],
)
def test_types_and_shapes_tell_positions(output, labels, expected):
    specs = [tf.TensorSpec(shape, dtype) for dtype, shape in (output, labels)]
    assert positions.has_positions(*specs) == expected
    assert not positions.has_positions([specs[0]], specs[1])


def test_positions_that_count_are_selected():
    scores, labels = models.select_counted(tf.constant(SCORES), tf.constant(LABELS))
    assert labels.numpy().tolist() == [2, 0, 1, 1]
    np.testing.assert_array_equal(scores, SCORES[LABELS >= 0])
    single = tf.constant(SCORES[0]), tf.constant(LABELS[0])
    assert models.select_counted(*single) == single
    assert positions.count_labels(tf.constant(SCORES), tf.constant(LABELS)) == 4
    assert positions.count_labels(*single) == 3


def model(**options):
    """A table of scores by token: each position depends on its own token alone."""

    @tf.function(autograph=False)
    def predict(weights, x, training=True):
        return tf.gather(weights[0][0], x)

    shape = options.pop("label_shape", (3,))
    table = np.random.default_rng(5).normal(size=(5, 4)).astype(np.float32)
    return functional.classifier(
        [table], predict, (3,), element_dtype="int32", label_shape=shape, **options
    )


def test_the_loss_is_the_mean_over_positions_that_count():
    losses = cross_entropies(SCORES, LABELS)
    loss = model().loss(tf.constant(SCORES), tf.constant(LABELS))
    assert float(loss) == pytest.approx(losses.mean(), rel=1e-6)
    none = model().loss(tf.constant(SCORES), tf.fill([3, 3], -1))
    assert float(none) == 0


def test_the_weighted_loss_is_that_of_positions_that_count():
    from tff_pmc.models import PackedModel

    weights = np.array([3.0, 1.0, 0.5, 2.0], np.float32)
    expected = cross_entropies(SCORES, LABELS) * weights[LABELS[LABELS >= 0]]
    arrays = map(tf.constant, (SCORES, LABELS, weights))
    loss = PackedModel.of(model()).weighted_loss(*arrays)
    assert float(loss) == pytest.approx(expected.mean(), rel=1e-6)


def test_correct_positions_are_counted_by_example():
    scores = SCORES.copy()
    scores[1, 0, 0] = np.nan  # Its prediction is -1, as the label of the position.
    correct = functional.count_correct(tf.constant(scores), tf.constant(LABELS))
    hits = (scores.argmax(axis=2) == LABELS) & (LABELS >= 0)
    assert correct.numpy().tolist() == hits.sum(axis=1).tolist()
    labels = SCORES.argmax(axis=2).astype(np.int32)
    correct = functional.count_correct(tf.constant(SCORES), tf.constant(labels))
    assert correct.numpy().tolist() == [3, 3, 3]


def test_means_over_batches_are_weighted_by_positions(monkeypatch):
    """The batches have 2 and 2 positions that count, or 4 and 0."""
    monkeypatch.setitem(functional.reduce_predictions.__kwdefaults__, "batch_size", 2)
    x = np.array([[0, 1, 2], [3, 4, 0], [1, 2, 3]], np.int32)
    weights = tff.learning.models.ModelWeights(*model().initial_weights)
    expected = cross_entropies(weights.trainable[0][x], LABELS).mean()
    for order in ([0, 1, 2], [2, 0, 1]):
        mean = functional.mean_of_batches(
            model(), weights, x[order], LABELS[order], lambda output, y: output.loss
        )
        assert float(mean) == pytest.approx(expected, rel=1e-6)


def test_a_model_of_positions_is_recognized():
    from tff_pmc.models.tff_types.packed_model import predicts_positions

    assert predicts_positions(model())
    assert not predicts_positions(model(label_shape=(3, 1)))
    assert not predicts_positions(models.softmax_regression())


def counts_masked(output, labels, sample_weight=None):
    labels = tf.maximum(labels, 0)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, output)
    return tf.reduce_mean(losses)


def divides_by_all(output, labels, sample_weight=None):
    scores, labels = models.select_counted(output, labels)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
    return tf.reduce_sum(losses) / tf.cast(tf.size(output[..., 0]), tf.float32)


def weighs_examples(output, labels, sample_weight=None):
    """The mean of the examples' means: 1 and 2 positions have the same weight."""
    mask = tf.cast(labels >= 0, tf.float32)
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        tf.maximum(labels, 0), output
    )
    return tf.reduce_mean(tf.reduce_sum(losses * mask, 1) / tf.reduce_sum(mask, 1))


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        (None, True),
        (counts_masked, False),
        (divides_by_all, False),
        (weighs_examples, False),
    ],
)
def test_only_means_over_counted_positions_are_accepted(loss, expected):
    class WithLoss:
        pass

    candidate = WithLoss()
    candidate.loss = loss or model().loss
    labels = tf.constant([[2, -1, -1], [1, 1, -1]])
    scores = tf.constant(SCORES[:2])
    assert bool(positions.weighs_counted(candidate, scores, labels)) == expected
