"""What the four papers say of their results: a module a paper, a function a claim."""

from tff_pmc.reports.papers.claims import adafed, da, dual, pmc

__all__ = ["adafed", "da", "dual", "pmc"]
