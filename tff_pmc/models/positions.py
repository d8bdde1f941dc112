"""A label per position: which positions of a batch count.

A model of sequences outputs scores `[n, T, classes]`, and its labels are int32
`[n, T]`. A position whose label is `MASKED` (-1) does not count: it is padding, or its
label is unknown. Losses and accuracies are means over the positions that count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tff_pmc._lazy import tf


def has_positions(output: Any, labels: Any) -> bool:
    """Returns whether the labels of a batch are one class for each position.

    Then they are integers `[n, T]` (or with more axes), and the output has an axis of
    scores more. The shapes must be static; those of ragged tensors are not.

    Args:
        output: the model's output, a tensor, an array or a `tf.TensorSpec`.
        labels: the labels, likewise.
    """
    kinds = tf.Tensor, tf.TensorSpec, np.ndarray
    if not (isinstance(output, kinds) and isinstance(labels, kinds)):
        return False
    types = tf.as_dtype(output.dtype), tf.as_dtype(labels.dtype)
    if not (types[0].is_floating and types[1].is_integer):
        return False
    rank = tf.TensorShape(labels.shape).rank
    is_sequence = rank is not None and rank > 1
    return is_sequence and tf.TensorShape(output.shape).rank == rank + 1


def select_counted(output: Any, labels: Any) -> tuple[Any, Any]:
    """Returns the scores and the labels of the positions that count.

    The loss of your own model of sequences calls it first, and so do its metrics.

    Args:
        output: the model's output, float `[n, T, classes]`.
        labels: the labels, integers `[n, T]`, -1 for a position that does not count.

    Returns:
        Scores `[p, classes]` and labels `[p]` of the p positions that count, in order;
        p may be 0. An output and labels of another form, such as one label for each
        example, are returned unchanged.

    Examples:
        >>> def loss(output, labels, sample_weight=None):
        ...     scores, labels = tff_pmc.models.select_counted(output, labels)
        ...     losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores)
        ...     return tff_pmc.models.mean_counted(losses)
    """
    if not has_positions(output, labels):
        return output, labels
    mask = labels >= 0
    return tf.boolean_mask(output, mask), tf.boolean_mask(labels, mask)


def mean_counted(losses: Any) -> Any:
    """Returns the mean of the losses of positions that count; 0 if there are none."""
    count = tf.cast(tf.size(losses), losses.dtype)
    return tf.math.divide_no_nan(tf.reduce_sum(losses), count)


def weighs_counted(model: Any, output: Any, labels: Any) -> Any:
    """Returns whether a model's loss is the mean over the positions that count.

    Then the loss of a batch is finite, does not depend on the scores of other
    positions, and is the mean of the examples' losses, weighted by their numbers of
    positions that count.

    Args:
        model: a functional model.
        output: its output on a batch, float `[n, T, classes]`.
        labels: the labels, integers `[n, T]`; in each row some count.
    """
    size, counts = labels.shape[0], tf.math.count_nonzero(labels >= 0, 1)
    masked = tf.cast(labels < 0, output.dtype)[..., tf.newaxis]
    garbage = masked * (1.0 + tf.range(output.shape[-1], dtype=output.dtype))
    losses = [model.loss(output[k : k + 1], labels[k : k + 1]) for k in range(size)]
    shares = tf.cast(counts / tf.reduce_sum(counts), output.dtype)
    expected = tf.reduce_sum(shares * tf.stack(losses))
    others = tf.stack([model.loss(output + garbage, labels), expected])
    error = tf.abs(others - model.loss(output, labels))
    return tf.reduce_all(error <= 5e-3 * tf.abs(expected))


def count_labels(output: Any, labels: Any) -> Any:
    """Returns the number of labels of a batch that count, int32.

    It is the number of positions that count, or, with another form of labels, the
    number of examples. The loss of a batch is the mean of that many losses.
    """
    if has_positions(output, labels):
        return tf.math.count_nonzero(labels >= 0, dtype=tf.int32)
    return tf.shape(labels)[0]
