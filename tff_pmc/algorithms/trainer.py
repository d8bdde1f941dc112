"""The trainer of a run: rounds by a fixed score, a search, with counterfactuals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leaf_data.client_ids import ClientNumber
from tff_pmc.algorithms.run_context import RunContext, drawn_clients
from tff_pmc.record.round_record import RoundResult, TriedCandidate
from tff_pmc.scores import Basis, Score

if TYPE_CHECKING:
    from tff_pmc.processes.counterfactuals import Counterfactual


class Trainer:
    """Trains an algorithm's rounds, one after another, from packs of clients.

    The process is a `tff.learning.templates.LearningProcess`, which runs a round in
    one call, or a `processes.OnlineAdjustedFedAvg`, whose rounds are trained first:
    then models of the sums are judged, those of a search to choose one, and those of
    `--counterfactuals` for the record.
    """

    def __init__(
        self,
        context: RunContext,
        process: Any,
        score: Score,
        counterfactuals: Sequence[Score] = (),
    ) -> None:
        """Takes a process, the score it begins with, and others that are judged."""
        from tff_pmc.clients.model_metrics import OwnMetrics
        from tff_pmc.processes import OnlineAdjustedFedAvg
        from tff_pmc.processes.communication import traffic
        from tff_pmc.runtime import lost_rounds

        self._process, self._context = process, context
        self._score = score.over(context.settings.columns)
        self._online = isinstance(process, OnlineAdjustedFedAvg)
        self._searches = context.settings.adjustment.searches
        self._counterfactuals = counterfactuals
        train, num_sums = process.next, None
        if self._online:
            train = process.parts.train
            # The sums that counterfactuals alone need do not count.
            num_sums = len(Basis.of(len(context.criteria), process.candidates))
            self._prepare_judges()
        lost_rounds.leave_to_caller(train)
        self.initialize = process.initialize
        self.get_model_weights = process.get_model_weights
        self.traffic = traffic(
            train,
            normalization=context.settings.aggregation.normalization,
            two_stage=context.settings.two_stage,
            model_metrics=OwnMetrics.of(context.model).specs,
            num_sums=num_sums,
        )

    @property
    def num_judges(self) -> int:
        """The number of clients that judge each candidate of a search."""
        at_server = self._context.settings.adjustment.judge_on == "server"
        if not self._searches or at_server:
            return 0
        return int((self._context.judged.sizes > 0).sum())

    def next(self, state: Any, packs: Any) -> RoundResult:
        """Runs one round with a cohort's packs."""
        process = self._process
        if not self._online:
            output = process.next(state, packs)
            return RoundResult(output.state, output.metrics, self._score)
        output, trained = process.next_with_sums(state, packs, self._judged_packs)
        chosen, counts = int(output.state.index), output.counts
        tested = tuple(
            TriedCandidate(
                process.candidates[trial.index].label,
                trial.correct,
                self._context.judged.num_examples,
                trial.index == chosen,
            )
            for trial in output.trials
        )
        in_force = process.candidates[chosen]
        others = self._judge_counterfactuals(state, trained, in_force)
        if others and self._sampled_packs is self._judged_packs:
            counts = others[0].correct
        judged_on_tests = self._context.settings.adjustment.judge_on == "test"
        return RoundResult(
            state=output.state,
            metrics=output.metrics,
            in_force=in_force,
            tested=tested,
            counts=counts if judged_on_tests else None,
            train_seconds=output.train_seconds,
            counterfactuals=others,
            judged=self._sampled,
        )

    def _prepare_judges(self) -> None:
        """Packs the examples on which a search, and counterfactuals, are judged."""
        from tff_pmc.processes import evaluation_packs

        settings, judged = self._context.settings, self._context.judged
        self._sampled = judged
        self._judged_packs: list[Any] = []
        if settings.adjustment.judge_on != "server":
            num_packs = settings.training.num_packs
            self._judged_packs = evaluation_packs(judged, num_packs=num_packs)
            drawn = drawn_clients(judged, settings.counterfactual.clients)
            if len(drawn) < judged.num_clients:
                self._sampled = judged.subset(map(ClientNumber, drawn))
                self._sampled_packs = evaluation_packs(
                    self._sampled, num_packs=num_packs
                )
                return
        self._sampled_packs = self._judged_packs

    def _judge_counterfactuals(
        self, state: Any, trained: Any, in_force: Score
    ) -> list[Counterfactual]:
        """Judges the models of other weightings, that in force the first of them."""
        from tff_pmc.processes.counterfactuals import judge_all

        settings = self._context.settings
        round_num = int(state.learning.client_work["round"]) + 1
        if not settings.counterfactual.judges(round_num):
            return []
        # A search's candidates are judged also in rounds that did not test them.
        scores = [in_force, *self._process.candidates, *self._counterfactuals]
        every = {score.label: score for score in scores}
        # None is the run's rate, with which the others are compared.
        rate_in_force = settings.training.server_learning_rate
        rates = settings.counterfactual.rates
        return judge_all(
            self._process,
            state,
            trained,
            self._sampled_packs,
            every.values(),
            [None, *(rate for rate in rates if rate != rate_in_force)],
        )
