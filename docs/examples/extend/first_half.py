"""A score with a setting of its own."""

import dataclasses

from declared_settings import FROM_0_TO_1, setting
from tff_pmc import scores
from tff_pmc.algorithms import ALGORITHMS, PriorityAlgorithm


@dataclasses.dataclass(frozen=True)
class FirstHalf(PriorityAlgorithm):
    """The first criterion has a fixed share, the others divide the rest."""

    share: float = setting(
        0.5, "The share of the first.", flag="first_share", within=FROM_0_TO_1
    )

    def score(self, settings):
        members = settings.aggregation.priority
        if len(members) == 1:
            return scores.single(members[0], settings.aggregation.criteria)
        rest = (1 - self.share) / (len(members) - 1)
        weights = [self.share, *[rest] * (len(members) - 1)]
        criteria = settings.aggregation.criteria
        return scores.weighted_average(weights, criteria, members=members)


ALGORITHMS.register("first_half", FirstHalf)
