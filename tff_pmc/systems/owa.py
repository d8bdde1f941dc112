"""OWA, the ordered weighted average of criteria."""

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
class OrderedWeightedAverage(PrioritySystem):
    """Clients weighted by the ordered weighted average of their criteria.

    It sorts a client's normalized criteria: with --normalization=range in one
    aggregation, otherwise in two, which keep the clients' updates in memory.
    """

    name = "OWA"

    weights: tuple[float, ...] = setting(
        (),
        "The weight of a client's largest criterion, the next, ..., the smallest, as "
        "0.5,0.3,0.2: sum 1.",
        flag="owa_weights",
        parse=flag_values.numbers,
    )
    quantifier: str = setting(
        "",
        "In the place of the weights: how many criteria have to be satisfied.",
        flag="owa_quantifier",
        choices=("", *scores.QUANTIFIERS),
    )

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the OWA score; of one criterion alone, the criterion."""
        aggregation = settings.aggregation
        if bool(self.weights) == bool(self.quantifier):
            raise ValueError("it takes --owa_weights or --owa_quantifier, one of them")
        if len(aggregation.priority) == 1:
            return scores.prioritized(aggregation.priority, aggregation.criteria)
        return scores.owa(
            self.quantifier or self.weights,
            aggregation.criteria,
            members=aggregation.priority,
        )


SYSTEMS.register("owa", OrderedWeightedAverage)
