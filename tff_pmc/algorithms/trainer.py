"""Trainers run the rounds: of a fixed score, or with search and counterfactuals."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

import leaf_data
from leaf_data.client_ids import ClientNumber
from tff_pmc.algorithms.run_context import RunContext, sample_clients
from tff_pmc.record.round_record import RecordedTrial, RoundResult
from tff_pmc.scores import Basis, Score
from tff_pmc.search import Trial
from tff_pmc.settings.run_settings import RunSettings

if TYPE_CHECKING:
    from tff_pmc.processes import OnlineAdjustedFedAvg
    from tff_pmc.processes.counterfactuals import Counterfactual


class Trainer(abc.ABC):
    """Runs an algorithm's rounds, one after another, on packs of clients.

    Attributes:
        initialize: returns the state before the first round.
        get_model_weights: returns the model of a state.
        traffic: the bytes that a client sends and receives in a round.
        num_judges: the number of clients that judge each candidate.
    """

    def __init__(
        self,
        context: RunContext,
        process: Any,
        train: Any,
        num_sums: Optional[int] = None,
    ) -> None:
        """Takes a process, its training computation, and the number of counted sums."""
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
        """Runs one round on the packs of a cohort."""


class FixedTrainer(Trainer):
    """Trains with a fixed score, by a `tff.learning.templates.LearningProcess`."""

    def __init__(self, context: RunContext, process: Any, score: Score) -> None:
        """Takes a process and its score."""
        super().__init__(context, process, process.next)
        self._process = process
        self._score = score.over(context.settings.criterion_codes)

    def next(self, state: Any, packs: Any) -> RoundResult:
        """Runs one round in one call."""
        output = self._process.next(state, packs)
        return RoundResult(output.state, output.metrics, self._score)


class SearchTrainer(Trainer):
    """Trains once per round, and then judges models computed from the round's sums.

    A search judges its candidates to choose one; `--counterfactuals` judges others for
    the record. A run may have either or both.
    """

    def __init__(
        self,
        context: RunContext,
        online: OnlineAdjustedFedAvg,
        counterfactuals: Sequence[Score] = (),
    ) -> None:
        """Takes an online adjustment, and scores that are only judged."""
        # Sums that only counterfactuals need are not counted as traffic.
        num_sums = len(Basis.of(len(context.criteria), online.candidates))
        super().__init__(context, online, online.parts.train, num_sums)
        settings, examples = context.settings, context.judging_examples
        self._online, self._settings = online, settings
        self._counterfactuals = counterfactuals
        self._judging = JudgingExamples.pack(settings, examples)
        self._counterfactual_examples = self._judging
        if self._judging.at_server:
            return
        if settings.adjustment.searches:
            self.num_judges = int((examples.label_counts > 0).sum())
        sampled = sample_clients(examples, settings.counterfactual.clients)
        if len(sampled) < examples.num_clients:
            sample = examples.subset(map(ClientNumber, sampled))
            self._counterfactual_examples = JudgingExamples.pack(settings, sample)

    def next(self, state: Any, packs: Any) -> RoundResult:
        """Runs one round: trains, searches, and judges the counterfactuals."""
        online = self._online
        output, trained = online.next_with_sums(state, packs, self._judging.packs)
        chosen = int(output.state.index)
        in_force = online.candidates[chosen]
        counterfactuals = self._judge_counterfactuals(state, trained, in_force)
        return RoundResult(
            state=output.state,
            metrics=output.metrics,
            in_force=in_force,
            trials=self._trials(output.trials, chosen),
            correct_by_client=self._correct_by_client(output.counts, counterfactuals),
            train_seconds=output.train_seconds,
            counterfactuals=counterfactuals,
            counterfactual_examples=self._counterfactual_examples.examples,
        )

    def _judge_counterfactuals(
        self, state: Any, trained: Any, in_force: Score
    ) -> list[Counterfactual]:
        """Judges the models of other weightings, after that of the current score."""
        from tff_pmc.processes.counterfactuals import judge_all

        settings = self._settings
        round_num = int(state.learning.client_work["round"]) + 1
        if not settings.counterfactual.is_judged_round(round_num):
            return []
        # Candidates are judged also in rounds that did not test them.
        scores = [in_force, *self._online.candidates, *self._counterfactuals]
        scores_by_label = {score.label: score for score in scores}
        # None is the run's rate, the baseline of the comparison.
        rate_in_force = settings.training.server_learning_rate
        rates = settings.counterfactual.rates
        return judge_all(
            self._online,
            state,
            trained,
            self._counterfactual_examples.packs,
            scores_by_label.values(),
            [None, *(rate for rate in rates if rate != rate_in_force)],
        )

    def _trials(
        self, trials: Sequence[Trial], chosen: int
    ) -> tuple[RecordedTrial, ...]:
        """Returns the candidates that the search tested, for the record."""
        return tuple(
            RecordedTrial(
                self._online.candidates[trial.index].label,
                trial.correct,
                self._judging.examples.num_labels,
                trial.index == chosen,
            )
            for trial in trials
        )

    def _correct_by_client(
        self, search_counts: Any, counterfactuals: Sequence[Counterfactual]
    ) -> Any:
        """Returns each client's number of correct test examples, if judging gives it.

        The round's model then needs no test. `search_counts` come from a search.
        """
        if self._settings.adjustment.judge_on != "test":
            return None
        if counterfactuals and self._counterfactual_examples is self._judging:
            return counterfactuals[0].correct  # Of the current score.
        return search_counts


class JudgingExamples(NamedTuple):
    """The examples on which models are judged, and their packs if clients hold them."""

    examples: leaf_data.Examples
    packs: list[Any]
    at_server: bool  # The server holds the examples.

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
