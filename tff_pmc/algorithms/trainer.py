"""The trainers of a run: by a fixed score, or with a search and counterfactuals."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import leaf_data
from leaf_data.client_ids import ClientNumber
from tff_pmc.algorithms.run_context import RunContext, sample_clients
from tff_pmc.record.round_record import RoundResult, TriedCandidate
from tff_pmc.scores import Basis, Score
from tff_pmc.search import Trial
from tff_pmc.settings.run_settings import RunSettings

if TYPE_CHECKING:
    from tff_pmc.processes import OnlineAdjustedFedAvg
    from tff_pmc.processes.counterfactuals import Counterfactual


class Trainer(abc.ABC):
    """Trains an algorithm's rounds, one after another, from packs of clients.

    Attributes:
        initialize: returns the state before the first round.
        get_model_weights: returns the model of a state.
        traffic: the bytes that a client sends and receives in a round.
        num_judges: the number of clients that judge each candidate of a search.
    """

    def __init__(
        self,
        context: RunContext,
        process: Any,
        train: Any,
        num_sums: Optional[int] = None,
    ) -> None:
        """Takes a process, its computation that trains, and how many sums count."""
        from tff_pmc.clients.model_metrics import ModelMetrics
        from tff_pmc.processes.communication import traffic
        from tff_pmc.runtime import lost_round_warnings

        lost_round_warnings.leave_to_caller(train)
        self.initialize = process.initialize
        self.get_model_weights = process.get_model_weights
        self.num_judges = 0
        self.traffic = traffic(
            train,
            normalization=context.settings.aggregation.normalization,
            two_stage=context.settings.two_stage,
            model_metrics=ModelMetrics.from_model(context.model).specs,
            num_sums=num_sums,
        )

    @abc.abstractmethod
    def next(self, state: Any, packs: Any) -> RoundResult:
        """Runs one round with a cohort's packs."""


class FixedTrainer(Trainer):
    """Trains by one score, with a `tff.learning.templates.LearningProcess`."""

    def __init__(self, context: RunContext, process: Any, score: Score) -> None:
        """Takes a process and its score."""
        super().__init__(context, process, process.next)
        self._process = process
        self._score = score.over(context.settings.criterion_codes)

    def next(self, state: Any, packs: Any) -> RoundResult:
        """Runs one round, which one call makes."""
        output = self._process.next(state, packs)
        return RoundResult(output.state, output.metrics, self._score)


class SearchTrainer(Trainer):
    """Trains first, and then judges models that follow from the round's sums.

    Those of a search are judged to choose one, those of `--counterfactuals` for the
    record. A run may have either or both.
    """

    def __init__(
        self,
        context: RunContext,
        online: OnlineAdjustedFedAvg,
        counterfactuals: Sequence[Score] = (),
    ) -> None:
        """Takes an online adjustment, and scores that are judged and never chosen."""
        # The sums that counterfactuals alone need do not count.
        num_sums = len(Basis.of(len(context.criteria), online.candidates))
        super().__init__(context, online, online.parts.train, num_sums)
        settings, examples = context.settings, context.judging_examples
        self._online, self._settings = online, settings
        self._counterfactuals = counterfactuals
        self._judges = JudgingExamples.pack(settings, examples)
        self._counterfactual_judges = self._judges
        if self._judges.at_server:
            return
        if settings.adjustment.searches:
            self.num_judges = int((examples.sizes > 0).sum())
        drawn = sample_clients(examples, settings.counterfactual.clients)
        if len(drawn) < examples.num_clients:
            sample = examples.subset(map(ClientNumber, drawn))
            self._counterfactual_judges = JudgingExamples.pack(settings, sample)

    def next(self, state: Any, packs: Any) -> RoundResult:
        """Runs one round: trains, searches, and judges the counterfactuals."""
        online = self._online
        output, trained = online.next_with_sums(state, packs, self._judges.packs)
        chosen = int(output.state.index)
        in_force = online.candidates[chosen]
        counterfactuals = self._judge_counterfactuals(state, trained, in_force)
        return RoundResult(
            state=output.state,
            metrics=output.metrics,
            in_force=in_force,
            tested=self._tested(output.trials, chosen),
            counts=self._counts(output.counts, counterfactuals),
            train_seconds=output.train_seconds,
            counterfactuals=counterfactuals,
            judged=self._counterfactual_judges.examples,
        )

    def _judge_counterfactuals(
        self, state: Any, trained: Any, in_force: Score
    ) -> list[Counterfactual]:
        """Judges the models of other weightings, that in force the first of them."""
        from tff_pmc.processes.counterfactuals import judge_all

        settings = self._settings
        round_num = int(state.learning.client_work["round"]) + 1
        if not settings.counterfactual.is_judged_round(round_num):
            return []
        # A search's candidates are judged also in rounds that did not test them.
        scores = [in_force, *self._online.candidates, *self._counterfactuals]
        scores_by_label = {score.label: score for score in scores}
        # None is the run's rate, with which the others are compared.
        rate_in_force = settings.training.server_learning_rate
        rates = settings.counterfactual.rates
        return judge_all(
            self._online,
            state,
            trained,
            self._counterfactual_judges.packs,
            scores_by_label.values(),
            [None, *(rate for rate in rates if rate != rate_in_force)],
        )

    def _tested(
        self, trials: Sequence[Trial], chosen: int
    ) -> tuple[TriedCandidate, ...]:
        """Returns the record of the candidates that a search tested."""
        return tuple(
            TriedCandidate(
                self._online.candidates[trial.index].label,
                trial.correct,
                self._judges.examples.num_examples,
                trial.index == chosen,
            )
            for trial in trials
        )

    def _counts(self, searched: Any, counterfactuals: Sequence[Counterfactual]) -> Any:
        """Returns the clients' correct test examples, if all clients counted them.

        They spare the test of the round's model. `searched` are those of a search.
        """
        if self._settings.adjustment.judge_on != "test":
            return None
        if counterfactuals and self._counterfactual_judges is self._judges:
            return counterfactuals[0].correct  # Of the score in force.
        return searched


class JudgingExamples(NamedTuple):
    """The examples that models are judged on, packed where clients have them."""

    examples: leaf_data.Examples
    packs: list[Any]
    at_server: bool  # Where the judge itself holds them, and no client has any.

    @classmethod
    def pack(
        cls, settings: RunSettings, examples: leaf_data.Examples
    ) -> JudgingExamples:
        """Packs the examples, unless they are the server's."""
        from tff_pmc.processes import evaluation_packs

        if settings.adjustment.judge_on == "server":
            return cls(examples, [], True)
        num_packs = settings.training.num_packs
        return cls(examples, evaluation_packs(examples, num_packs=num_packs), False)
