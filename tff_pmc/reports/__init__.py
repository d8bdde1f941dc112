"""Tables and figures made of run folders; knows nothing of training or TFF.

A report is a function of runs that returns a `Report`: tables, pages, figures and a
text for a terminal. It writes nothing; `output.write` puts it into a folder. The
modules of `tff_pmc.reports.papers`, one for each published table or figure, register
theirs when they are imported; the registries import them when they are first looked
into. Until then neither pandas nor matplotlib is imported.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from leaf_data.declare import Registry

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from tff_pmc.record.read import Run
    from tff_pmc.reports.pages import Page


@dataclasses.dataclass(frozen=True)
class Report:
    """What a report says, and its files by their names without `.csv`, `.png`, ...

    Attributes:
        text: for a terminal; empty for nothing.
        tables: name -> table, for a CSV. An index of texts is its first column.
        pages: name -> page, for Markdown or LaTeX.
        figures: name -> figure, for a PNG, or a PDF beside it.
        digits: the significant digits of the tables' numbers; all of them if 0.
    """

    text: str = ""
    tables: Mapping[str, pd.DataFrame] = dataclasses.field(default_factory=dict)
    pages: Mapping[str, Page] = dataclasses.field(default_factory=dict)
    figures: Mapping[str, Figure] = dataclasses.field(default_factory=dict)
    digits: int = 0


class RunsReport(Protocol):
    """A report on the runs of an experiment."""

    def __call__(self, runs: Sequence[Run]) -> Report:
        """Returns the report on runs, which are in the order of the rows."""


class SeedReport(Protocol):
    """A report on runs under several seeds."""

    def __call__(
        self, by_seed: Mapping[int, Sequence[Run]], *, baseline: str
    ) -> Report:
        """Returns the report on the runs of each seed, of the same labels.

        `baseline` is the label of the ordering, or the title of the system, that the
        others are held against.
        """


FOR_ALL = ("fairness", "counterfactuals")
"""The names of the reports that every experiment has beside its own."""

FOR_ALL_SEEDS = ("seed_table",)
"""The names of the reports over several seeds that every experiment has."""

_PAPERS = "tff_pmc.reports.papers"
REPORTS: Registry[RunsReport] = Registry("report", _PAPERS)
"""The reports on the runs of an experiment, by name."""

SEED_REPORTS: Registry[SeedReport] = Registry("report over several seeds", _PAPERS)
"""The reports on the runs of an experiment under several seeds, by name."""


def _report_of(place: str, *args: Any, **options: Any) -> Any:
    """Returns what a function of a module here returns, as `effect.report`."""
    module, name = place.split(".")
    of_module = importlib.import_module(f"{__name__}.{module}")
    return getattr(of_module, name)(*args, **options)


# These belong to no paper, so that no module of theirs is found by the registries.
_OF_NO_PAPER: Sequence[tuple[Registry[Any], str, str]] = (
    (REPORTS, "rounds_to_target", "tables.report"),
    (REPORTS, "fairness", "fairness_page.report"),
    (REPORTS, "counterfactuals", "one_step_effects.report"),
    (SEED_REPORTS, "ordering_effect", "effect.report"),
    (SEED_REPORTS, "system_effect", "effect.systems_report"),
    (SEED_REPORTS, "spread_effect", "effect.spread_report"),
    (SEED_REPORTS, "seed_table", "summary.seeds_report"),
)
for _registry, _name, _place in _OF_NO_PAPER:
    _registry.register(_name, functools.partial(_report_of, _place))
