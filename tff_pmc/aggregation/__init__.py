"""Sums over the basis, and the candidates that follow from them."""

from tff_pmc.aggregation.basis_sums import build_basis_aggregation
from tff_pmc.aggregation.candidates import combine

__all__ = ["build_basis_aggregation", "combine"]
