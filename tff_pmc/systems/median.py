"""The median of each coordinate, a baseline of Dual's."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.factory_system import FactorySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class Median(FactorySystem):
    """The median of Dual's Table I: all clients count alike, and no sum gives it."""

    name = "Median"
    weighs_equally = True

    def factory(self, settings: RunSettings) -> Any:
        """The median of each coordinate."""
        from tff_pmc.aggregation import baselines

        return baselines.median()


SYSTEMS.register("median", Median)
