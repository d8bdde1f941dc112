"""Tables and figures of runs' records, without training or TFF.

    from tff_pmc.reports import REPORTS, output

    results = tff_pmc.read_results("runs/quickstart-20260101-120000")
    text = output.write(REPORTS["summary"](results), "tables")

A report is a function of `Results` that returns a `Report`: tables, pages, figures and
a text for a terminal. It writes nothing; `output.write` puts it into a folder. The
modules of `tables`, on any runs, and of `papers`, one for each published table or
figure, register theirs when they are imported; the registry imports them when it is
first looked into. Until then neither pandas nor matplotlib is imported. What they
compute is in `statistics`, and what they draw in `figures`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from declared_settings import Registry
from tff_pmc.reports.page_model import (
    Block,
    Grid,
    Heading,
    Items,
    Page,
    Table,
    grid_text,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from tff_pmc.record.results import Results


@dataclasses.dataclass(frozen=True)
class Report:
    """The text of a report, and its files by their names without `.csv`, `.png`, ...

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

    @classmethod
    def from_grids(
        cls,
        name: str,
        title: str,
        notes: Sequence[str],
        parts: Mapping[str, Grid],
        table: pd.DataFrame,
        digits: int = 10,
    ) -> Report:
        """Returns grids and notes as text and as the page NAME, and the table NAME."""
        blocks: list[Block] = [Items(notes)]
        for head, grid in parts.items():
            blocks += [Heading(head), Table(grid, left=2)]
        texts = [f"{head}\n{grid_text(grid, 2)}" for head, grid in parts.items()]
        text = "\n\n".join([title, *texts, "\n".join(notes)])
        return cls(text, {name: table}, {name: Page(title, blocks)}, digits=digits)


REPORTS: Registry[Callable[[Results], Report]] = Registry(
    "report", "tff_pmc.reports.tables", "tff_pmc.reports.papers"
)
"""The reports, by name: each takes the runs of one seed, or of several."""

FOR_ALL = ("summary", "fairness", "counterfactuals", "classes", "weights")
"""The names of the reports that every experiment has with those it names."""

BEYOND_PAPERS = (
    *("rounds_to_target", *FOR_ALL),
    *("ordering_effect", "algorithm_effect", "spread_effect"),
)
"""The names of the reports beyond the papers. They also take losses."""


def single_seed_only(report: Callable[..., Report]) -> Callable[..., Report]:
    """Makes a report empty for several seeds: a row of the papers is one run."""

    @functools.wraps(report)
    def of_runs(results: Results, **options: Any) -> Report:
        return Report() if len(results.seeds) > 1 else report(results, **options)

    return of_runs
