"""Algorithms that replace the server's weighted mean, one module per kind.

An algorithm declares its settings, how its process is built, and its name in tables:
see `Algorithm`. `PriorityAlgorithm` is the base class of algorithms that combine the
criteria of `--priority` into a score, `FactoryAlgorithm` of those that wrap a TFF
aggregation factory.
"""

from tff_pmc.algorithms.algorithm import ALGORITHMS, Algorithm
from tff_pmc.algorithms.baseline_algorithms import FactoryAlgorithm
from tff_pmc.algorithms.scored_algorithms import PriorityAlgorithm, ScoredAlgorithm

__all__ = [
    "ALGORITHMS",
    "FactoryAlgorithm",
    "PriorityAlgorithm",
    "ScoredAlgorithm",
    "Algorithm",
]
