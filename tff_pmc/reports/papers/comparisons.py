"""The old name of `claim_measures`, deprecated: the next release removes it."""

from tff_pmc.reports.papers.claim_measures import LAST_ROUND, compare, rounds_saved

__all__ = ["LAST_ROUND", "compare", "rounds_saved"]
