"""Sums over the basis, and the mean updates computed from them.

`PrioritizedMeanFactory` is the complete aggregation as one TFF factory, to compose
other processes with; `SumOptions` are the options of its sums. The baselines of Dual's
Table I are also factories: `BASELINES` has them by name. Quantization is not a factory
but a step of the client, `quantize_parameters`, before the simple average.
"""

from tff_pmc.aggregation.baselines import (
    BASELINES,
    laplace,
    median,
    momentum,
    personalized,
    quantize_parameters,
    quantized_updates,
    simple_average,
    weighted_mean,
)
from tff_pmc.aggregation.basis_sums import (
    build_basis_sums,
    build_scored_mean,
    combine,
    with_score_in_force,
)
from tff_pmc.aggregation.client_message import ClientMessage
from tff_pmc.aggregation.prioritized_mean import PrioritizedMeanFactory
from tff_pmc.aggregation.privacy import GaussianSums
from tff_pmc.aggregation.sum_options import DeclaredSumFactory, SumOptions, SumPlan
from tff_pmc.aggregation.two_stage_sums import build_two_stage_sums

__all__ = [
    "BASELINES",
    "ClientMessage",
    "DeclaredSumFactory",
    "GaussianSums",
    "PrioritizedMeanFactory",
    "SumOptions",
    "SumPlan",
    "build_basis_sums",
    "build_two_stage_sums",
    "combine",
    "laplace",
    "median",
    "momentum",
    "personalized",
    "quantize_parameters",
    "quantized_updates",
    "simple_average",
    "weighted_mean",
    "with_score_in_force",
    "build_scored_mean",
]
