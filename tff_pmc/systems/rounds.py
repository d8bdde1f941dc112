"""The runners of a system's rounds, with a fixed score or a search in each round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Protocol

import numpy as np
import numpy.typing as npt

from tff_pmc.scores import Score

if TYPE_CHECKING:
    from tff_pmc.systems.setup import Setup


class Tested(NamedTuple):
    """A candidate that was tested.

    Attributes:
        label: the label of its score.
        correct: the number of judged examples that its model got right.
        examples: the number of judged examples.
        chosen: whether its model is the round's result.
    """

    label: str
    correct: int
    examples: int
    chosen: bool


class Round(NamedTuple):
    """The result of a round.

    Attributes:
        state: the state of the process, for the next round and the checkpoint.
        metrics: `<client_work, aggregator, finalizer>`.
        in_force: the score whose model is the round's result.
        tested: the candidates tested, in order; empty where nothing is tested.
        counts: the correct examples of each client, where the judge counted them on
            the clients' test sets.
        train_seconds: the seconds of the training alone; None where nothing else was
            done.
    """

    state: Any
    metrics: Any
    in_force: Score
    tested: tuple[Tested, ...] = ()
    counts: Optional[npt.NDArray[np.int64]] = None
    train_seconds: Optional[float] = None


class Rounds(Protocol):
    """The interface of a runner of rounds, one after another.

    Attributes:
        traffic: the bytes that a client sends and receives; see
            `processes.communication`.
        num_judges: the number of clients that judge each candidate.
    """

    traffic: Any
    num_judges: int

    def initialize(self) -> Any:
        """The state before the first round."""

    def next(self, state: Any, packs: Any) -> Round:
        """Runs one round with a cohort's packs."""

    def get_model_weights(self, state: Any) -> Any:
        """The model of a state, a `tff.learning.models.ModelWeights`."""


class FixedRounds:
    """The rounds of a process that tests nothing."""

    num_judges = 0

    def __init__(self, setup: Setup, process: Any, score: Score) -> None:
        """Takes a `tff.learning.templates.LearningProcess` and the score in force."""
        self._process, self._score = process, score
        self.initialize = process.initialize
        self.get_model_weights = process.get_model_weights
        signature = process.next.type_signature
        state, metrics = signature.parameter[0], signature.result.metrics
        self.traffic = _traffic(setup, state.member, metrics.member)

    def next(self, state: Any, packs: Any) -> Round:
        """Runs one round."""
        output = self._process.next(state, packs)
        return Round(output.state, output.metrics, self._score)


class SearchRounds:
    """The rounds of `processes.OnlineAdjustedFedAvg`."""

    def __init__(self, setup: Setup, online: Any) -> None:
        """Takes the process."""
        from tff_pmc import processes

        settings, judged = setup.settings, setup.judged
        self._online = online
        self._counts_clients = settings.adjustment.judge_on == "test"
        at_server = settings.adjustment.judge_on == "server"
        self._judged_packs = []
        if not at_server:
            num_packs = settings.training.num_packs
            self._judged_packs = processes.evaluation_packs(judged, num_packs=num_packs)
        self._num_examples = judged.num_examples
        self.initialize = online.initialize
        self.get_model_weights = online.get_model_weights
        signature = online.parts.train.type_signature
        state, metrics = signature.parameter[0], signature.result.metrics
        self.traffic = _traffic(setup, state.member, metrics.member)
        self.num_judges = 0 if at_server else int((judged.sizes > 0).sum())

    def next(self, state: Any, packs: Any) -> Round:
        """Runs one round."""
        output = self._online.next(state, packs, self._judged_packs)
        candidates, chosen = self._online.candidates, int(output.state.index)
        return Round(
            output.state,
            output.metrics,
            candidates[chosen],
            tuple(
                Tested(
                    candidates[trial.index].label,
                    trial.correct,
                    self._num_examples,
                    trial.index == chosen,
                )
                for trial in output.trials
            ),
            output.counts if self._counts_clients else None,
            output.train_seconds,
        )


def _traffic(setup: Setup, state_type: Any, metrics_type: Any) -> Any:
    from tff_pmc.clients.model_metrics import OwnMetrics
    from tff_pmc.processes.communication import traffic

    return traffic(
        state_type.global_model_weights,
        state_type.client_work,
        metrics_type,
        normalization=setup.settings.aggregation.normalization,
        two_stage=setup.settings.two_stage,
        own_metrics=OwnMetrics.of(setup.model).specs,
    )
