"""A model's predictions for many inputs, one batch after another."""

from __future__ import annotations

from typing import Any, Callable

from tff_pmc._lazy import tf

BATCH_SIZE = 500
"""The default number of examples in a forward pass."""


def over_batches(
    model: Any,
    weights: Any,
    x: Any,
    size: Any,
    first: Any,
    add: Callable[[Any, slice, Any], Any],
    *,
    batch_size: int = BATCH_SIZE,
) -> Any:
    """Predicts batch by batch, inside a `tf.function`, and reduces the outputs.

    Args:
        model: a `tff.learning.models.FunctionalModel`.
        weights: its `ModelWeights`.
        x: the inputs, a tensor `[n, ...]`.
        size: the number of inputs, n: a tensor where it is not known yet.
        first: the result for no inputs.
        add: `(found, rows, output) -> found`: adds the model's output on the
            inputs of a batch, `x[rows]`.
        batch_size: the number of examples in a forward pass.
    """
    parameters = (weights.trainable, weights.non_trainable)
    found = first
    for start in tf.range(0, size, batch_size):
        rows = slice(start, start + batch_size)
        found = add(found, rows, model.predict_on_batch(parameters, x[rows], False))
    return found


def predicted_labels(output: Any) -> Any:
    """The class of the highest score for each example, int32 [n]."""
    return tf.argmax(output, axis=-1, output_type=tf.int32)
