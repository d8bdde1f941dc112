"""The weighted average of criteria, an operator beside the prioritized score."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from leaf_data.declare import setting
from tff_pmc import scores
from tff_pmc.settings import flag_values
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.scored import PrioritySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class WeightedAverage(PrioritySystem):
    """Clients weighted by a weighted average of their criteria."""

    name = "Weighted average"

    weights: tuple[float, ...] = setting(
        (),
        "The weight of each criterion in the order of --priority, as 0.5,0.3,0.2: "
        "sum 1.",
        flag="average_weights",
        parse=flag_values.numbers,
    )

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the average; of one criterion alone, the criterion."""
        aggregation = settings.aggregation
        if not self.weights:
            raise ValueError("it takes --average_weights")
        if len(aggregation.priority) == 1:
            return scores.prioritized(aggregation.priority, aggregation.criteria)
        return scores.weighted_average(
            self.weights, aggregation.criteria, members=aggregation.priority
        )


SYSTEMS.register("weighted_average", WeightedAverage)
