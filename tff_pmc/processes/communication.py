"""The bytes that a round sends, computed from the types (DA, footnote 1).

They are counted as in a deployment, in which a pack is one client: payload only, no
framing or compression.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import MEASUREMENTS

_COUNT_BYTES = 4  # A judge's answer is one int32.


class Traffic(NamedTuple):
    """The bytes that a client sends and receives when it trains, and when it judges.

    Training: the model and the round's number to it, its weighted updates, criteria and
    measurements back. Judging one candidate: the model to it, an integer back.
    """

    per_client_training: int
    per_client_testing: int


def traffic(
    weights_type: tff.Type,
    work_state_type: tff.Type,
    metrics_type: tff.Type,
    *,
    normalization: str = "sum",
    two_stage: bool = False,
    own_metrics: Any = (),
) -> Traffic:
    """The traffic of a process, from the types in its `next`.

    The metrics' sums have the types of what each client sends, and class weights in the
    broadcast that of `distributor`. A baseline has no `totals`: then a client sends its
    update and one weight. What a simulation reports of each client (`*_by_client`) is
    left out, and so is what it remembers for them. `own_metrics` are the
    `tf.TensorSpec`s of what a client reports of the model's own metrics, whose
    finalized values are other numbers. The normalization `max` sends maxima too; with
    `two_stage` the totals (or maxima) come back to the clients, which send the sums of
    the normalized criteria, too.
    """
    specs = tff.types.type_to_tf_tensor_specs
    model, state = size(specs(weights_type)), dict(specs(work_state_type))
    state.pop("memory", None)
    metrics = specs(metrics_type)
    num_sums, scalars = 1, [tf.TensorSpec([], tf.float32)]
    if "monomials" in metrics["aggregator"]:
        totals, monomials = (metrics["aggregator"][k] for k in ("totals", "monomials"))
        (num_sums,), scalars = monomials.shape, [totals, monomials]
        scalars += [totals] if normalization == "max" else []
        scalars += 2 * [totals] if two_stage else []
    f1 = metrics["distributor"] if "distributor" in metrics else ()
    measured = [
        spec
        for name, spec in metrics["client_work"]["train"].items()
        if name in MEASUREMENTS
    ]
    sent = model + size(state) + size(f1)
    training = sent + num_sums * model + size(scalars)
    training += size(measured) + size(own_metrics)
    return Traffic(training, model + _COUNT_BYTES)


def size(specs: Any) -> int:
    """The bytes of a structure of `tf.TensorSpec`s of known shape."""
    return sum(
        spec.shape.num_elements() * spec.dtype.size for spec in tf.nest.flatten(specs)
    )
