"""Online adjustment as one pure `tff.templates.IterativeProcess`."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc.aggregation.building import parts_of, zipped
from tff_pmc.clients.training_options import TrainingOptions
from tff_pmc.processes.online_parts import OnlineState, build_parts, default_judge
from tff_pmc.processes.round_parts import ModelFn
from tff_pmc.scores import Score


def build_online_adjusted_iterative_process(
    model_fn: ModelFn,
    *,
    priority: Optional[Sequence[str]] = None,
    candidates: Optional[Sequence[Score]] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    judge: Optional[tff.Computation] = None,
    two_stage: bool = False,
    **training_options: Any,
) -> tff.templates.IterativeProcess:
    """Builds `best_of_all` as one process that chooses at the server.

    With n candidates, `next` has the type

        (<OnlineState@SERVER, {<train=D*, test=J>}@CLIENTS>
         -> <state=OnlineState@SERVER,
             metrics=<client_work=..., aggregator=...,
                      finalizer=<update_rejected=int32>,
                      search=<correct=int32[n], chosen=int32>>@SERVER>)

    A pair is a pack to train on, which is empty where its clients are not in the
    round's cohort, and a pack to judge on; `pair_packs` makes such pairs. All n
    models travel to the clients in every round, after the sums have travelled to the
    server: so this runs on one machine, but compiles to no deployment form of TFF's,
    where a broadcast cannot depend on an aggregate.

    Args and errors are those of `build_online_adjusted_fed_avg`, but that there is no
    `policy`; the judge has to give one integer.
    """
    options = TrainingOptions(**training_options)
    judge = judge or default_judge(model_fn, None, options.sums)
    parts = build_parts(
        model_fn, priority, candidates, criteria, options, two_stage=two_stage
    )
    basis = parts.round_parts.plan.basis
    train, scores = parts.train, parts.candidates
    state_type = parts.initialize.type_signature.result
    trained_type = train.type_signature.result

    @tff.tensorflow.computation(state_type.member, trained_type.sums.member)
    def step_all(state, sums):
        learning = state.learning
        return tuple(
            parts.step(
                basis.coefficients(score),
                sums,
                learning.finalizer,
                learning.global_model_weights,
            )
            for score in scores
        )

    @tff.tensorflow.computation(
        state_type.member,
        step_all.type_signature.result,
        tff.to_type((np.int32,) * len(scores)),
        trained_type.client_work.member,
        trained_type.aggregator.member,
    )
    def choose(state, stepped, correct, client_work, sums_state):
        counts = tf.stack(correct)
        # Of equals the one in force, which a search tests first, then the first.
        in_force = tf.one_hot(state.index, len(scores), dtype=tf.int32)
        chosen = tf.argmax(2 * counts + in_force, output_type=tf.int32)
        model = tf.switch_case(chosen, [lambda one=one: one for one in stepped])
        learning = tff.learning.templates.LearningAlgorithmState(
            model["weights"], (), client_work, sums_state, model["optimizer"]
        )
        searched = collections.OrderedDict(correct=counts, chosen=chosen)
        rejected = collections.OrderedDict(update_rejected=model["update_rejected"])
        return OnlineState(learning, chosen, counts[chosen]), searched, rejected

    pair_type = tff.to_type(
        collections.OrderedDict(
            train=train.type_signature.parameter[1].member,
            test=judge.type_signature.parameter[1].member,
        )
    )

    @tff.federated_computation(state_type, tff.FederatedType(pair_type, tff.CLIENTS))
    def next_fn(state, pairs):
        trained = train(state.learning, pairs.train)
        stepped = tff.federated_map(step_all, (state, trained.sums))
        correct = tuple(
            judge(stepped[n].weights, pairs.test) for n in range(len(scores))
        )
        next_state, searched, rejected = tff.federated_map(
            choose,
            (
                state,
                stepped,
                tff.federated_zip(correct),
                trained.client_work,
                trained.aggregator,
            ),
        )
        metrics = zipped(
            **parts_of(trained.metrics), finalizer=rejected, search=searched
        )
        return tff.learning.templates.LearningProcessOutput(next_state, metrics)

    return tff.templates.IterativeProcess(parts.initialize, next_fn)


def pair_packs(
    train: Sequence[Any], test: Sequence[Any]
) -> list[collections.OrderedDict]:
    """Pairs training packs with packs of examples to judge on.

    Args:
        train: the cohort, of `clients.packing.pack`.
        test: all clients' examples, of `evaluation_packs`.

    Returns:
        As many `OrderedDict(train, test)` as the longer of the two has packs; the
        other's are filled up with empty ones.
    """
    count = max(len(train), len(test))
    no_clients = train[0].take(0)
    no_examples = collections.OrderedDict(
        (key, value[:0]) for key, value in test[0].items()
    )
    train = [*train, *[no_clients] * (count - len(train))]
    test = [*test, *[no_examples] * (count - len(test))]
    return [
        collections.OrderedDict(train=one, test=other)
        for one, other in zip(train, test)
    ]
