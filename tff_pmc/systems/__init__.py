"""The systems: what replaces the server's weighted mean, in a module for each kind.

A system declares its settings, how its process is built, and what its row in the
tables is called: see `System`. `PrioritySystem` is the base of those that make a score
of several criteria, `FactorySystem` of those around an aggregation factory.
"""

from tff_pmc.settings.run_settings import SYSTEMS, System
from tff_pmc.systems.baseline_systems import FactorySystem
from tff_pmc.systems.prioritized import PrioritySystem, ScoredSystem

__all__ = ["SYSTEMS", "FactorySystem", "PrioritySystem", "ScoredSystem", "System"]
