"""Quantized models, a baseline of Dual's."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from leaf_data.declare import Range, setting
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.factory_system import FactorySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class Quantized(FactorySystem):
    """The quantization of Dual's Table I: each client's parameters, then their mean."""

    name = "Quantized"
    weighs_equally = True

    bits: int = setting(
        8,
        "Q: each parameter is rounded to a multiple of 1 / (2^Q - 1). The paper does "
        "not print it.",
        flag="quantized_bits",
        within=Range(lambda n: 1 <= n <= 16, "from 1 to 16"),
    )

    def factory(self, settings: RunSettings) -> Any:
        """The simple average."""
        from tff_pmc.aggregation import baselines

        return baselines.simple_average()

    def client_step(self, settings: RunSettings) -> Any:
        """The rounding of the trained model, at the client."""
        from tff_pmc.aggregation import baselines

        return baselines.quantize_parameters(self.bits)


SYSTEMS.register("quantized", Quantized)
