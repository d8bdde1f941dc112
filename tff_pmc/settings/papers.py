"""The four papers that are reproduced: their short names, their titles, their years."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Paper(NamedTuple):
    """A paper."""

    title: str  # Without what follows a colon.
    year: int


PAPERS: Mapping[str, Paper] = {
    "DA": Paper("Towards Effective Device-Aware Federated Learning", 2019),
    "PMC": Paper("Prioritized Multi-Criteria Federated Learning", 2020),
    "AdaFed": Paper("Performance-based Adaptive Federated Learning", 2022),
    "Dual": Paper("Dual-Criterion Model Aggregation in Federated Learning", 2024),
}
"""The papers by their short names, in the order of their years."""
