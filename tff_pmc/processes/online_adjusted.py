"""Federated averaging whose ordering is adjusted online (DA, Algorithm 1).

One round:

    the cohort trains once -> sums over the whole basis come back once
    -> a candidate's model is a linear combination of them
    -> all clients judge it -> the search chooses it or names the next candidate

Here training and judging are two federated computations, with the search between
them: no more candidates are tested than must be. `online_iterative` is the same as
one pure process.
"""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

import numpy as np
import tensorflow_federated as tff

from tff_pmc import criteria as criteria_lib
from tff_pmc import search
from tff_pmc.clients.training_options import TrainingOptions
from tff_pmc.processes.online_parts import (
    OnlineParts,
    OnlineState,
    build_parts,
    default_judge,
)
from tff_pmc.processes.round_parts import ModelFn
from tff_pmc.runtime import lost_rounds
from tff_pmc.scores import Score


class OnlineOutput(NamedTuple):
    """The result of a round.

    Attributes:
        state: the `OnlineState` after the round.
        metrics: `<client_work, aggregator, finalizer>` as of
            `build_prioritized_fed_avg`, of the chosen model.
        trials: the candidates tested, in order.
        counts: the judge's counts for the chosen model.
        train_seconds: the seconds that the training took; the rest went into testing.
    """

    state: OnlineState
    metrics: collections.OrderedDict
    trials: list[search.Trial]
    counts: np.ndarray
    train_seconds: float = 0.0


@dataclasses.dataclass(frozen=True)
class OnlineAdjustedFedAvg:
    """Online adjustment by two federated computations, train and judge, and a search.

    Attributes:
        parts: the candidates, and the parts that the round is made of.
        policy: one of `search.POLICIES`.
        judge: `(<W@SERVER, J@CLIENTS> -> int32@SERVER)`: examples that a model gets
            right, in all or for each client.
    """

    parts: OnlineParts
    policy: str
    judge: tff.Computation

    @property
    def candidates(self) -> tuple[Score, ...]:
        """The scores that are searched, in the order of testing."""
        return self.parts.candidates

    def initialize(self) -> OnlineState:
        """The state before the first round."""
        return self.parts.initialize()

    def next(
        self, state: OnlineState, clients: Sequence[Any], judges: Sequence[Any]
    ) -> OnlineOutput:
        """Runs one round: the cohort trains once, then candidates are tested.

        Args:
            state: the state after the round before.
            clients: the cohort's data, as of `build_prioritized_fed_avg`.
            judges: all clients' data, as the judge takes it.

        Raises:
            ValueError: a federated judge is given no data.
        """
        self.check_judges(judges)
        start = time.perf_counter()
        trained = self.parts.train(state.learning, clients)
        train_seconds = time.perf_counter() - start
        return self.choose(state, trained, judges)._replace(train_seconds=train_seconds)

    def choose(
        self, state: OnlineState, trained: Any, judges: Sequence[Any]
    ) -> OnlineOutput:
        """Tests candidates on what `parts.train` gave, the second part of `next`."""
        # Of a state of another process the search goes on; a fixed candidate does not.
        index = self.parts.first if self.policy == "fixed" else int(state.index)
        before = search.SearchState(index, int(state.correct))
        trials = search.Trials(self.policy, len(self.candidates), before)
        tested = None
        while trials.next is not None:
            index = trials.next
            stepped = self.step(state, trained, self.candidates[index])
            counts = self.correct(stepped["weights"], judges)
            trials.report(int(counts.sum()))
            # The models of the others need not stay in memory.
            if trials.best.index == index:
                tested = stepped, counts
        chosen, counts = tested
        found = trials.result()
        learning = tff.learning.templates.LearningAlgorithmState(
            global_model_weights=chosen["weights"],
            distributor=(),
            client_work=trained["client_work"],
            aggregator=trained["aggregator"],
            finalizer=chosen["optimizer"],
        )
        metrics = collections.OrderedDict(
            client_work=trained["metrics"]["client_work"],
            aggregator=collections.OrderedDict(
                trained["metrics"]["aggregator"], score=chosen["score"]
            ),
            finalizer=collections.OrderedDict(
                update_rejected=chosen["update_rejected"]
            ),
        )
        lost_rounds.warn(self.parts.train, metrics)
        next_state = OnlineState(
            learning, np.int32(found.index), np.int32(found.correct)
        )
        return OnlineOutput(next_state, metrics, trials.tried, counts)

    def get_model_weights(self, state: OnlineState) -> Any:
        """The model of a state, a `tff.learning.models.ModelWeights`."""
        return state.learning.global_model_weights

    def set_model_weights(self, state: OnlineState, weights: Any) -> OnlineState:
        """Returns the state with another model, as of a `LearningProcess` of TFF's."""
        type_ = self.parts.round_parts.weights_type
        made = tff.tensorflow.computation(lambda given: given, type_)(weights)
        learning = state.learning._replace(global_model_weights=made)
        return state._replace(learning=learning)

    def check_judges(self, judges: Sequence[Any]) -> None:
        """Raises a `ValueError` where a federated judge is given no data."""
        if isinstance(self.judge, tff.Computation) and not judges:
            raise ValueError("judges is empty: there is nothing to judge candidates on")

    def correct(self, weights: Any, judges: Sequence[Any]) -> np.ndarray:
        """What the judge finds that a model gets right: int64 [], or [K] by client."""
        return np.asarray(self.judge(weights, judges), np.int64)

    def step(
        self,
        state: OnlineState,
        trained: Any,
        score: Score,
        rate: Optional[float] = None,
    ) -> Any:
        """The server's step with one score, for which no client does anything.

        `trained` is what `parts.train` gave, and `rate` another learning rate of the
        server. A `ValueError` says that the sums do not cover the score, or that the
        server's optimizer has no learning rate.
        """
        optimizer = self.parts.round_parts.server_optimizer
        optimizer_state = state.learning.finalizer
        if rate is not None:
            settings = optimizer.get_hparams(optimizer_state)
            if "learning_rate" not in settings:
                raise ValueError(
                    "the server's optimizer has no learning rate to change"
                )
            settings["learning_rate"] = np.float32(rate)
            optimizer_state = optimizer.set_hparams(optimizer_state, settings)
        return self.parts.step(
            self.parts.round_parts.plan.basis.coefficients(score),
            trained["sums"],
            optimizer_state,
            # In a state that was put together the arrays may be in lists.
            tff.learning.models.ModelWeights(
                tuple(state.learning.global_model_weights.trainable),
                tuple(state.learning.global_model_weights.non_trainable),
            ),
        )


def build_online_adjusted_fed_avg(
    model_fn: ModelFn,
    *,
    priority: Optional[Sequence[str]] = None,
    candidates: Optional[Sequence[Score]] = None,
    first: Optional[Score] = None,
    criteria: Sequence[Union[str, criteria_lib.Criterion]] = ("DS", "LD", "MD"),
    policy: str = "backtracking",
    judge: Optional[tff.Computation] = None,
    num_clients: Optional[int] = None,
    others: Sequence[Score] = (),
    two_stage: bool = False,
    **training_options: Any,
) -> OnlineAdjustedFedAvg:
    """Builds online adjustment as train, judge and a search between them.

    Args:
        model_fn: as of `build_prioritized_fed_avg`.
        priority: the ordering in force in the first round. The candidates are all
            orderings of the same criteria, tested in the order of
            `search.orderings`. Default: the declared criteria, in their order.
        candidates: scores to search in the place of orderings.
        first: the candidate in force in the first round; by default the first.
        criteria: the criteria the clients measure, codes or `Criterion`s.
        policy: `backtracking` (the paper's), `best_of_all` or `fixed`; see
            `search.POLICIES`.
        judge: `(<W@SERVER, J@CLIENTS> -> int32@SERVER)`, how many examples a model
            gets right, for whatever data J. By default
            `build_federated_evaluation`, which needs a functional model.
        num_clients: the number of clients in the federation, K, for each of which the
            default judge then counts; by default it counts for all together, with a
            `scalar_sum_factory` by a secure sum.
        others: scores that are not searched, and whose models follow from the sums,
            too; see `counterfactuals`.
        two_stage: whether the sums are made as `build_two_stage_fed_avg` makes them,
            which OWA and Choquet need without declared ranges.
        **training_options: the attributes of `TrainingOptions`.

    Returns:
        An `OnlineAdjustedFedAvg`: `initialize()`, `next(state, clients, judges)`,
        `get_model_weights(state)`, `set_model_weights(state, weights)`.

    Raises:
        ValueError: as `build_prioritized_fed_avg`; an unknown policy; more than
            `search.MAX_CRITERIA` criteria to order; sums that hide what clients
            send, without a judge that keeps to them: the default one returns exact
            counts, and a secure sum for all together only.

    Example:
        >>> online = build_online_adjusted_fed_avg(
        ...     models.femnist_cnn(),
        ...     priority=("MD", "DS", "LD"),
        ...     client_optimizer_fn=tff.learning.optimizers.build_sgdm(0.01),
        ...     batch_size=10,
        ... )
        >>> tests = evaluation_packs(data.test_examples)
        >>> output = online.next(online.initialize(), clients, tests)
    """
    try:
        search.check_policy(policy)
    except ValueError as error:
        raise ValueError(f"policy {error}") from error
    options = TrainingOptions(**training_options)
    judge = judge or default_judge(model_fn, num_clients, options.sums, secure=True)
    searched = priority, candidates, criteria
    more = dict(first=first, others=others, two_stage=two_stage)
    parts = build_parts(model_fn, *searched, options, **more)
    return OnlineAdjustedFedAvg(parts, policy, judge)
