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

    Conversion lets `if` and `for` depend on tensors. It takes 0.1 to 1 s per function,
    half of the time to build a process, and is wasted on functions without such
    statements.
    """
    return tf.autograph.experimental.do_not_convert(function)


def method_with_autograph(owner: Any, name: str) -> Callable[..., Any]:
    """Returns the method `name` of `owner`, converted by autograph if needed.

    It is converted only if the class is a user's, who may rely on the conversion.
    """
    method = getattr(owner, name)
    if type(owner).__module__.startswith(_OURS):
        return method
    return lambda *arguments: tf.function(lambda: method(*arguments))()


def check_type(name: str, value: Any, expected: type, description: str) -> None:
    """Raises a `TypeError` that names an argument which is not of the expected type."""
    if not isinstance(value, expected):
        raise TypeError(f"{name} must be {description}, got {type(value).__name__}")


def federated_struct(**parts: Any) -> Any:
    """Joins federated values of one placement into one federated structure, by name."""
    return tff.federated_zip(collections.OrderedDict(parts))


def members_by_name(structure: Any) -> collections.OrderedDict:
    """Returns the members of a structure in a federated computation, by name."""
    type_ = structure.type_signature
    type_ = type_.member if isinstance(type_, tff.FederatedType) else type_
    names = tff.structure.name_list(type_)
    return collections.OrderedDict((name, structure[name]) for name in names)


def build_aggregation_process(
    initialize: tff.Computation, next_fn: Callable[..., Any], *client_types: tff.Type
) -> tff.templates.AggregationProcess:
    """Builds the process with this `next`; the types are those of the client values."""
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
    """Wraps a process so that the server transforms its aggregate.

    `next_step` is `(step_state, aggregate) -> (step_state, aggregate)`, in TensorFlow.
    """
    client_types = [type_.member for type_ in inner.next.type_signature.parameter[1:]]
    result_type = inner.next.type_signature.result.result.member
    initial_step_state = tff.tensorflow.computation(first_state)
    step_state_type = initial_step_state.type_signature.result
    step = tff.tensorflow.computation(step_state_type, result_type)(next_step)

    @tff.federated_computation
    def initialize():
        step_state = tff.federated_eval(initial_step_state, tff.SERVER)
        return federated_struct(inner=inner.initialize(), step=step_state)

    def apply_step(state, output):
        step_state, result = tff.federated_map(step, (state.step, output.result))
        return tff.templates.MeasuredProcessOutput(
            federated_struct(inner=output.state, step=step_state),
            result,
            output.measurements,
        )

    def next_unweighted(state, values):
        return apply_step(state, inner.next(state.inner, values))

    def next_weighted(state, values, weights):
        return apply_step(state, inner.next(state.inner, values, weights))

    next_fn = next_weighted if len(client_types) == 2 else next_unweighted
    return build_aggregation_process(initialize, next_fn, *client_types)
