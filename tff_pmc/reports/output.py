"""The forms in which tables and figures are written.

A report says what is in its tables and figures, and the two writers (`grids.write` and
`figures.save`) write them in the forms that are in force:

    with output.using(output.Output(tables="latex", figures="pdf")):
        REPORTS["pmc_table4"](runs, folder)
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
from collections.abc import Iterator

TABLES = ("markdown", "csv", "latex")
"""The forms of tables. The numbers are always written as CSV; `csv` writes no page
beside them."""

FIGURES = ("png", "pdf")
"""The forms of figures; `pdf` writes a vector PDF beside the PNG."""

NO_FIGURES = "none"
"""No file of a figure is written, where tables alone are wanted."""


@dataclasses.dataclass(frozen=True)
class Output:
    """The forms that are written.

    Attributes:
        tables: one of `TABLES`.
        figures: one of `FIGURES`, or `NO_FIGURES`.
    """

    tables: str = "markdown"
    figures: str = "png"

    def __post_init__(self) -> None:
        """Refuses a form that there is not, with a `ValueError`."""
        figures = (*FIGURES, NO_FIGURES)
        for value, known in ((self.tables, TABLES), (self.figures, figures)):
            if value not in known:
                raise ValueError(f"{value!r} is none of {', '.join(known)}")


_PLAIN = Output()
_in_force: contextvars.ContextVar[Output] = contextvars.ContextVar(
    "output", default=_PLAIN
)


def current() -> Output:
    """Returns the forms in force; by default Markdown and PNG."""
    return _in_force.get()


@contextlib.contextmanager
def using(forms: Output) -> Iterator[None]:
    """Puts forms in force, for as long as the context lasts."""
    token = _in_force.set(forms)
    try:
        yield
    finally:
        _in_force.reset(token)
