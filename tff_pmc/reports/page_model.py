"""Pages of text and tables, in Markdown, and grids of cells as text.

page = Page("A table", [Items(["A note."]), Table(grid)])
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Union

from tff_pmc.escape import markdown_cell, printable, single_line

if TYPE_CHECKING:
    import pandas as pd

Grid = Sequence[Sequence[str]]
"""Lines of equally many cells; the first line is the head."""


# What LaTeX obeys, and the signs of our pages that it does not have.
_LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "[": "{[}",  # Or it could be an option of the line break before it.
        **{"≻": r"$\succ$", "≤": r"$\le$", "≥": r"$\ge$", "±": r"$\pm$", "−": "$-$"},
        **{"–": "--", "—": "---", "✓": r"$\checkmark$", "†": r"\dag{}"},
    }
)


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

    def latex(self, name: str, about: str = "") -> str:
        r"""Returns the tables of the page NAME as LaTeX, for `\input` in a paper.

        A caption is the page's title, the heading above the table, the paragraph right
        before it, and `about`, which names the data and runs. The labels are
        `tab:ABOUT-NAME-1` and so on, of which ABOUT is what `about` has before its
        first colon. Other text is in comments.
        """
        import pandas as pd  # Only here: --help is quick without it.

        subject, colon, words = about.partition(":")
        if colon and subject in self.title:
            about = words.strip()  # Once is enough.
        stem = re.sub(r"\W+", "-", f"{subject}-{name}" if colon else name, flags=re.A)
        stem = stem.replace("_", "-")
        parts = ["% Needs the packages amssymb and booktabs."]
        heading, before, number_of_table = "", "", 0
        for block in self.blocks:
            if isinstance(block, Heading):
                heading = block.text
            elif isinstance(block, Table):
                number_of_table += 1
                caption_parts = filter(None, (self.title, heading, before, about))
                caption = ". ".join(
                    single_line(text).strip(" .:") for text in caption_parts
                )
                head, *lines = [[*map(_latex, line)] for line in block.grid]
                table = pd.DataFrame(lines, columns=head).to_latex(
                    index=False,
                    escape=False,
                    column_format="l" * block.left + "r" * (len(head) - block.left),
                    caption=_latex(f"{caption}."),
                    label=f"tab:{stem}-{number_of_table}",
                )
                parts.append(table.rstrip())
            else:
                texts = block.texts if isinstance(block, Items) else [block]
                parts += [f"% {single_line(text)}" for text in texts]
            before = block if isinstance(block, str) else ""
        return "\n\n".join(parts) + "\n"


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
"""What a table shows instead of a number: a target not reached, or no value."""


def format_number(value: float, form: str, missing: str = "") -> str:
    """Returns a number in a format, or `missing` for NaN and infinity."""
    return format(value, form) if math.isfinite(value) else missing


def rounds_text(rounds: float) -> str:
    """Returns a number of rounds with two decimals at most; a dash for NaN."""
    if math.isnan(rounds):
        return MISSING
    return f"{rounds:.2f}".rstrip("0").rstrip(".")


def comparison_grid(
    cells: pd.DataFrame,
    head: Sequence[str],
    rows: Sequence[str],
    column: str,
    lines: Mapping[str, str],
) -> Grid:
    """Returns cells as a grid, in which each row has lines: ours, the published, ...

    Args:
        cells: one row per cell, in the grid's order.
        head: the head of the columns before the cells.
        rows: the columns of `cells` that name a row; the line's title, if it has one,
            comes after them.
        column: the column of `cells` that names the grid's column.
        lines: the columns of `cells` with the texts of a line -> the line's title, with
            the names of `cells` in braces. A line without texts is omitted.
    """
    columns = list(dict.fromkeys(cells[column]))
    grid = [[*head, *columns]]
    for keys, part in cells.groupby([*rows], sort=False):
        names, first = [*map(str, keys)], part.iloc[0].to_dict()
        for name, title in lines.items():
            texts = dict(zip(part[column], part[name].fillna("")))
            line = [texts.get(of_column, "") for of_column in columns]
            if any(line):
                titles = [title.format(**first)] if title else []
                grid.append([*names, *titles, *line])
                names = [""] * len(rows)
    return grid


def markdown_table(grid: Grid, left: int = 1) -> str:
    """Returns a grid as a Markdown table; see `Table`."""
    head, *lines = grid
    rule = ["---" if place < left else "---:" for place in range(len(head))]
    return "\n".join(
        f"| {' | '.join(map(markdown_cell, line))} |" for line in [head, rule, *lines]
    )


def _latex(text: str) -> str:
    """Returns a text of which no character is a command of LaTeX."""
    return single_line(text).translate(_LATEX)


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"## {single_line(block.text)}"
    if isinstance(block, Table):
        return markdown_table(block.grid, block.left)
    if isinstance(block, Items):
        return "\n".join(f"- {single_line(text)}" for text in block.texts)
    return block
