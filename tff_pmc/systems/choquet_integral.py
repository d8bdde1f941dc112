"""The Choquet integral of criteria."""

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
class ChoquetIntegral(PrioritySystem):
    """Clients weighted by the Choquet integral of their criteria.

    It sorts a client's normalized criteria, as `owa` does.
    """

    name = "Choquet"

    capacity: tuple[tuple[str, float], ...] = setting(
        (),
        "What each set of criteria is worth, as DS:0.4,LD:0.3,DS+LD:0.8; that of all "
        "is 1.",
        flag="choquet_capacity",
        parse=flag_values.capacity,
    )

    def score(self, settings: RunSettings) -> scores.Score:
        """Returns the integral; of one criterion alone, the criterion."""
        members = settings.aggregation.priority
        if not self.capacity:
            raise ValueError("it takes --choquet_capacity")
        if len(members) == 1:
            return scores.prioritized(members, settings.aggregation.criteria)
        value = {tuple(subset.split("+")): worth for subset, worth in self.capacity}
        if len(value) < len(self.capacity):
            raise ValueError("the capacity names a set twice")
        if {code for subset in value for code in subset} != set(members):
            raise ValueError(
                f"the capacity must be of the criteria {', '.join(members)}"
            )
        return scores.choquet(value, settings.aggregation.criteria)


SYSTEMS.register("choquet", ChoquetIntegral)
