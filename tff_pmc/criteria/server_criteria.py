"""Criteria that evaluate a client's model on the server's examples.

AdaFed weighs a client by the accuracy of its model on a test set of the server, which
an adversary must not report itself. A server that holds every client's model can
measure it. A server that sees only sums cannot, so the client computes the criterion:
the server's examples are constants of the computation that it sends, and the value is
summed like any other criterion.

The consequence: the client is trusted to run the computation as it was sent. A
simulation does; a deployment needs devices whose code is attested, or an aggregator
between clients and server that holds the models and the server's examples. A client
that can run other code can report any accuracy, as it can send any model.
"""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from tff_pmc._lazy import tf
from tff_pmc.criteria.criterion import Criterion, LocalClient, register
from tff_pmc.models.functional import count_correct, reduce_predictions

_MAPE = "1 over the mean absolute percentage error on the server's examples"


def example_accuracy(output: Any, y: Any) -> Any:
    """Returns 1 for each correctly classified example, else 0, float32 `[n]`.

    With a label per position it is the number of the example's correct positions.
    """
    return tf.cast(count_correct(output, y), tf.float32)


def server_metric(
    code: str,
    model: Any,
    x: Any,
    y: Any,
    *,
    of_example: Callable[[Any, Any], Any],
    quality: Callable[[Any], Any] = lambda mean: mean,
    name: str = "metric on the server's examples",
    source: str = "AdaFed section 3.2",
) -> Criterion:
    """Builds the criterion of a metric on the server's examples (AdaFed, section 3.2).

    Args:
        code: the criterion's code.
        model: the trained `tff.learning.models.FunctionalModel`.
        x: the server's inputs, an array `[n, ...]`.
        y: their labels or targets, `[n, ...]`.
        of_example: `(output, y) -> float32 [n]`, the metric of each example.
        quality: a function of the metric's mean over the examples, float32, that
            returns the criterion's raw value: not negative, and higher for better
            models.
        name: the criterion in words.
        source: the paper and the section it comes from.

    Raises:
        ValueError: x is empty, or y has another length.

    Example: regression, weighted by the inverse of the squared error.
        >>> server_metric("MSE", model, x, y,
        ...     of_example=lambda output, y: tf.square(output - y)[:, 0],
        ...     quality=lambda error: 1.0 / (error + 1e-3))
    """
    if not len(x) or len(x) != len(y):
        raise ValueError(
            f"{code}: the server's x has {len(x)} examples and y has {len(y)}: both "
            "need the same number, at least one"
        )

    def value(client: LocalClient) -> Any:
        weights = client.trained_weights
        return quality(
            _sum_over_examples(model, weights, x, y, of_example) / float(len(x))
        )

    return Criterion(code, name, source, value, needs_model=True)


def server_accuracy(model: Any, x: Any, y: Any, *, power: float = 1.0) -> Criterion:
    """Computes ACC: the accuracy of the client's model on the server's examples.

    Args:
        model: a classifier, as for `server_metric`.
        x: the server's inputs.
        y: their labels, `[n]`, or `[n, T]` for each position, -1 for one that does not
            count.
        power: the exponent of the accuracy (AdaFed's remark): above 1 it increases the
            distance between good and bad models.

    Raises:
        ValueError: the power is not above 0, the labels are not class numbers [n] or
            [n, T], or as for `server_metric`.
    """
    if not power > 0:
        raise ValueError(f"power must be above 0, got {power}")
    labels_per_example = 1.0
    if np.ndim(y) != 1:
        # Imported here, because it imports TensorFlow.
        from tff_pmc.models.tff_types.packed_model import predicts_positions

        if not predicts_positions(model):  # Labels would meet other predictions.
            raise ValueError(
                "ACC: the server's labels must be the numbers of classes, one for each "
                f"input, got the shape {list(np.shape(y))}"
            )
        labels_per_example = int((np.asarray(y) >= 0).sum()) / max(1, len(y))
    return server_metric(
        "ACC",
        model,
        x,
        y,
        of_example=example_accuracy,
        quality=lambda correct: (correct / labels_per_example) ** power,
        name="accuracy on the server's examples",
        source="AdaFed sections 3.1 and 4, Dual section III-B",
    )


def server_percentage_error(model: Any, x: Any, y: Any) -> Criterion:
    """Computes MAPE: 1 / the mean absolute percentage error on the server's examples.

    The paper names the error but not the weight it gives; here half the error gives
    twice the weight. For another rule use `criteria.power`.

    Args:
        model: a regression, as for `server_metric`, with one output for each target.
        x: the server's inputs.
        y: their targets, floating-point numbers that are not 0.

    Raises:
        ValueError: the targets are classes, one is 0, or as for `server_metric`.
    """
    targets = np.asarray(y)
    if targets.dtype.kind != "f" or not targets.all():
        raise ValueError(
            "MAPE: the server's targets must be floating-point numbers that are not 0, "
            "because the error is divided by them"
        )

    def of_example(output: Any, target: Any) -> Any:
        target = tf.reshape(target, [tf.shape(target)[0], -1])
        error = tf.reshape(output, tf.shape(target)) - target
        return tf.reduce_mean(tf.abs(error / target), axis=1)

    return server_metric(
        "MAPE",
        model,
        x,
        targets,
        of_example=of_example,
        quality=lambda error: 1.0 / error,
        name=_MAPE,
    )


def _sum_over_examples(
    model: Any, weights: Any, x: Any, y: Any, of_example: Any
) -> Any:
    def sum_values() -> Any:
        inputs, labels = tf.constant(x), tf.constant(y)

        def add(total: Any, rows: slice, output: Any) -> Any:
            values = tf.cast(of_example(output, labels[rows]), "float32")
            return total + tf.reduce_sum(values)

        return reduce_predictions(model, weights, inputs, len(x), tf.constant(0.0), add)

    # Traced here: TensorFlow warns of many first calls of the same function's code.
    return tf.function(sum_values).get_concrete_function()()


def _raise_not_bound(client: LocalClient) -> Any:
    raise ValueError(
        "it needs the server's examples: use criteria.bind_to_server(...) or "
        "one of the functions criteria.server_..."
    )


register(
    Criterion(
        "ACC",
        "accuracy on the server's examples",
        "AdaFed sections 3.1 and 4, Dual section III-B",
        _raise_not_bound,
        needs_model=True,
        at_server=server_accuracy,
        needs_classes=True,
    )
)
register(
    Criterion(
        "MAPE",
        _MAPE,
        "AdaFed section 3.2",
        _raise_not_bound,
        needs_model=True,
        at_server=server_percentage_error,
    )
)
