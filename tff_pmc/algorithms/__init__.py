"""The algorithms: what replaces the server's weighted mean, in a module for each kind.

An algorithm declares its settings, how its process is built, and what its row in the
tables is called: see `Algorithm`. `PriorityAlgorithm` is the base of those that make a
score of several criteria, `FactoryAlgorithm` of those around an aggregation factory.
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
