"""Tables and figures made of runs' records, without training or TFF.

    from tff_pmc.reports import REPORTS, output

    results = tff_pmc.read_results("runs/quickstart-20260101-120000")
    text = output.write(REPORTS["summary"](results), "tables")

A report is a function of `Results` that returns a `Report`: tables, pages, figures and
a text for a terminal. It writes nothing; `output.write` puts it into a folder. The
modules of `tff_pmc.reports.papers`, one for each published table or figure, register
theirs when they are imported; the registry imports them when it is first looked into.
Until then neither pandas nor matplotlib is imported.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from declared_settings import Registry

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from tff_pmc.record.results import Results
    from tff_pmc.reports.pages import Page


@dataclasses.dataclass(frozen=True)
class Report:
    """What a report found, and its files by their names without `.csv`, `.png`, ...

    An empty one is of runs that the report is not about: a printed table is of one
    seed, a paired difference of several.

    Attributes:
        text: for a terminal; empty for nothing.
        tables: name -> table, for a CSV. An index of texts is its first column.
        pages: name -> page, for Markdown or LaTeX.
        figures: name -> figure, for a PNG, and a PDF with it.
        digits: the significant digits of the tables' numbers; all of them if 0.
    """

    text: str = ""
    tables: Mapping[str, pd.DataFrame] = dataclasses.field(default_factory=dict)
    pages: Mapping[str, Page] = dataclasses.field(default_factory=dict)
    figures: Mapping[str, Figure] = dataclasses.field(default_factory=dict)
    digits: int = 0


REPORTS: Registry[Callable[[Results], Report]] = Registry(
    "report", "tff_pmc.reports.papers"
)
"""The reports, by name: each takes the runs of one seed, or of several."""

FOR_ALL = ("summary", "fairness", "counterfactuals", "classes", "weights")
"""The names of the reports that every experiment has with those it names."""


def _report_of(place: str, results: Results) -> Report:
    """Returns the report of a function of a module here, such as `effect.orderings`."""
    module, name = place.split(".")
    of_module = importlib.import_module(f"{__name__}.{module}")
    found: Report = getattr(of_module, name)(results)
    return found


# The registry looks for modules of papers; these belong to none.
BEYOND_PAPERS = {
    "rounds_to_target": "results_table.report",
    "summary": "summary.report",
    "fairness": "summary.fairness",
    "counterfactuals": "one_step_effects.report",
    "classes": "classes.report",
    "weights": "client_weights.report",
    "ordering_effect": "effect.orderings",
    "algorithm_effect": "effect.algorithms",
    "spread_effect": "effect.spread",
}
"""The reports beyond the papers: name -> `module.function`. They also take losses."""

for _name, _place in BEYOND_PAPERS.items():
    REPORTS.register(_name, functools.partial(_report_of, _place))
