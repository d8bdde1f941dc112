"""The old name of `claim_registry`, deprecated: the next release removes it."""

from tff_pmc.reports.papers.claim_registry import CLAIMS, claim, claims, headline

__all__ = ["CLAIMS", "claim", "claims", "headline"]
