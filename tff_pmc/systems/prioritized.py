"""The prioritized mean of DA and PMC: criteria in an order of priority."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from leaf_data.declare import SettingError
from tff_pmc import scores, search
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.scored import PrioritySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class Prioritized(PrioritySystem):
    """Weights by an ordering of criteria (DA eq. 3 and 4, PMC eq. 5 and 6).

    One criterion alone is the single-criterion baseline; DS is federated averaging.
    """

    name = "Prioritized"
    combines = False  # An ordering of one criterion is a baseline of its own.

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the score of the ordering."""
        aggregation = settings.aggregation
        return scores.prioritized(aggregation.priority, aggregation.criteria)

    def candidates(self, settings: RunSettings) -> list[scores.Score]:
        """Returns all orderings of the same criteria, in the order of the tests."""
        criteria = settings.aggregation.criteria
        members = sorted(settings.aggregation.priority, key=criteria.index)
        try:
            orders = search.orderings(members)
        except ValueError as error:
            policy = settings.adjustment.adjustment
            raise SettingError(f"--adjustment={policy}: {error}") from error
        return [scores.prioritized(order, criteria) for order in orders]


SYSTEMS.register("prioritized", Prioritized)
