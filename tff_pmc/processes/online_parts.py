"""The parts of both forms of online adjustment: train, step, initial state."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, Callable, NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc import search
from tff_pmc.aggregation import SumOptions, combine
from tff_pmc.aggregation.building import zipped
from tff_pmc.clients.training_options import TrainingOptions
from tff_pmc.processes import arguments
from tff_pmc.processes.evaluation import build_correct_counts
from tff_pmc.processes.round_parts import (
    ModelFn,
    RoundParts,
    apply_update,
    build_optimizer_initializer,
    build_round_parts,
)
from tff_pmc.scores import Basis, Score, prioritized


class OnlineState(NamedTuple):
    """The state between two rounds, in either form of online adjustment.

    Attributes:
        learning: a `tff.learning.templates.LearningAlgorithmState`: the model, and
            the states of client work, sums and server optimizer.
        index: the index of the candidate in force in the list of candidates, int32.
        correct: the number of examples that the model got right when it was chosen,
            int32; -1 before the first round.
    """

    learning: Any
    index: Any
    correct: Any


class OnlineParts(NamedTuple):
    """The parts of which either form of online adjustment is composed."""

    candidates: tuple[Score, ...]  # In the order of testing.
    first: int  # The index of the candidate in force in the first round.
    round_parts: RoundParts
    initialize: tff.Computation  # ( -> OnlineState@SERVER)
    train: tff.Computation  # See `build_train`.
    step: Callable[..., collections.OrderedDict]  # See `build_step`.


def build_parts(
    model_fn: ModelFn,
    priority: Optional[Sequence[str]],
    candidates: Optional[Sequence[Score]],
    criteria: Sequence[Union[str, criteria_lib.Criterion]],
    options: TrainingOptions,
    *,
    first: Optional[Score] = None,
    others: Sequence[Score] = (),
    two_stage: bool,
) -> OnlineParts:
    """Checks and builds the parts; args are of `build_online_adjusted_fed_avg`."""
    found = criteria_lib.resolve(criteria)
    codes = [criterion.code for criterion in found]
    index = 0
    if candidates is None:
        in_force = arguments.resolve_score(priority, None, codes)
        names = [codes[column] for column in sorted(in_force.columns)]
        candidates = [prioritized(order, codes) for order in search.orderings(names)]
        index = [score.columns for score in candidates].index(in_force.columns)
    elif priority is not None:
        raise ValueError("give either priority or candidates, not both")
    elif not candidates:
        raise ValueError("there are no candidates to search")
    elif first is not None:
        if first not in candidates:
            raise ValueError(f"the score {first.label!r} is not among the candidates")
        index = list(candidates).index(first)
    basis = Basis.of(len(found), [*candidates, *others])
    parts = build_round_parts(model_fn, found, basis, options, two_stage=two_stage)
    initialize = _build_initialize(parts, index)
    train = build_train(parts, initialize.type_signature.result.member)
    step = build_step(parts)
    return OnlineParts(tuple(candidates), index, parts, initialize, train, step)


def build_train(parts: RoundParts, state_type: tff.Type) -> tff.Computation:
    """Builds the training of one cohort, whose result is the sums.

    (<LearningAlgorithmState@SERVER, {D*}@CLIENTS>
     -> <client_work=..., aggregator=...,
         sums=<models=W*B, scales=float32[m], monomials=float32[B]>,
         metrics=<client_work=..., aggregator=...>>@SERVER)
    """
    sums = parts.sums
    data_type = parts.client_work.next.type_signature.parameter[2]

    @tff.federated_computation(
        tff.FederatedType(state_type.learning, tff.SERVER), data_type
    )
    def train(state, clients):
        received = tff.federated_broadcast(state.global_model_weights)
        work = parts.client_work.next(state.client_work, received, clients)
        found = sums.next(
            state.aggregator, work.result.update, work.result.update_weight
        )
        return collections.OrderedDict(
            client_work=work.state,
            aggregator=found.state,
            sums=found.result,
            metrics=zipped(
                client_work=work.measurements, aggregator=found.measurements
            ),
        )

    return train


def build_step(parts: RoundParts) -> Callable[..., collections.OrderedDict]:
    """Builds the server's step to one candidate's model, a `tf.function`.

    Its arguments are the candidate's coefficients `a_S`, float32 [B], the sums, the
    optimizer's state and the weights; its result the same weights and state after the
    step, `update_rejected`, and `score`, the sum of the clients' scores.
    """
    basis = parts.plan.basis

    @tf.function
    def step(coefficients, sums, optimizer_state, weights):
        update, score = combine(
            basis, coefficients, sums["scales"], sums["monomials"], sums["models"]
        )
        optimizer_state, weights, rejected = apply_update(
            parts.server_optimizer, optimizer_state, weights, update
        )
        return collections.OrderedDict(
            weights=weights,
            optimizer=optimizer_state,
            update_rejected=rejected,
            score=score,
        )

    return step


def default_judge(
    model_fn: Any, num_clients: Optional[int], sums: SumOptions, *, secure: bool = False
) -> tff.Computation:
    """An evaluation, by client or of all, which needs a functional model.

    Its counts are exact, so that it is refused beside hidden sums; beside secure ones
    it may be `secure` itself, if it counts for all together.
    """
    secure &= list(sums.hiding) == ["scalar_sum_factory"] and num_clients is None
    for name in () if secure else sums.hiding:
        raise ValueError(
            f"{name} would hide the sums of training, while the default judge "
            "returns exact counts of correct examples: give a judge of your own"
        )
    if not isinstance(model_fn, tff.learning.models.FunctionalModel):
        raise ValueError(
            "a model_fn needs a judge of its own: a computation (<W@SERVER, "
            "data@CLIENTS> -> int32@SERVER) of how many examples a model gets right"
        )
    return build_correct_counts(model_fn, num_clients, secure=secure)


def _build_initialize(parts: RoundParts, first: int) -> tff.Computation:
    optimizer = build_optimizer_initializer(parts.server_optimizer, parts.weights_type)

    @tff.federated_computation
    def initialize():
        learning = tff.learning.templates.LearningAlgorithmState(
            global_model_weights=tff.federated_eval(parts.initial_weights, tff.SERVER),
            distributor=tff.federated_value((), tff.SERVER),
            client_work=parts.client_work.initialize(),
            aggregator=parts.sums.initialize(),
            finalizer=tff.federated_eval(optimizer, tff.SERVER),
        )
        search_state = (
            tff.federated_value(np.int32(value), tff.SERVER) for value in (first, -1)
        )
        return tff.federated_zip(
            OnlineState(tff.federated_zip(learning), *search_state)
        )

    return initialize
