"""The papers that are reproduced: their short names, their titles, their years."""

from __future__ import annotations

import pathlib
from typing import NamedTuple, Optional

from declared_settings import Registry


class Paper(NamedTuple):
    """A paper.

    Attributes:
        title: without what follows a colon.
        year: of its publication.
        folder: where the claims, published tables and flag files are of a paper that a
            module from outside registers; None where they are in the project's folders.
    """

    title: str
    year: int
    folder: Optional[pathlib.Path] = None


PAPERS: Registry[Paper] = Registry("paper")
"""The papers by their short names, in the order of their years."""

for _name, _title, _year in (
    ("DA", "Towards Effective Device-Aware Federated Learning", 2019),
    ("PMC", "Prioritized Multi-Criteria Federated Learning", 2020),
    ("AdaFed", "Performance-based Adaptive Federated Learning", 2022),
    ("Dual", "Dual-Criterion Model Aggregation in Federated Learning", 2024),
):
    PAPERS.register(_name, Paper(_title, _year))


def folders(project_folder: pathlib.Path) -> list[pathlib.Path]:
    """Returns a folder of the project, and those of the papers from outside."""
    return [
        project_folder,
        *(paper.folder for paper in PAPERS.values() if paper.folder),
    ]
