"""The runners of a system's rounds, with a fixed score or a search in each round."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import numpy as np
import numpy.typing as npt

from tff_pmc.scores import Score

if TYPE_CHECKING:
    from tff_pmc.systems.setup import Setup


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


class Rounds(abc.ABC):
    """The rounds of a process, one after another.

    Attributes:
        traffic: the bytes that a client sends and receives; see
            `processes.communication`.
        num_judges: the number of clients that judge each candidate.
        initialize: makes the state before the first round.
        get_model_weights: the model of a state, a `tff.learning.models.ModelWeights`.
    """

    num_judges = 0

    def __init__(self, setup: Setup, process: Any, train: Any) -> None:
        """Takes a process, and its computation of one round's training."""
        from tff_pmc.clients.model_metrics import OwnMetrics
        from tff_pmc.processes.communication import traffic

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
    """The rounds of `processes.OnlineAdjustedFedAvg`."""

    def __init__(self, setup: Setup, online: Any) -> None:
        from tff_pmc import processes

        super().__init__(setup, online, online.parts.train)
        judge_on, judged = setup.settings.adjustment.judge_on, setup.judged
        self._counts_clients = judge_on == "test"
        self._num_examples = judged.num_examples
        self._judged_packs: list[Any] = []
        if judge_on != "server":
            num_packs = setup.settings.training.num_packs
            self._judged_packs = processes.evaluation_packs(judged, num_packs=num_packs)
            self.num_judges = int((judged.sizes > 0).sum())

    def next(self, state: Any, packs: Any) -> Round:
        """Runs one round, with the score that its search chooses."""
        output = self._process.next(state, packs, self._judged_packs)
        candidates, chosen = self._process.candidates, int(output.state.index)
        tested = (
            Tested(
                candidates[trial.index].label,
                trial.correct,
                self._num_examples,
                trial.index == chosen,
            )
            for trial in output.trials
        )
        return Round(
            output.state,
            output.metrics,
            candidates[chosen],
            tuple(tested),
            output.counts if self._counts_clients else None,
            output.train_seconds,
        )
