"""Algorithms that weight clients by a score of their criteria: DA's, PMC's, FedAvg.

With `--adjustment` every round searches over candidates, several scores (DA's Algorithm
1): the cohort trains once, and the candidates' models are tested before one is chosen.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from declared_settings import SettingError
from tff_pmc import scores, search
from tff_pmc.algorithms.algorithm import ALGORITHMS, Algorithm
from tff_pmc.algorithms.counterfactual_scores import counterfactual_scores
from tff_pmc.algorithms.run_context import RunContext
from tff_pmc.algorithms.trainer import FixedTrainer, SearchTrainer, Trainer
from tff_pmc.settings.run_settings import RunSettings, slug


@dataclasses.dataclass(frozen=True)
class ScoredAlgorithm(Algorithm):
    """An algorithm whose weights come from a score; a subclass only defines `score`."""

    def build_trainer(self, context: RunContext) -> Trainer:
        """Builds the trainer: of a fixed score, or of a search and counterfactuals."""
        settings = context.settings
        if settings.adjustment.searches or settings.counterfactual.kinds:
            return self._build_search(context)
        return FixedTrainer(context, self.build_process(context), self.score(settings))

    def build_process(
        self, context: RunContext, basis: scores.Basis | None = None
    ) -> Any:
        """Builds the process; by default its sums are those that the score needs."""
        from tff_pmc import processes

        return processes.build_prioritized_fed_avg(
            context.model,
            client_optimizer_fn=context.client_optimizer,
            server_optimizer_fn=context.server_optimizer,
            score=self.score(context.settings),
            criteria=context.criteria,
            basis=basis,
            sums=context.sums,
            **self.training(context).arguments,
        )

    def counterfactuals(self, settings: RunSettings) -> list[scores.Score]:
        """Returns the scores of `--counterfactuals`, after the current score."""
        return counterfactual_scores(settings, self.score(settings))

    def _build_search(self, context: RunContext) -> SearchTrainer:
        """Builds the trainer of a search, of counterfactuals, or of both."""
        from tff_pmc import processes

        settings, judge = context.settings, None
        if settings.adjustment.judge_on == "server":
            judge = processes.build_server_judge(
                context.model, *context.server_examples, context.data.num_classes
            )
        score, others = self.score(settings), []
        candidates = [score]
        if settings.adjustment.searches:
            candidates = self.candidates(settings)
        if settings.counterfactual.kinds:
            others = self.counterfactuals(settings)
        online = processes.build_online_adjusted_fed_avg(
            context.model,
            client_optimizer_fn=context.client_optimizer,
            server_optimizer_fn=context.server_optimizer,
            candidates=candidates,
            first=score,
            others=others,
            criteria=context.criteria,
            policy=settings.adjustment.policy,
            judge=judge,
            num_clients=context.judging_examples.num_clients,
            sums=context.sums,
            **self.training(context).arguments,
        )
        return SearchTrainer(context, online, others)


@dataclasses.dataclass(frozen=True)
class PriorityAlgorithm(ScoredAlgorithm):
    """A scored algorithm with the criteria of `--priority`, in its order."""

    takes_priority = True
    combines_criteria = True

    def label(self, settings: RunSettings) -> str:
        """Returns the score and its adjustment, e.g. `LD,DS,MD (backtracking)`."""
        adjustment = settings.adjustment
        adjusted = f" ({adjustment.policy})" if adjustment.searches else ""
        return self.score(settings).label + adjusted

    def folder_name(self, settings: RunSettings) -> str:
        """Returns the name of a run's folder, e.g. `LD-DS-MD_backtracking`."""
        label = self.score(settings).label
        words = "-".join(re.findall(r"(?:\^-|[\w.^])+", label)).replace("^", "_")
        adjustment = settings.adjustment
        adjusted = adjustment.policy if adjustment.searches else ""
        notes = map(slug, settings.notes)
        return "_".join(filter(None, (words, adjusted, *notes)))


@dataclasses.dataclass(frozen=True)
class Prioritized(PriorityAlgorithm):
    """Clients weighted by an ordering of criteria (DA eq. 3, 4; PMC eq. 5, 6).

    One criterion alone is the single-criterion baseline; DS is federated averaging.
    """

    name = "Prioritized"
    combines_criteria = False  # One criterion alone is a baseline.

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the score of the ordering."""
        aggregation = settings.aggregation
        return scores.prioritized(aggregation.priority, aggregation.criteria)

    def candidates(self, settings: RunSettings) -> list[scores.Score]:
        """Returns the scores of all orderings of the criteria, in test order."""
        criteria = settings.aggregation.criteria
        members = sorted(settings.aggregation.priority, key=criteria.index)
        try:
            orders = search.orderings(members)
        except ValueError as error:
            policy = settings.adjustment.policy
            raise SettingError(f"--adjustment={policy}: {error}") from error
        return [scores.prioritized(order, criteria) for order in orders]


@dataclasses.dataclass(frozen=True)
class FedAvg(ScoredAlgorithm):
    """Federated averaging (McMahan et al. 2017), the baseline of AdaFed.

    The same as the prioritized score of DS alone, under the name in AdaFed's paper.
    """

    name = "FedAvg"

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the dataset size alone."""
        return scores.single("DS", settings.aggregation.criteria)


ALGORITHMS.register("prioritized", Prioritized)
ALGORITHMS.register("fedavg", FedAvg)
