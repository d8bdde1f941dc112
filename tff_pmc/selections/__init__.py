"""Selections of a round's clients, a module for each kind (no TensorFlow).

A rule is a `Selection` that registers itself in `SELECTIONS`, also from outside.
"""

from tff_pmc.selections.selection import LOSS, SELECTIONS, Clients, Selection

__all__ = ["LOSS", "SELECTIONS", "Clients", "Selection"]
