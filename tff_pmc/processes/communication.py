"""The messages of a round and their bytes, computed from the types (DA, footnote 1).

They are those of a deployment, in which a pack is one client: payload only, without
framing or compression.
"""

from __future__ import annotations

import collections
from typing import Any, NamedTuple, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.client_message import MEASUREMENTS, ClientMessage
from tff_pmc.aggregation.contributions import update_type

_COUNT = tf.TensorSpec([], tf.int32)  # What a judging client sends.


class Traffic(NamedTuple):
    """The bytes that a client receives and sends when it trains, and when it judges.

    In training it receives the model and the round's number, and sends its messages. To
    judge one candidate it receives the model and sends an integer.
    """

    per_client_training: int
    per_client_testing: int


def client_messages(
    train: tff.Computation,
    *,
    normalization: str = "sum",
    two_stage: bool = False,
    model_metrics: Any = (),
    num_sums: Optional[int] = None,
) -> tuple[ClientMessage, ...]:
    """Returns the messages that a client sends in a round, in order, in TFF's types.

    Args:
        train: the `next` of a process, or the `parts.train` of an online adjustment.
        normalization: the method that normalizes criteria.
        two_stage: whether the criteria are sent before the updates.
        model_metrics: the `tf.TensorSpec`s of the model's metrics as a client reports
            them (`ModelMetrics.specs`); by default none.
        num_sums: the number of sums to count, without those that only counterfactuals
            need; by default all.

    Returns:
        One message; two with `two_stage`.

    Examples:
        >>> for message in client_messages(process.next):
        ...     print(message.describe())
    """
    state, metrics = _state_and_metrics(train)
    update = update_type(state.global_model_weights)
    train_metrics = metrics.client_work.train
    measurements = collections.OrderedDict(
        (name, dtype)
        for name, dtype in MEASUREMENTS.items()
        if tff.structure.has_field(train_metrics, name)
    )
    common = {
        "measurements": tff.to_type(measurements),
        "metrics": tff.types.tensorflow_to_type(model_metrics) if model_metrics else (),
        "control": _control_type(state),
    }
    if not tff.structure.has_field(metrics.aggregator, "monomials"):
        size = tff.TensorType(np.float32)  # With an aggregator.
        return (ClientMessage((update,), (), size, **common),)
    num_criteria, num_monomials = (
        metrics.aggregator[name].shape[0] for name in ("totals", "monomials")
    )
    sizes = update, num_criteria, num_sums or num_monomials
    if not two_stage:
        return (ClientMessage.of_sums(*sizes, normalization)._replace(**common),)
    # The second stage receives normalized criteria, as with declared ranges.
    last = ClientMessage.of_sums(*sizes, "range")._replace(**common)
    first = ClientMessage.of_sums(*sizes, normalization)
    return first._replace(updates=(), monomials=()), last


def traffic(train: tff.Computation, **options: Any) -> Traffic:
    """Computes the traffic of a process; the options are those of `client_messages`.

    The reports and the memory of single clients in a simulation are not counted.
    """
    state, metrics = _state_and_metrics(train)
    model = _specs(state.global_model_weights)
    work_state = dict(_specs(state.client_work))
    work_state.pop("memory", None)
    received = [model, work_state, _specs(_control_type(state))]
    if tff.structure.has_field(metrics, "distributor"):
        received.append(_specs(metrics.distributor))  # The class weights.
    messages = client_messages(train, **options)
    if len(messages) > 1:  # The totals are broadcast.
        received.append(_specs(messages[0].criteria))
    training_bytes = sum(map(size, received))
    training_bytes += sum(
        size(_specs(part)) for message in messages for part in message
    )
    return Traffic(training_bytes, size([model, _COUNT]))


def size(specs: Any) -> int:
    """Returns the bytes of a structure of `tf.TensorSpec`s of known shape."""
    return sum(
        spec.shape.num_elements() * spec.dtype.size for spec in tf.nest.flatten(specs)
    )


def _control_type(state: Any) -> Any:
    """Returns the type of the server's control variate (SCAFFOLD), or ().

    It is broadcast with the model, and clients send their changes of it: no other part
    of a memory is sent in a deployment.
    """
    if not tff.structure.has_field(state.client_work, "memory"):
        return ()
    memory = state.client_work.memory
    if not isinstance(memory, tff.StructType):
        return ()
    return memory.control if tff.structure.has_field(memory, "control") else ()


def _state_and_metrics(train: tff.Computation) -> tuple[Any, Any]:
    """Returns the types of a round's state and of its metrics."""
    signature = train.type_signature
    return signature.parameter[0].member, signature.result.metrics.member


def _specs(type_: Any) -> Any:
    return tff.types.type_to_tf_tensor_specs(tff.to_type(type_))
