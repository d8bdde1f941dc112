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
    averaged,
    check_not_negative,
    contribution_of,
)
from tff_pmc.aggregation.sum_options import SumPlan
from tff_pmc.aggregation.tff_utils import parts_of, without_autograph, zipped
from tff_pmc.criteria import Criterion, LocalClient
from tff_pmc.scores.basis import encode_name

TOO_NARROW = (
    "cannot hold large numbers: cast to tf.float32 first, as in "
    "tf.reduce_sum(tf.cast(client.x, tf.float32))"
)

_TAKEN = (
    "the model's metric {name!r} has the name of a measurement of the round: give it "
    "another name"
)

_BY_CLIENT = ("criteria_by_client", "excluded_by_client")
MEASURED = (*MEASUREMENTS, *_BY_CLIENT)
"""What a round measures, by names that no metric of a model may have."""


def build_client_work(
    received_type: tff.Type,
    data_type: tff.Type,
    train_pack: Callable[[Any, Any, Any], collections.OrderedDict],
    *,
    seed: int,
    memory: Optional[Any] = None,
    settled: Callable[[Any], Any] = lambda rows: rows,
    metrics: Optional[tff.Computation] = None,
    client_rate: Optional[Callable[[Any], Any]] = None,
    codes_by_client: Sequence[str] = (),
    sends_rows: bool = False,
) -> tff.learning.templates.ClientWorkProcess:
    """Builds the client work around a function that trains one pack.

    With `R` what clients receive (the type `W` of the model's weights, or what holds
    it) and `W*B` a tuple of B of them, the `next` of the result has the type

        (<state=<seed=int32,round=int32>@SERVER, R@CLIENTS, data_type@CLIENTS>
         -> <state@SERVER,
             result=<update=W*B, update_weight=<criteria=float32[m],
                     monomials=float32[B]>>@CLIENTS,
             measurements=<train=<clients=int32, excluded=int32, examples=int32,
                                  loss_sum=float32, M>>@SERVER>)

    with M the model's metrics by name, and after `train` the `client_learning_rate`
    where `client_rate` gives the rate of a round. `train_pack` returns the `outputs` of
    a `ClientMessage`, whose `metrics` are aggregated by `metrics`.
    Loss and metrics of a round in which no client counts are NaN. For simulation,
    `memory` has arrays `[A, ...]`, one row for each client that remembers. The state
    then also has them, and `train_pack` gives `memory`, `<rows=like memory,
    present=float32[A]>`: the rows, zeros elsewhere, of the clients in the pack. Of the
    rows after a round `settled` makes those of the state.

    With `codes_by_client`, those of the m criteria, the measurements have
    `criteria_by_client`, float32 [n, m], and `excluded_by_client`, float32 [n], and
    `totals_by_code=<DS=float32, ...>`, their sums over the clients that are not
    excluded. If `train_pack` does not measure the two, it `sends_rows`: a `row`,
    float32 [1, m + 1], which are then joined in the order of the clients.
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

    @tff.tensorflow.computation(state_type, received_type, data_type)
    def work(state, received, pack):
        return train_pack(state, received, pack)

    if metrics is not None:
        _check_not_measured(metrics)
    checked = tff.tensorflow.computation(_nan_of_nobody)
    with_totals = tff.tensorflow.computation(
        lambda measured: _with_totals(measured, codes_by_client)
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
        tff.FederatedType(received_type, tff.CLIENTS),
        tff.FederatedType(data_type, tff.CLIENTS),
    )
    def next_fn(state, received, packs):
        outputs = tff.federated_map(
            work, (tff.federated_broadcast(state), received, packs)
        )
        measured = tff.federated_sum(outputs["measurements"])
        if metrics is not None:
            measured = _joined(measured, metrics(outputs["metrics"]))
        if by_client is not None:
            measured = _joined(measured, by_client(outputs["row"]))
        if "excluded" in parts_of(measured):
            measured = tff.federated_map(checked, measured)
        if codes_by_client:
            measured = tff.federated_map(with_totals, measured)
        if memory is not None:
            recalled = tff.tensorflow.computation(
                lambda state, found: _recall(state, found, settled)
            )
            found = tff.federated_sum(outputs["memory"])
            state = tff.federated_map(recalled, (state, found))
        # Under `train`, as in TFF's algorithms and as its programs expect.
        measured = {"train": measured}
        if client_rate is not None:
            rate = tff.tensorflow.computation(client_rate, np.int32)
            measured["client_learning_rate"] = tff.federated_map(rate, state["round"])
        return tff.templates.MeasuredProcessOutput(
            tff.federated_map(advance, state),
            outputs["result"],
            zipped(**measured),
        )

    return tff.learning.templates.ClientWorkProcess(initialize, next_fn)


def _build_rows(size: int) -> Callable[[Any], Any]:
    """Builds what lays the clients' rows, float32 [1, size], one under the other."""
    rows = tff.TensorType(np.float32, [None, size])

    @tff.tensorflow.computation
    def nothing():
        return tf.zeros([0, size])

    @tff.tensorflow.computation(rows, rows)
    def join(first, second):
        return tf.concat([first, second], 0)

    @tff.tensorflow.computation(rows)
    def named(found):
        return collections.OrderedDict(
            criteria_by_client=found[:, :-1], excluded_by_client=found[:, -1]
        )

    return lambda row: tff.federated_aggregate(row, nothing(), join, join, named)


def _check_not_measured(metrics: tff.Computation) -> None:
    """Refuses metrics of a model with the name of a measurement, as a `ValueError`."""
    result = metrics.type_signature.result
    result = result.member if isinstance(result, tff.FederatedType) else result
    for name in tff.structure.name_list(result):
        if name in MEASURED:
            raise ValueError(
                f"the model's metric {name!r} has the name of a measurement of the "
                "round: give it another name"
            )


def _joined(measured: Any, metrics: Any) -> Any:
    """Joins measurements and metrics at the server, whose names must differ."""
    ours, theirs = parts_of(measured), parts_of(metrics)
    for name in set(ours) & set(theirs):
        raise ValueError(_TAKEN.format(name=name))
    return zipped(**ours, **theirs)


def _nan_of_nobody(measured: Any) -> collections.OrderedDict:
    """Returns the measurements; loss and metrics are NaN where all were left out."""
    nobody = tf.equal(measured["clients"], measured["excluded"])

    def checked(value):
        if not value.dtype.is_floating:
            return value
        return tf.where(nobody, tf.cast(np.nan, value.dtype), value)

    found = tf.nest.map_structure(checked, measured)
    found.update((n, v) for n, v in measured.items() if n in _BY_CLIENT)
    return found


def _with_totals(measured: Any, codes: Sequence[str]) -> collections.OrderedDict:
    """Returns the measurements with the sums of the clients' criteria by code."""
    excluded = measured["excluded_by_client"][:, tf.newaxis] > 0
    included = tf.where(excluded, 0.0, measured["criteria_by_client"])
    totals = tf.unstack(tf.reduce_sum(included, axis=0), num=len(codes))
    name = "totals_by_code"
    if name in measured:
        raise ValueError(_TAKEN.format(name=name))
    measured = collections.OrderedDict(measured)
    measured[name] = collections.OrderedDict(zip(map(encode_name, codes), totals))
    return measured


def _recall(
    state: Any, found: Any, settled: Callable[[Any], Any]
) -> collections.OrderedDict:
    """Returns the state with the memory of the clients that are present."""
    present = found["present"] > 0

    def choose(new, old):
        of_row = tf.reshape(present, [-1] + [1] * (len(new.shape) - 1))
        return tf.where(of_row, tf.cast(new, old.dtype), old)

    rows = tf.nest.map_structure(choose, found["rows"], state["memory"])
    return collections.OrderedDict(state, memory=settled(rows))


@without_autograph
def with_learning_rate(
    optimizer: tff.learning.optimizers.Optimizer, state: Any, rate: tf.Tensor | None
) -> Any:
    """Returns an optimizer's state with another learning rate; as it is for None."""
    if rate is None:
        return state
    hparams = collections.OrderedDict(optimizer.get_hparams(state), learning_rate=rate)
    return optimizer.set_hparams(state, hparams)


@without_autograph
def with_proximal_term(
    gradients: Sequence[Any], weights: Sequence[Any], start: Sequence[Any], mu: float
) -> Sequence[Any]:
    """Adds FedProx's gradient `mu (w - w_start)`, that of mu/2 ||w - w_start||^2.

    *Federated Optimization in Heterogeneous Networks* (Li et al. 2020), eq. 2. Weights
    beyond those of the start are local ones, to which nothing is added, and neither is
    to those that the loss does not depend on. With mu = 0 nothing is computed.
    """
    if not mu:
        return gradients
    added = [
        # Indexed slices, an embedding's gradient, are made whole: the term is dense.
        g if g is None else tf.convert_to_tensor(g) + tf.cast(mu, w.dtype) * (w - w_0)
        for g, w, w_0 in zip(gradients, weights, start)
    ]
    return type(gradients)([*added, *gradients[len(added) :]])


def measure_contribution(
    criteria: Sequence[Criterion],
    plan: SumPlan,
    client: LocalClient,
    examples: tf.Tensor | int,
    number: tf.Tensor | None = None,
) -> Contribution:
    """Measures a client of so many examples, inside its TensorFlow graph.

    A negative criterion is an error in its code and ends the round, by name.
    """
    # A declared range cuts what is below it; an error would show the value.
    checked = plan.normalization.method != "range"
    values = [raw_value(c, client, checked=checked, number=number) for c in criteria]
    raw = tf.stack(values)
    update = tf.nest.map_structure(
        tf.subtract, averaged(client.initial_weights), averaged(client.trained_weights)
    )
    return contribution_of(plan, raw, update, examples)


def row_of(contribution: Contribution) -> tf.Tensor:
    """Returns a client's raw criteria and, last, 1 if it is left out: [1, m + 1]."""
    left_out = tf.cast(tf.logical_not(contribution.included), tf.float32)
    return tf.concat([contribution.raw, [left_out]], 0)[tf.newaxis]


@without_autograph
def once_each(mean: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wraps a client's `mean_on_received` to run the model once for each function."""
    return without_autograph(functools.lru_cache(maxsize=None)(mean))


def raw_value(
    criterion: Criterion,
    client: LocalClient,
    *,
    checked: bool = True,
    number: tf.Tensor | None = None,
) -> tf.Tensor:
    """Returns a criterion's value as a float32 scalar.

    With `checked` a negative one is an error in the graph. While it is traced, a
    criterion that gives no scalar, or one of less than 32 bits, is a `ValueError`.
    """
    given = tf.convert_to_tensor(criterion.value(client))
    if given.shape.rank not in (0, None) or given.dtype.is_complex:
        raise ValueError(
            f"the criterion {criterion.code} must give one number per client, but "
            f"gives a tensor of the shape {given.shape}, {given.dtype.name}"
        )
    if given.dtype.size < 4 and not given.dtype.is_bool:
        raise ValueError(
            f"the criterion {criterion.code} gives a number of type "
            f"{given.dtype.name}, which {TOO_NARROW}"
        )
    value = tf.reshape(tf.cast(given, tf.float32), [])
    if given.dtype == tf.float64:  # What vanishes is no 0: the client is left out.
        vanishes = tf.not_equal(given, 0.0) & tf.equal(value, 0.0)
        value = tf.where(vanishes, np.nan, value)
    return check_not_negative(criterion.code, value, number) if checked else value
