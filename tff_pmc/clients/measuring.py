"""The raw criteria and the contribution that a client measures of itself."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tff_pmc.aggregation.contributions import (
    Contribution,
    check_not_negative,
    contribution_of,
)
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.criteria import Criterion, LocalClient


def measure_contribution(
    criteria: Sequence[Criterion], plan: SumPlan, client: LocalClient
) -> Contribution:
    """Measures a client and computes its contribution, inside its TensorFlow graph.

    A negative criterion is an error of whoever wrote it and ends the round, by name.

    Args:
        criteria: the m criteria, in the order of the basis's columns.
        plan: the plan of the sums.
        client: the client after its training.

    Raises:
        ValueError: while tracing, when a criterion does not give a scalar.
        tf.errors.InvalidArgumentError: in the graph, on a negative criterion.
    """
    # A declared range cuts what is below it; an error would show the value.
    checked = plan.normalization.method != "range"
    raw = tf.stack([raw_value(c, client, checked=checked) for c in criteria])
    update = tf.nest.map_structure(
        tf.subtract, client.initial_weights, client.trained_weights
    )
    return contribution_of(plan, raw, update)


def raw_value(
    criterion: Criterion, client: LocalClient, *, checked: bool = True
) -> tf.Tensor:
    """A criterion's value as a float32 scalar.

    Args:
        criterion: the criterion.
        client: the client of whom it is measured.
        checked: whether a negative value is an error in the graph.

    Raises:
        ValueError: while tracing, when the criterion does not give a scalar.
    """
    value = tf.cast(criterion.value(client), tf.float32)
    if value.shape.rank not in (0, None):
        raise ValueError(
            f"the criterion {criterion.code} must give one number per client, but "
            f"gives a tensor of the shape {value.shape}"
        )
    value = tf.reshape(value, [])
    return check_not_negative(criterion.code, value) if checked else value
