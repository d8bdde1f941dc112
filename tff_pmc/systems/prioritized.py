"""Systems that weigh clients by a score over their criteria: DA's and PMC's, FedAvg.

With `--adjustment` a scored system becomes a search over candidates in every round
(DA's Algorithm 1): the cohort trains once, and the models of several scores, its
candidates, are tested before one is taken.
"""

from __future__ import annotations

import dataclasses
import re
from typing import Any

from leaf_data.settings import SettingError
from tff_pmc import scores, search
from tff_pmc.settings.run_settings import (
    SYSTEMS,
    RunSettings,
    System,
    in_small_letters,
)
from tff_pmc.systems.asked_weightings import scores_of
from tff_pmc.systems.rounds import FixedRounds, Rounds, SearchRounds
from tff_pmc.systems.setup import Setup


@dataclasses.dataclass(frozen=True)
class ScoredSystem(System):
    """A system whose weights come from a score; a subclass must define `score` only."""

    def build(self, setup: Setup) -> Rounds:
        """The rounds with the score in force, or with a search over candidates."""
        settings = setup.settings
        if settings.adjustment.searches or settings.counterfactual.kinds:
            return self._build_search(setup)
        score = self.score(setup.settings)
        return FixedRounds(setup, self.build_process(setup), score)

    def build_process(self, setup: Setup, basis: scores.Basis | None = None) -> Any:
        """The process of the score in force, by default with the sums that it needs."""
        from tff_pmc import processes

        build = processes.build_prioritized_fed_avg
        if setup.settings.two_stage:
            build = processes.build_two_stage_fed_avg
        return build(
            setup.model,
            score=self.score(setup.settings),
            criteria=setup.criteria,
            basis=basis,
            **self.process_options(setup),
        )

    def process_options(self, setup: Setup) -> dict[str, Any]:
        """The options of its processes."""
        return setup.process_options

    def counterfactuals(self, settings: RunSettings) -> list[scores.Score]:
        """The scores that `--counterfactuals` names, that in force before them."""
        return scores_of(settings, self.score(settings))

    def _build_search(self, setup: Setup) -> Rounds:
        """The rounds of a search, or of what is judged beside without one."""
        from tff_pmc import processes

        settings, judge = setup.settings, None
        if settings.adjustment.judge_on == "server":
            judge = processes.build_server_judge(
                setup.model, *setup.server_examples, setup.data.num_classes
            )
        candidates, beside = [self.score(settings)], []
        if settings.adjustment.searches:
            candidates = self.candidates(settings)
        if settings.counterfactual.kinds:
            beside = self.counterfactuals(settings)
        online = processes.build_online_adjusted_fed_avg(
            setup.model,
            candidates=candidates,
            others=beside,
            first=self.score(settings),
            policy=settings.adjustment.adjustment,
            criteria=setup.criteria,
            judge=judge,
            num_clients=setup.judged.num_clients,
            two_stage=settings.two_stage,
            **self.process_options(setup),
        )
        return SearchRounds(setup, online, beside)


@dataclasses.dataclass(frozen=True)
class PrioritySystem(ScoredSystem):
    """A scored system whose criteria, and their order, `--priority` names."""

    takes_priority = True
    combines = True

    def label(self, settings: RunSettings) -> str:
        """Returns the score and its adjustment, e.g. `LD,DS,MD (backtracking)`."""
        adjustment = settings.adjustment
        adjusted = f" ({adjustment.adjustment})" if adjustment.searches else ""
        return self.score(settings).label + adjusted

    def folder(self, settings: RunSettings) -> str:
        """Returns the name of a run's folder, e.g. `LD-DS-MD_backtracking`."""
        label = self.score(settings).label
        words = "-".join(re.findall(r"(?:\^-|[\w.^])+", label)).replace("^", "_")
        adjustment = settings.adjustment
        adjusted = adjustment.adjustment if adjustment.searches else ""
        notes = map(in_small_letters, settings.notes)
        return "_".join(filter(None, (words, adjusted, *notes)))


@dataclasses.dataclass(frozen=True)
class Prioritized(PrioritySystem):
    """Weights by an ordering of criteria (DA eq. 3 and 4, PMC eq. 5 and 6).

    One criterion alone is the single-criterion baseline; DS is federated averaging.
    """

    name = "Prioritized"
    combines = False  # An ordering of one criterion is a baseline of its own.

    def score(self, settings: RunSettings) -> scores.Score:
        """The score of the ordering."""
        aggregation = settings.aggregation
        return scores.prioritized(aggregation.priority, aggregation.criteria)

    def candidates(self, settings: RunSettings) -> list[scores.Score]:
        """All orderings of the same criteria, in the order of the tests."""
        criteria = settings.aggregation.criteria
        members = sorted(settings.aggregation.priority, key=criteria.index)
        try:
            orders = search.orderings(members)
        except ValueError as error:
            policy = settings.adjustment.adjustment
            raise SettingError(f"--adjustment={policy}: {error}") from error
        return [scores.prioritized(order, criteria) for order in orders]


@dataclasses.dataclass(frozen=True)
class FedAvg(ScoredSystem):
    """Federated averaging (McMahan et al. 2017), the baseline of AdaFed.

    It is the prioritized mean of DS alone, under the name that AdaFed's paper has.
    """

    name = "FedAvg"

    def score(self, settings: RunSettings) -> scores.Score:
        """The dataset size alone."""
        return scores.single("DS", settings.aggregation.criteria)


SYSTEMS.register("prioritized", Prioritized)
SYSTEMS.register("fedavg", FedAvg)
