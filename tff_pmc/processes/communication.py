"""The bytes that a round sends, computed from the types (DA, footnote 1).

They are counted as in a deployment, in which a pack is one client: payload only, no
framing or compression.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import MEASUREMENTS, update_type

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
    num_sums: Optional[int] = None,
) -> Traffic:
    """Computes the traffic of a process from the types in its `next`.

    What a simulation reports of each client, or remembers for it, is left out.
    `own_metrics` are the `tf.TensorSpec`s of what a client reports of the model's
    metrics, whose finalized values are other numbers. `num_sums` are the sums that the
    round needs, where it makes more for a look at what else it could have been.
    """
    specs = tff.types.type_to_tf_tensor_specs
    model, state = size(specs(weights_type)), dict(specs(work_state_type))
    update = size(specs(update_type(weights_type)))
    state.pop("memory", None)
    metrics = specs(metrics_type)
    made, scalars = 1, [tf.TensorSpec([], tf.float32)]  # A baseline's one weight.
    if "monomials" in metrics["aggregator"]:
        totals, monomials = (metrics["aggregator"][k] for k in ("totals", "monomials"))
        made = num_sums or monomials.shape[0]
        scalars = [totals, tf.TensorSpec([made], monomials.dtype)]
        scalars += [totals] if normalization == "max" else []
        # They come back, and the sums of normalized criteria go to the server.
        scalars += 2 * [totals] if two_stage else []
    f1 = metrics["distributor"] if "distributor" in metrics else ()
    measured = [
        spec
        for name, spec in metrics["client_work"]["train"].items()
        if name in MEASUREMENTS
    ]
    sent = model + size(state) + size(f1)
    training = sent + made * update + size(scalars)
    training += size(measured) + size(own_metrics)
    return Traffic(training, model + _COUNT_BYTES)


def size(specs: Any) -> int:
    """Returns the bytes of a structure of `tf.TensorSpec`s of known shape."""
    return sum(
        spec.shape.num_elements() * spec.dtype.size for spec in tf.nest.flatten(specs)
    )
