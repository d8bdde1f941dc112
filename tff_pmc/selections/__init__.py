"""Who takes part in a round: the one place where cohorts are drawn (no TensorFlow).

A `CohortSampler` draws cohorts by a rule. A rule is a `Selection` that registers itself
in `SELECTIONS`, also from outside.
"""

from tff_pmc.selections.cohorts import Cohort, CohortSampler, LossFn
from tff_pmc.selections.selection import LOSS, SELECTIONS, Clients, Selection
from tff_pmc.selections.stragglers import draw_local_epochs

__all__ = [
    "LOSS",
    "SELECTIONS",
    "Clients",
    "Cohort",
    "CohortSampler",
    "LossFn",
    "Selection",
    "draw_local_epochs",
]
