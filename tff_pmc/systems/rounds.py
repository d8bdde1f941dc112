"""The runners of a system's rounds, with a fixed score or a search in each round."""

from __future__ import annotations

import abc
import dataclasses
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

import leaf_data
from tff_pmc.scores import Basis, Score
from tff_pmc.systems.setup import Setup, drawn_clients

if TYPE_CHECKING:
    from tff_pmc.processes.counterfactuals import Counterfactual


class Tested(NamedTuple):
    """A candidate that was tested."""

    label: str  # Of its score.
    correct: int  # The judged examples that its model got right.
    examples: int  # The judged examples.
    chosen: bool  # Whether its model is the round's result.


class Round(NamedTuple):
    """The result of a round."""

    state: Any  # Of the process, for the next round and the checkpoint.
    metrics: Any  # `<client_work, aggregator, finalizer>`.
    in_force: Score  # Whose model is the round's result.
    tested: tuple[Tested, ...] = ()  # In order.
    # The correct examples of each client, where the judge counted them on the clients'
    # test sets.
    counts: Optional[npt.NDArray[np.int64]] = None
    train_seconds: Optional[float] = None  # Of training alone, where there was more.
    counterfactuals: Sequence[Counterfactual] = ()  # In order.
    judged: Optional[leaf_data.Examples] = None  # What these were judged on.


class Rounds(abc.ABC):
    """The rounds of a process, one after another."""

    num_judges = 0  # The number of clients that judge each candidate.

    def __init__(
        self, setup: Setup, process: Any, train: Any, num_sums: Optional[int] = None
    ) -> None:
        """Takes a process, and its computation of one round's training.

        `num_sums` is how many sums the rounds need, where more are made.
        """
        from tff_pmc.clients.model_metrics import OwnMetrics
        from tff_pmc.processes.communication import traffic
        from tff_pmc.runtime import lost_rounds

        lost_rounds.leave_to_caller(train)
        self._process = process
        self.initialize = process.initialize
        self.get_model_weights = process.get_model_weights
        signature = train.type_signature
        state = signature.parameter[0].member
        self.traffic = traffic(
            state.global_model_weights,
            state.client_work,
            signature.result.metrics.member,
            normalization=setup.settings.aggregation.normalization,
            two_stage=setup.settings.two_stage,
            own_metrics=OwnMetrics.of(setup.model).specs,
            num_sums=num_sums,
        )

    @abc.abstractmethod
    def next(self, state: Any, packs: Any) -> Round:
        """Runs one round with a cohort's packs."""


class FixedRounds(Rounds):
    """The rounds of a `tff.learning.templates.LearningProcess` that tests nothing."""

    def __init__(self, setup: Setup, process: Any, score: Score) -> None:
        super().__init__(setup, process, process.next)
        self._score = score

    def next(self, state: Any, packs: Any) -> Round:
        """Runs one round, with the score in force."""
        output = self._process.next(state, packs)
        return Round(output.state, output.metrics, self._score)


class SearchRounds(Rounds):
    """The rounds of `processes.OnlineAdjustedFedAvg`, with or without a search.

    Without one its policy is `fixed`, and only what is asked for beside is judged.
    """

    def __init__(self, setup: Setup, online: Any, beside: Sequence[Score] = ()) -> None:
        """Takes the process, and the scores that are judged beside."""
        from tff_pmc.processes import evaluation_packs

        settings, judged = setup.settings, setup.judged
        needed = Basis.of(len(setup.criteria), online.candidates)
        super().__init__(setup, online, online.parts.train, len(needed))
        self._searches = settings.adjustment.searches
        self._chooser = online
        if not self._searches:
            self._chooser = dataclasses.replace(online, judge=lambda *unused: 0)
        judge_on, num_packs = settings.adjustment.judge_on, settings.training.num_packs
        self._tests = judge_on == "test"
        self._num_examples = judged.num_examples
        self._plan, self._beside = settings.counterfactual, beside
        own = settings.training.server_learning_rate
        # The run's own first: the others are held against it.
        self._rates = [None, *(rate for rate in self._plan.rates if rate != own)]
        self._beside_examples = judged
        self._judged_packs: list[Any] = []
        if judge_on == "server":
            self._beside_packs = self._judged_packs
            return
        self._judged_packs = evaluation_packs(judged, num_packs=num_packs)
        if self._searches:
            self.num_judges = int((judged.sizes > 0).sum())
        drawn = drawn_clients(judged, self._plan.clients)
        self._beside_packs = self._judged_packs
        if len(drawn) < judged.num_clients:
            self._beside_examples = judged.subset(drawn)
            self._beside_packs = evaluation_packs(
                self._beside_examples, num_packs=num_packs
            )

    def next(self, state: Any, packs: Any) -> Round:
        """Runs one round, with the score that its search chooses."""
        online = self._process
        start = time.perf_counter()
        trained = online.parts.train(state.learning, packs)
        train_seconds = time.perf_counter() - start
        output = self._chooser.choose(state, trained, self._judged_packs)
        candidates, chosen = online.candidates, int(output.state.index)
        tested = (
            Tested(
                candidates[trial.index].label,
                trial.correct,
                self._num_examples,
                trial.index == chosen,
            )
            for trial in output.trials
        )
        beside = self._judge_beside(state, trained, candidates[chosen])
        counts = output.counts if self._searches else None
        if beside and self._beside_packs is self._judged_packs:
            counts = beside[0].correct
        return Round(
            output.state,
            output.metrics,
            candidates[chosen],
            tuple(tested) if self._searches else (),
            counts if self._tests else None,
            train_seconds,
            beside,
            self._beside_examples,
        )

    def _judge_beside(
        self, state: Any, trained: Any, in_force: Score
    ) -> list[Counterfactual]:
        """The models of other weightings, that in force the first of them."""
        from tff_pmc.processes.counterfactuals import judge_all

        if not self._plan.judges(int(state.learning.client_work["round"]) + 1):
            return []
        # Those of a search, too, so that each is there in every round.
        scores = [in_force, *self._process.candidates, *self._beside]
        every = {score.label: score for score in scores}
        given = self._process, state, trained, self._beside_packs
        return judge_all(*given, every.values(), self._rates)
