"""The unweighted mean, a baseline of Dual's."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.factory_system import FactorySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class SimpleAverage(FactorySystem):
    """The simple average of Dual's Table I: all clients count alike."""

    name = "Simple average"
    weighs_equally = True

    def factory(self, settings: RunSettings) -> Any:
        """The unweighted mean."""
        from tff_pmc.aggregation import baselines

        return baselines.simple_average()


SYSTEMS.register("simple_average", SimpleAverage)
