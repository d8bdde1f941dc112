"""The TFF client work that both forms of local training share."""

from __future__ import annotations

import collections
import functools
from collections.abc import Sequence
from typing import Any, Callable, Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.client_message import MEASUREMENTS
from tff_pmc.aggregation.contributions import (
    Contribution,
    aggregated_weights,
    check_not_negative,
    compute_contribution,
)
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.tff_utils import (
    federated_struct,
    members_by_name,
    without_autograph,
)
from tff_pmc.criteria import Criterion, LocalClient
from tff_pmc.scores.basis import encode_name

TOO_NARROW = (
    "cannot hold large numbers: cast to tf.float32 first, as in "
    "tf.reduce_sum(tf.cast(client.x, tf.float32))"
)

_NAME_TAKEN = (
    "the model's metric {name!r} has the name of a measurement of the round: give it "
    "another name"
)

_BY_CLIENT = ("criteria_by_client", "excluded_by_client")
MEASURED = (*MEASUREMENTS, *_BY_CLIENT)
"""The names of a round's measurements, which no metric of a model may have."""


def build_client_work(
    message_type: tff.Type,
    data_type: tff.Type,
    train_pack: Callable[[Any, Any, Any], collections.OrderedDict],
    *,
    seed: int,
    memory: Optional[Any] = None,
    after_round: Callable[[Any, Any], Any] = lambda memory, row_updates: memory,
    metrics: Optional[tff.Computation] = None,
    client_rate: Optional[Callable[[Any], Any]] = None,
    codes_by_client: Sequence[str] = (),
    sends_rows: bool = False,
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work around a function that trains one pack.

    With `R` the type of the server's message (the type `W` of the model's weights, or a
    structure that contains it) and `W*B` a tuple of B such weights, `next` has the type

        (<state=<seed=int32,round=int32>@SERVER, R@CLIENTS, data_type@CLIENTS>
         -> <state@SERVER,
             result=<update=W*B, update_weight=<criteria=float32[m],
                     monomials=float32[B]>>@CLIENTS,
             measurements=<train=<clients=int32, excluded=int32, examples=int32,
                                  loss_sum=float32, M>>@SERVER>)

    with M the model's metrics by name and, after `train`, the `client_learning_rate` if
    `client_rate`, a function of the round, is given. `train_pack(state, message, pack)`
    returns the `outputs()` of a `ClientMessage`; `metrics` aggregates its `metrics`. In
    a round that excludes all clients, the loss and the metrics are NaN.

    For simulation, `memory` holds arrays `[A, ...]`, one row per client with a memory,
    which the state then contains, too. `train_pack` also returns `memory`,
    `<rows=like memory, present=float32[A]>`: the new rows of the clients in the pack,
    zeros elsewhere, or other numbers that are summed over the packs. `after_round`
    computes the next state's memory from the memory before and these sums.

    With `codes_by_client`, the codes of the m criteria, the measurements also contain
    `criteria_by_client`, float32 [n, m], `excluded_by_client`, float32 [n], and
    `totals_by_code=<DS=float32, ...>`, the criteria's sums over the included clients.
    The first two come from `train_pack`, or are joined, with `sends_rows`, from a `row`
    per client, float32 [1, m + 1], in the order of the clients.
    """
    state = collections.OrderedDict(seed=np.int32(seed), round=np.int32(0))
    if memory is not None:
        state["memory"] = memory
    state_type = tff.types.tensorflow_to_type(
        tf.nest.map_structure(lambda a: tf.TensorSpec(a.shape, a.dtype), state)
    )

    @tff.tensorflow.computation
    def first_state():
        return tf.nest.map_structure(tf.constant, state)

    @tff.tensorflow.computation(state_type, message_type, data_type)
    def work(state, message, pack):
        return train_pack(state, message, pack)

    if metrics is not None:
        _check_not_measured(metrics)
    mask_empty_round = tff.tensorflow.computation(_nan_if_all_excluded)
    with_totals = tff.tensorflow.computation(
        lambda measurements: _with_totals(measurements, codes_by_client)
    )
    by_client = _build_rows(len(codes_by_client) + 1) if sends_rows else None

    @tff.tensorflow.computation(state_type)
    def advance(state):
        return collections.OrderedDict(state, round=state["round"] + 1)

    @tff.federated_computation
    def initialize():
        return tff.federated_eval(first_state, tff.SERVER)

    @tff.federated_computation(
        tff.FederatedType(state_type, tff.SERVER),
        tff.FederatedType(message_type, tff.CLIENTS),
        tff.FederatedType(data_type, tff.CLIENTS),
    )
    def next_fn(state, message, packs):
        outputs = tff.federated_map(
            work, (tff.federated_broadcast(state), message, packs)
        )
        measurements = tff.federated_sum(outputs["measurements"])
        if metrics is not None:
            measurements = _merge_measurements(
                measurements, metrics(outputs["metrics"])
            )
        if by_client is not None:
            measurements = _merge_measurements(measurements, by_client(outputs["row"]))
        if "excluded" in members_by_name(measurements):
            measurements = tff.federated_map(mask_empty_round, measurements)
        if codes_by_client:
            measurements = tff.federated_map(with_totals, measurements)
        if memory is not None:
            update_memory = tff.tensorflow.computation(
                lambda state, row_updates: collections.OrderedDict(
                    state, memory=after_round(state["memory"], row_updates)
                )
            )
            row_updates = tff.federated_sum(outputs["memory"])
            state = tff.federated_map(update_memory, (state, row_updates))
        # Under `train`, as in TFF's algorithms and as its programs expect.
        measurements = {"train": measurements}
        if client_rate is not None:
            rate = tff.tensorflow.computation(client_rate, np.int32)
            measurements["client_learning_rate"] = tff.federated_map(
                rate, state["round"]
            )
        return tff.templates.MeasuredProcessOutput(
            tff.federated_map(advance, state),
            outputs["result"],
            federated_struct(**measurements),
        )

    return tff.learning.templates.ClientWorkProcess(initialize, next_fn)


def _build_rows(size: int) -> Callable[[Any], Any]:
    """Builds the aggregation that concatenates the clients' rows, float32 [1, size]."""
    rows = tff.TensorType(np.float32, [None, size])

    @tff.tensorflow.computation
    def no_rows():
        return tf.zeros([0, size])

    @tff.tensorflow.computation(rows, rows)
    def join(first, second):
        return tf.concat([first, second], 0)

    @tff.tensorflow.computation(rows)
    def split_columns(joined_rows):
        return collections.OrderedDict(
            criteria_by_client=joined_rows[:, :-1],
            excluded_by_client=joined_rows[:, -1],
        )

    return lambda row: tff.federated_aggregate(
        row, no_rows(), join, join, split_columns
    )


def _check_not_measured(metrics: tff.Computation) -> None:
    """Raises a `ValueError` if a metric has the name of a measurement."""
    result = metrics.type_signature.result
    result = result.member if isinstance(result, tff.FederatedType) else result
    for name in tff.structure.name_list(result):
        if name in MEASURED:
            raise ValueError(_NAME_TAKEN.format(name=name))


def _merge_measurements(measurements: Any, metrics: Any) -> Any:
    """Merges measurements and metrics at the server; their names must differ."""
    measurements_by_name, theirs = (
        members_by_name(measurements),
        members_by_name(metrics),
    )
    for name in set(measurements_by_name) & set(theirs):
        raise ValueError(_NAME_TAKEN.format(name=name))
    return federated_struct(**measurements_by_name, **theirs)


def _nan_if_all_excluded(measurements: Any) -> collections.OrderedDict:
    """Returns the measurements; all floats are NaN if all clients are excluded."""
    all_excluded = tf.equal(measurements["clients"], measurements["excluded"])

    def mask(value):
        if not value.dtype.is_floating:
            return value
        return tf.where(all_excluded, tf.cast(np.nan, value.dtype), value)

    masked = tf.nest.map_structure(mask, measurements)
    masked.update((n, v) for n, v in measurements.items() if n in _BY_CLIENT)
    return masked


def _with_totals(measurements: Any, codes: Sequence[str]) -> collections.OrderedDict:
    """Adds the criteria's sums over the included clients, by code."""
    excluded = measurements["excluded_by_client"][:, tf.newaxis] > 0
    included_criteria = tf.where(excluded, 0.0, measurements["criteria_by_client"])
    totals = tf.unstack(tf.reduce_sum(included_criteria, axis=0), num=len(codes))
    name = "totals_by_code"
    if name in measurements:
        raise ValueError(_NAME_TAKEN.format(name=name))
    measurements = collections.OrderedDict(measurements)
    measurements[name] = collections.OrderedDict(zip(map(encode_name, codes), totals))
    return measurements


@without_autograph
def with_learning_rate(
    optimizer: tff.learning.optimizers.Optimizer, state: Any, rate: tf.Tensor | None
) -> Any:
    """Returns an optimizer's state with this learning rate; unchanged for None."""
    if rate is None:
        return state
    hparams = collections.OrderedDict(optimizer.get_hparams(state), learning_rate=rate)
    return optimizer.set_hparams(state, hparams)


@without_autograph
def with_proximal_term(
    gradients: Sequence[Any], weights: Sequence[Any], start: Sequence[Any], mu: float
) -> Sequence[Any]:
    """Adds FedProx's gradient `mu (w - w_start)`, that of mu/2 ||w - w_start||^2.

    *Federated Optimization in Heterogeneous Networks* (Li et al. 2020), eq. 2. Local
    weights, which follow the received ones, and weights without a gradient get no
    proximal term. With mu = 0 the gradients are returned unchanged.
    """
    if not mu:
        return gradients
    with_term = [
        # An embedding's gradient is `IndexedSlices`; the term is dense.
        g if g is None else tf.convert_to_tensor(g) + tf.cast(mu, w.dtype) * (w - w_0)
        for g, w, w_0 in zip(gradients, weights, start)
    ]
    return type(gradients)([*with_term, *gradients[len(with_term) :]])


@without_autograph
def with_correction(
    gradients: Sequence[Any], correction: Sequence[Any]
) -> Sequence[Any]:
    """Adds a vector to the gradients of the trainable weights without local ones.

    Nothing is added to weights that the loss does not depend on.
    """
    if not correction:
        return gradients
    corrected = [
        g if g is None else tf.convert_to_tensor(g) + vector
        for g, vector in zip(gradients, correction)
    ]
    return type(gradients)([*corrected, *gradients[len(corrected) :]])


def measure_contribution(
    criteria: Sequence[Criterion],
    plan: SumPlan,
    client: LocalClient,
    examples: tf.Tensor | int,
    number: tf.Tensor | None = None,
) -> Contribution:
    """Evaluates a client's criteria and computes its contribution, in its graph.

    `examples` is the client's number of examples, or of positions that count; `number`
    is its number in the federation. A negative criterion is an error in its code: it
    ends the round with a message that names the criterion.
    """
    # A declared range clips negative values; an error message would reveal the value.
    check_sign = plan.normalization.method != "range"
    values = [
        evaluate_criterion(c, client, check_sign=check_sign, number=number)
        for c in criteria
    ]
    raw = tf.stack(values)
    update = tf.nest.map_structure(
        tf.subtract,
        aggregated_weights(client.initial_weights),
        aggregated_weights(client.trained_weights),
    )
    return compute_contribution(plan, raw, update, examples)


def criteria_row(contribution: Contribution) -> tf.Tensor:
    """Returns a client's raw criteria, then 1 if it is excluded: float32 [1, m + 1]."""
    excluded = tf.cast(tf.logical_not(contribution.included), tf.float32)
    return tf.concat([contribution.raw, [excluded]], 0)[tf.newaxis]


@without_autograph
def cached_by_function(mean: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Caches the mean of each batch metric, so that the model runs once for each."""
    return without_autograph(functools.lru_cache(maxsize=None)(mean))


def evaluate_criterion(
    criterion: Criterion,
    client: LocalClient,
    *,
    check_sign: bool = True,
    number: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns a criterion's value as a float32 scalar.

    With `check_sign` a negative value raises an error when the graph runs. A value that
    is not a scalar, or has fewer than 32 bits, raises a `ValueError` while tracing.
    """
    measured = tf.convert_to_tensor(criterion.value(client))
    if measured.shape.rank not in (0, None) or measured.dtype.is_complex:
        raise ValueError(
            f"the criterion {criterion.code} must return one number per client, but "
            f"returns a tensor of shape {measured.shape}, {measured.dtype.name}"
        )
    if measured.dtype.size < 4 and not measured.dtype.is_bool:
        raise ValueError(
            f"the criterion {criterion.code} returns a number of type "
            f"{measured.dtype.name}, which {TOO_NARROW}"
        )
    value = tf.reshape(tf.cast(measured, tf.float32), [])
    if measured.dtype == tf.float64:  # NaN excludes the client; a 0 would include it.
        underflowed = tf.not_equal(measured, 0.0) & tf.equal(value, 0.0)
        value = tf.where(underflowed, np.nan, value)
    return check_not_negative(criterion.code, value, number) if check_sign else value
