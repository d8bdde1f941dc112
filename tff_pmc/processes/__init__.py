"""TFF processes composed from criteria, scores, client work and aggregation."""

from tff_pmc.processes.evaluation import build_federated_evaluation
from tff_pmc.processes.prioritized_fed_avg import (
    build_prioritized_fed_avg,
    with_score,
)

__all__ = [
    "build_federated_evaluation",
    "build_prioritized_fed_avg",
    "with_score",
]
