"""The product of criteria, one monomial."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tff_pmc import scores
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.scored import PrioritySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class CriteriaProduct(PrioritySystem):
    """Clients weighted by the product of their criteria."""

    name = "Product"

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the product; of one criterion alone, the criterion."""
        aggregation = settings.aggregation
        if len(aggregation.priority) == 1:
            return scores.prioritized(aggregation.priority, aggregation.criteria)
        return scores.product(aggregation.criteria, members=aggregation.priority)


SYSTEMS.register("product", CriteriaProduct)
