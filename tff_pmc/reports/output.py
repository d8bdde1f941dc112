"""The one writer of reports, and the forms in which it writes tables and figures.

    with output.using(output.Output(tables="latex", figures="pdf")):
        text = output.write(REPORTS["pmc_table4"](results), folder)

A report itself writes no file.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import os
from collections.abc import Iterator

from leaf_data.formats.data_files import expand_path
from tff_pmc.reports import Report

TABLE_FORMATS = ("markdown", "csv", "latex")
"""The forms of tables. The numbers are always written as CSV; `csv` writes no page."""

FIGURE_FORMATS = ("png", "pdf")
"""The forms of figures; `pdf` also writes a vector PDF."""

NO_FIGURES = "none"
"""No file of a figure is written, where tables alone are wanted."""


@dataclasses.dataclass(frozen=True)
class Output:
    """The formats to write: one of `TABLE_FORMATS`, and a figure format or none."""

    tables: str = "markdown"
    figures: str = "png"

    def __post_init__(self) -> None:
        """Raises a `ValueError` for an unknown format."""
        figures = (*FIGURE_FORMATS, NO_FIGURES)
        for value, formats in ((self.tables, TABLE_FORMATS), (self.figures, figures)):
            if value not in formats:
                raise ValueError(f"{value!r} is not one of {', '.join(formats)}")


_PLAIN = Output()
_current = contextvars.ContextVar("output", default=_PLAIN)


def current() -> Output:
    """Returns the current formats; by default Markdown and PNG."""
    return _current.get()


@contextlib.contextmanager
def using(forms: Output) -> Iterator[None]:
    """Sets the current formats within the context."""
    token = _current.set(forms)
    try:
        yield
    finally:
        _current.reset(token)


def write(report: Report, folder: str, about: str = "") -> str:
    """Writes the files of a report in the current formats; returns its text.

    The folder is made if need be, and files of the same names are replaced. `about`
    is what LaTeX captions name as the report's subject; see `pages.Page.latex`.
    """
    folder = expand_path(folder)
    os.makedirs(folder, exist_ok=True)
    forms = current()
    options = {"float_format": f"%.{report.digits}g"} if report.digits else {}
    for name, table in report.tables.items():
        text = table.to_csv(index=table.index.dtype.kind == "O", **options)
        _write(os.path.join(folder, f"{name}.csv"), text)
    for name, page in report.pages.items():
        if forms.tables == "markdown":
            _write(os.path.join(folder, f"{name}.md"), page.markdown())
        elif forms.tables == "latex":
            _write(os.path.join(folder, f"{name}.tex"), page.latex(name, about))
    if report.figures and forms.figures != NO_FIGURES:
        from tff_pmc.reports.figures import figure_layout

        for name, figure in report.figures.items():
            stem = os.path.join(folder, name)
            figure_layout.save(figure, stem, pdf=forms.figures == "pdf")
    return report.text


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.write(text)
