"""The four papers' claims on their results: a module a paper, a function a claim."""

from tff_pmc.reports.papers.claims import (
    adafed_claims,
    da_claims,
    dual_claims,
    pmc_claims,
)

__all__ = ["adafed_claims", "da_claims", "dual_claims", "pmc_claims"]
