"""The mean of quantized updates, which Dual does not have."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from leaf_data.declare import Range, setting
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.factory_system import FactorySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class QuantizedUpdates(FactorySystem):
    """Clients' updates rounded to levels between each tensor's extremes.

    Dual's Quantization rounds the clients' models: see the system `quantized`.
    """

    name = "Quantized updates"

    levels: int = setting(
        256,
        "The number of levels to which an update is rounded.",
        flag="quantized_levels",
        within=Range(
            lambda n: 2 <= n <= 65536 and n & (n - 1) == 0,
            "a power of two, 2 to 65536",
        ),
    )

    def factory(self, settings: RunSettings) -> Any:
        """The weighted mean of quantized updates."""
        from tff_pmc.aggregation import baselines

        return baselines.quantized_updates(levels=self.levels)


SYSTEMS.register("quantized_updates", QuantizedUpdates)
