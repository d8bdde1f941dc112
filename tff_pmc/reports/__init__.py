"""Tables and figures made of run folders; knows nothing of training or TFF.

A report is a function that writes files into a folder and returns text for a terminal.
The modules of `tff_pmc.reports.papers`, one for each published table or figure,
register theirs when they are imported; the registries import them when they are first
looked into. Until then neither pandas nor matplotlib is imported.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Optional, Protocol

from leaf_data.declare import Registry

if TYPE_CHECKING:
    from tff_pmc.reports.read import Run


class Report(Protocol):
    """A function that writes the files of a report into a folder."""

    def __call__(
        self,
        runs: Sequence[Run],
        folder: str,
        *,
        strictly_above: Optional[bool] = None,
    ) -> str:
        """Returns the report as text for a terminal, empty for nothing.

        Args:
            runs: the runs of an experiment, in the order of its rows.
            folder: the folder for the files; files of the same names are replaced.
            strictly_above: whether a target is reached only above it; by default the
                runs' own rule.
        """


class SeedReport(Protocol):
    """A function that writes the files of a report on runs under several seeds."""

    def __call__(
        self,
        by_seed: Mapping[int, Sequence[Run]],
        folder: str,
        *,
        baseline: str,
        strictly_above: Optional[bool] = None,
    ) -> str:
        """Returns the report as text for a terminal, empty for nothing.

        Args:
            by_seed: the runs of each seed, of the same orderings or systems.
            folder: the folder for the files; files of the same names are replaced.
            baseline: the label of the ordering, or the title of the system, that the
                others are held against.
            strictly_above: whether a target is reached only above it; by default the
                runs' own rule.
        """


FOR_ALL = ("fairness",)
"""The names of the reports that every experiment has beside its own."""

FOR_ALL_SEEDS = ("seed_table",)
"""The names of the reports over several seeds that every experiment has."""

_PAPERS = "tff_pmc.reports.papers"
REPORTS: Registry[Report] = Registry("report", _PAPERS)
"""The reports on the runs of an experiment, by name."""

SEED_REPORTS: Registry[SeedReport] = Registry("report over several seeds", _PAPERS)
"""The reports on the runs of an experiment under several seeds, by name."""


def _write_of(module: str) -> Any:
    """Returns the function `write` of a module here, imported when it is called."""

    def write(*args: Any, **options: Any) -> Any:
        found = importlib.import_module(f"{__name__}.{module}")
        return found.write(*args, **options)

    return write


# These belong to no paper, so that no module of theirs is found by the registries.
REPORTS.register("rounds_to_target", _write_of("tables"))
REPORTS.register("fairness", _write_of("fairness_page"))
SEED_REPORTS.register("ordering_effect", _write_of("effect"))
SEED_REPORTS.register("system_effect", _write_of("system_effect"))
SEED_REPORTS.register("seed_table", _write_of("seed_table"))
