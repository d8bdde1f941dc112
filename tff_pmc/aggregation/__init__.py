"""Sums over the basis, and the candidates that follow from them."""

from tff_pmc.aggregation.basis_sums import (
    build_basis_aggregation,
    build_basis_sums,
    with_candidate,
)
from tff_pmc.aggregation.candidates import combine
from tff_pmc.aggregation.factory import PrioritizedMeanFactory
from tff_pmc.aggregation.privacy import GaussianSums
from tff_pmc.aggregation.two_stage_sums import build_two_stage_sums

__all__ = [
    "GaussianSums",
    "PrioritizedMeanFactory",
    "build_basis_aggregation",
    "build_basis_sums",
    "build_two_stage_sums",
    "combine",
    "with_candidate",
]
