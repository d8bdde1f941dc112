"""Momentum at the server, a baseline of Dual's."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from leaf_data.declare import ABOVE_0, BELOW_1, setting
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.factory_system import FactorySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class Momentum(FactorySystem):
    """The momentum of Dual's Table I, on the weighted mean."""

    name = "Momentum"

    beta: float = setting(
        0.9,
        "The momentum. The paper does not print it.",
        flag="momentum_beta",
        within=BELOW_1,
    )
    eta: float = setting(
        1.0,
        "The rate of the step. The paper does not print it.",
        flag="momentum_eta",
        within=ABOVE_0,
    )

    def factory(self, settings: RunSettings) -> Any:
        """The weighted mean with momentum."""
        from tff_pmc.aggregation import baselines

        return baselines.momentum(beta=self.beta, eta=self.eta)


SYSTEMS.register("momentum", Momentum)
