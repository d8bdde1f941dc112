"""Online adjustment as one pure `tff.templates.IterativeProcess`."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any, Optional, Union

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff
from typing_extensions import Unpack

from tff_pmc import criteria as criteria_lib
from tff_pmc import search
from tff_pmc.aggregation import SumOptions
from tff_pmc.aggregation.sum_options import PLAIN_SUMS
from tff_pmc.aggregation.tff_utils import federated_struct
from tff_pmc.clients.training_options import (
    Training,
    TrainingOptions,
    takes_training,
)
from tff_pmc.processes.online_adjusted import (
    build_online_components,
    default_judge,
    finish_round,
)
from tff_pmc.processes.round_components import Model
from tff_pmc.scores import Score


@takes_training
def build_online_adjusted_iterative_process(
    model: Model,
    *,
    client_optimizer_fn: tff.learning.optimizers.Optimizer,
    server_optimizer_fn: Optional[tff.learning.optimizers.Optimizer] = None,
    priority: Optional[Sequence[str]] = None,
    candidates: Optional[Sequence[Score]] = None,
    first: Optional[Score] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    policy: str = "backtracking",
    judge: Optional[tff.Computation] = None,
    sums: SumOptions = PLAIN_SUMS,
    **training: Unpack[TrainingOptions],
) -> tff.templates.IterativeProcess:
    """Builds online adjustment as one pure process, in which the server chooses.

    With n candidates, `next` has the type

        (<OnlineState@SERVER, {<train=D*, test=J>}@CLIENTS>
         -> <state=OnlineState@SERVER,
             metrics=<client_work=..., aggregator=...,
                      finalizer=<update_rejected=int32>,
                      search=<correct=int32[n], chosen=int32>>@SERVER>)

    The state contains the current candidate and its model's number of correct examples,
    and every round chooses as `build_online_adjusted_fed_avg` does. It costs more: a
    federated computation cannot stop early, so all n models are computed, broadcast and
    judged in every round, even if backtracking would accept the first. A broadcast
    cannot depend on an aggregate in TFF's deployment forms, so the process compiles to
    none of them, and runs on one machine.

    The data of a client is a pair of a pack to train on, empty if its clients are not
    in the cohort, and a pack to judge on; see `pair_packs`.

    Arguments and errors are those of `build_online_adjusted_fed_avg`, except that
    `policy` cannot be `fixed`, and the judge must return one integer.
    """
    options = Training.from_options(training)
    if policy not in (policies := search.POLICIES[1:]):
        raise ValueError(f"policy must be one of {', '.join(policies)}; got {policy!r}")
    judge = judge or default_judge(model, None, sums)
    parts = build_online_components(
        model,
        options,
        client_optimizer=client_optimizer_fn,
        server_optimizer=server_optimizer_fn,
        priority=priority,
        candidates=candidates,
        first=first,
        criteria=criteria,
        sums=sums,
    )
    train, scores = parts.train, parts.candidates
    state_type = parts.initialize.type_signature.result
    trained_type = train.type_signature.result

    @tff.tensorflow.computation(state_type.member, trained_type.sums.member)
    def step_all(state, sums):
        learning = state.learning
        return tuple(
            parts.step(
                parts.basis.coefficients(score),
                sums,
                learning.finalizer,
                learning.global_model_weights,
            )
            for score in scores
        )

    without_sums = tff.to_type(
        collections.OrderedDict(
            (name, trained_type[name].member)
            for name in ("client_work", "aggregator", "metrics")
        )
    )

    @tff.tensorflow.computation(
        state_type.member,
        step_all.type_signature.result,
        tff.to_type((np.int32,) * len(scores)),
        without_sums,
    )
    def choose(state, server_outputs, correct, training_output):
        counts = tf.stack(correct)
        index = choose_index(policy, counts, state.index, state.correct)
        server_output = tf.switch_case(
            index, [lambda output=output: output for output in server_outputs]
        )
        next_state, metrics = finish_round(
            training_output, server_output, index, counts[index]
        )
        metrics["search"] = collections.OrderedDict(correct=counts, chosen=index)
        return next_state, metrics

    pair_type = tff.to_type(
        collections.OrderedDict(
            train=train.type_signature.parameter[1].member,
            test=judge.type_signature.parameter[1].member,
        )
    )

    @tff.federated_computation(state_type, tff.FederatedType(pair_type, tff.CLIENTS))
    def next_fn(state, pairs):
        training_output = train(state.learning, pairs.train)
        server_outputs = tff.federated_map(step_all, (state, training_output.sums))
        correct = tuple(
            judge(server_outputs[n].weights, pairs.test) for n in range(len(scores))
        )
        trained_without_sums = federated_struct(
            client_work=training_output.client_work,
            aggregator=training_output.aggregator,
            metrics=training_output.metrics,
        )
        next_state, metrics = tff.federated_map(
            choose,
            (state, server_outputs, tff.federated_zip(correct), trained_without_sums),
        )
        return tff.learning.templates.LearningProcessOutput(next_state, metrics)

    return tff.templates.IterativeProcess(parts.initialize, next_fn)


def choose_index(
    policy: str, counts: tf.Tensor, current_index: tf.Tensor, previous_count: tf.Tensor
) -> tf.Tensor:
    """Returns the index that `search.CandidateSearch` would choose, in TensorFlow.

    Args:
        policy: `backtracking` or `best_of_all`.
        counts: the number of correct examples of each candidate's model, int32 [n].
        current_index: the index of the current candidate, which is tested first.
        previous_count: the previous round's count; -1 before the first round.
    """
    indices = tf.range(tf.size(counts))
    # In the order of the tests; `tf.equal`, as `==` compares objects in TFF's graphs.
    order = tf.argsort(tf.where(tf.equal(indices, current_index), -1, indices))
    tested = tf.gather(counts, order)
    best = tf.argmax(tested, output_type=tf.int32)  # In a tie the first.
    if policy == "best_of_all":
        return order[best]
    is_enough = tested >= previous_count
    first = tf.argmax(tf.cast(is_enough, tf.int32), output_type=tf.int32)
    return order[tf.where(tf.reduce_any(is_enough), first, best)]


def pair_packs(
    train: Sequence[Any], test: Sequence[Any]
) -> list[collections.OrderedDict]:
    """Pairs packs of the cohort, to train on, with packs of examples, to judge on.

    Args:
        train: the packs of the round's cohort, made by `tff_pmc.pack`.
        test: the packs of all clients' examples to judge on, made by
            `evaluation_packs`.

    Returns:
        A list of `OrderedDict(train, test)`, as long as the longer of the two lists;
        empty packs fill the shorter.
    """
    count = max(len(train), len(test))
    no_clients = train[0].take(0)
    no_examples = collections.OrderedDict(
        (key, value[:0]) for key, value in test[0].items()
    )
    train = [*train, *[no_clients] * (count - len(train))]
    test = [*test, *[no_examples] * (count - len(test))]
    return [
        collections.OrderedDict(train=train_pack, test=test_pack)
        for train_pack, test_pack in zip(train, test)
    ]
