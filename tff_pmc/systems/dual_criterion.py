"""Dual: a mean of quality and quantity, whose share lambda is searched in each round.

*Dual-Criterion Model Aggregation in Federated Learning* (Zhang, Yu, Westerlund 2024).
"""

from __future__ import annotations

import dataclasses

from leaf_data.declare import Range, setting
from tff_pmc import scores
from tff_pmc.settings.run_settings import SYSTEMS, RunSettings
from tff_pmc.systems.prioritized import ScoredSystem


@dataclasses.dataclass(frozen=True)
class DualCriterion(ScoredSystem):
    """Clients weighted by `lambda * quality + (1 - lambda) * quantity` (eq. 1 to 5).

    Quality is ACC, the accuracy of the client's model on the evaluation set, which is
    the server's here; in the paper each client has it and scores itself. Quantity is
    DS. With `--adjustment=best_of_all` all lambdas are tried in each round on what
    `--judge_on` says: the paper's validation set is the one that is reported, `test`.
    With `--adjustment=fixed` lambda stays 0.
    """

    name = "Dual-criterion"

    lambda_steps: int = setting(
        11,
        "How many lambdas are tried in a round, evenly from 0 to 1. The paper does "
        "not print which it tries.",
        flag="dual_lambda_steps",
        within=Range(lambda n: 2 <= n <= 101, "2 to 101"),
    )

    def score(self, settings: RunSettings) -> scores.Score:
        """The score in force in the first round, of the quantity alone."""
        return scores.dual(0.0, criteria=settings.aggregation.criteria)

    def candidates(self, settings: RunSettings) -> list[scores.Score]:
        """The scores of all lambdas."""
        criteria = settings.aggregation.criteria
        return list(scores.dual_grid(self.lambda_steps, criteria=criteria))


SYSTEMS.register("dual", DualCriterion)
