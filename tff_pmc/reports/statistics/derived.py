"""The old name of two modules, deprecated: the next release removes it.

They are `weight_statistics` and `client_groups`.
"""

from tff_pmc.reports.statistics.client_groups import groups
from tff_pmc.reports.statistics.weight_statistics import cohorts, weight_figures

__all__ = ["cohorts", "groups", "weight_figures"]
