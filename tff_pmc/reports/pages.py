"""Pages of text and tables, in Markdown, and grids of cells as text.

page = Page("A table", [Items(["A note."]), Table(grid)])
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Union

from tff_pmc.reports import Report
from tff_pmc.reports.escape import markdown_cell, one_line, printable

if TYPE_CHECKING:
    import pandas as pd

Grid = Sequence[Sequence[str]]
"""Lines of equally many cells; the first line is the head."""


class Heading(NamedTuple):
    """The heading of a part."""

    text: str


class Items(NamedTuple):
    """A list of sentences."""

    texts: Sequence[str]


class Table(NamedTuple):
    """A table.

    Attributes:
        grid: its cells.
        left: the number of columns, from the first, that are set flush left; the
            others are set flush right.
    """

    grid: Grid
    left: int = 1


Block = Union[Heading, Items, Table, str]
"""A part of a page; a text is a paragraph."""


class Page(NamedTuple):
    """A page: its title, and what is below it."""

    title: str
    blocks: Sequence[Block]

    def markdown(self) -> str:
        """Returns the page as Markdown."""
        parts = [f"# {self.title}", *map(_markdown, self.blocks)]
        return printable("\n\n".join(filter(None, parts)) + "\n")


def report(
    name: str,
    title: str,
    notes: Sequence[str],
    parts: Mapping[str, Grid],
    table: pd.DataFrame,
    digits: int = 10,
) -> Report:
    """Returns grids and notes, as text and as the page NAME, with the table NAME."""
    blocks: list[Block] = [Items(notes)]
    for head, grid in parts.items():
        blocks += [Heading(head), Table(grid, left=2)]
    texts = [f"{head}\n{grid_text(grid, 2)}" for head, grid in parts.items()]
    text = "\n\n".join([title, *texts, "\n".join(notes)])
    return Report(text, {name: table}, {name: Page(title, blocks)}, digits=digits)


def grid_text(grid: Grid, left: int = 1) -> str:
    """Returns a grid in columns that line up; see `Table`."""
    widths = [max(map(len, column)) for column in zip(*grid)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in grid
    )


MISSING = "—"
"""What a table has in the place of a number: a target not reached, or no value."""


def number(value: float, form: str, missing: str = "") -> str:
    """Returns a number in a format, or `missing` for NaN and infinity."""
    return format(value, form) if math.isfinite(value) else missing


def markdown_table(grid: Grid, left: int = 1) -> str:
    """Returns a grid as a Markdown table; see `Table`."""
    head, *lines = grid
    rule = ["---" if place < left else "---:" for place in range(len(head))]
    return "\n".join(
        f"| {' | '.join(map(markdown_cell, line))} |" for line in [head, rule, *lines]
    )


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"## {one_line(block.text)}"
    if isinstance(block, Table):
        return markdown_table(block.grid, block.left)
    if isinstance(block, Items):
        return "\n".join(f"- {one_line(text)}" for text in block.texts)
    return block
