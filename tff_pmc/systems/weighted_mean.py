"""The mean weighted by examples, the baseline that Dual's others are held against."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.factory_system import FactorySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class WeightedMean(FactorySystem):
    """The weighted mean of Dual's Table I: federated averaging by TFF's own mean."""

    name = "Weighted mean"

    def factory(self, settings: RunSettings) -> Any:
        """TFF's mean."""
        from tff_pmc.aggregation import baselines

        return baselines.weighted_mean()


SYSTEMS.register("weighted_mean", WeightedMean)
