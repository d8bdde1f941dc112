"""Laplace noise on the simple mean, a baseline of Dual's."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from leaf_data.declare import ABOVE_0, setting
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.factory_system import FactorySystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class Laplace(FactorySystem):
    """The differential privacy of Dual's Table I: noise, and no guarantee."""

    name = "Laplace"
    weighs_equally = True

    epsilon: float = setting(
        1.0,
        "The noise has the scale 1/epsilon on every parameter. The paper does not "
        "print it.",
        flag="laplace_epsilon",
        within=ABOVE_0,
    )

    def factory(self, settings: RunSettings) -> Any:
        """The simple mean with noise."""
        from tff_pmc.aggregation import baselines

        return baselines.laplace(
            epsilon=self.epsilon, seed=settings.training.batch_seed
        )


SYSTEMS.register("laplace", Laplace)
