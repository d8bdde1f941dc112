"""Federated averaging: clients weighted by their numbers of examples."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tff_pmc import scores
from tff_pmc.settings.run_settings import SYSTEMS
from tff_pmc.systems.scored import ScoredSystem

if TYPE_CHECKING:
    from tff_pmc.settings.run_settings import RunSettings


@dataclasses.dataclass(frozen=True)
class FedAvg(ScoredSystem):
    """Federated averaging (McMahan et al. 2017), the baseline of AdaFed.

    It is the prioritized mean of DS alone, under the name that AdaFed's paper has.
    """

    name = "FedAvg"

    def score(self, settings: RunSettings) -> scores.Score:
        """The dataset size alone."""
        return scores.single("DS", settings.aggregation.criteria)


SYSTEMS.register("fedavg", FedAvg)
