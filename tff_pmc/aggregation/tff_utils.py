"""Helpers that build TFF's computations."""

from __future__ import annotations

import collections
from typing import Any, Callable, TypeVar

import tensorflow as tf
import tensorflow_federated as tff

_F = TypeVar("_F", bound=Callable[..., Any])
_OURS = ("tff_pmc", "tensorflow_federated")


def without_autograph(function: _F) -> _F:
    """Wraps a function so that TensorFlow's autograph does not convert it.

    Converting a function, so that its `if` and `for` may be over tensors, takes 0.1 to
    1 s: half of the time to build a process. Those that have none are spared it.
    """
    return tf.autograph.experimental.do_not_convert(function)


def method_with_autograph(owner: Any, name: str) -> Callable[..., Any]:
    """Returns a method; converted unless its class is this package's or TFF's.

    The class may be a user's, who may rely on the conversion.
    """
    method = getattr(owner, name)
    if type(owner).__module__.startswith(_OURS):
        return method
    return lambda *given: tf.function(lambda: method(*given))()


def check_type(name: str, value: Any, kind: type, words: str) -> None:
    """Raises a `TypeError` for what is not of a class, by the argument's name."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} must be {words}, got {type(value).__name__}")


def federated_struct(**parts: Any) -> Any:
    """Joins values of one placement into one structure."""
    return tff.federated_zip(collections.OrderedDict(parts))


def members_by_name(structure: Any) -> collections.OrderedDict:
    """Returns a structure's members within a federated computation, by their names."""
    type_ = structure.type_signature
    type_ = type_.member if isinstance(type_, tff.FederatedType) else type_
    names = tff.structure.name_list(type_)
    return collections.OrderedDict((name, structure[name]) for name in names)


def build_aggregation_process(
    initialize: tff.Computation, next_fn: Callable[..., Any], *client_types: tff.Type
) -> tff.templates.AggregationProcess:
    """Builds the process whose `next` takes a state and values of types at CLIENTS."""
    at_clients = [tff.FederatedType(type_, tff.CLIENTS) for type_ in client_types]
    state_type = initialize.type_signature.result
    return tff.templates.AggregationProcess(
        initialize, tff.federated_computation(state_type, *at_clients)(next_fn)
    )


def with_server_step(
    inner: tff.templates.AggregationProcess,
    first_state: Callable[[], Any],
    next_step: Callable[[Any, Any], tuple[Any, Any]],
) -> tff.templates.AggregationProcess:
    """Appends `(state, result) -> (state, result)` at the server to the process."""
    client_types = [type_.member for type_ in inner.next.type_signature.parameter[1:]]
    result_type = inner.next.type_signature.result.result.member
    first = tff.tensorflow.computation(first_state)
    step = tff.tensorflow.computation(first.type_signature.result, result_type)(
        next_step
    )

    @tff.federated_computation
    def initialize():
        step_state = tff.federated_eval(first, tff.SERVER)
        return federated_struct(inner=inner.initialize(), step=step_state)

    def stepped(state, output):
        new, result = tff.federated_map(step, (state.step, output.result))
        return tff.templates.MeasuredProcessOutput(
            federated_struct(inner=output.state, step=new), result, output.measurements
        )

    def unweighted(state, values):
        return stepped(state, inner.next(state.inner, values))

    def weighted(state, values, weights):
        return stepped(state, inner.next(state.inner, values, weights))

    next_fn = weighted if len(client_types) == 2 else unweighted
    return build_aggregation_process(initialize, next_fn, *client_types)
