r"""Pages of text and tables, and the one writer that makes files of them.

    pages.write("runs/mine/table", Page("A table", [Items(["A note."]), Table(grid)]))

A page is Markdown, or LaTeX that `\input` takes: its tables are in the style of the
package booktabs, and its signs need amssymb.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, Union

from tff_pmc.reports import output
from tff_pmc.reports.escape import latex_text, markdown_cell, write_page

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
    """A page.

    Attributes:
        title: its title.
        blocks: what is below it.
    """

    title: str
    blocks: Sequence[Block]


def write(path: str, page: Page) -> None:
    """Writes a page in the form of tables that is in force (`output.current`).

    Args:
        path: the file without the end of its name, which is `.md` or `.tex`; it is
            replaced. In the form `csv` no page is written.
        page: the page.

    Raises:
        OSError: it cannot be written.
    """
    stem = os.path.splitext(path)[0] if path.endswith((".md", ".tex")) else path
    form = output.current().tables
    if form == "markdown":
        write_page(f"{stem}.md", markdown(page))
    elif form == "latex":
        write_page(f"{stem}.tex", latex(page))


def markdown(page: Page) -> str:
    """Returns a page as Markdown."""
    parts = [f"# {page.title}", *map(_markdown, page.blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def markdown_table(grid: Grid, left: int = 1) -> str:
    """Returns a grid as a Markdown table; see `Table`."""
    head, *lines = grid
    rule = ["---" if place < left else "---:" for place in range(len(head))]
    return "\n".join(
        f"| {' | '.join(map(markdown_cell, line))} |" for line in [head, rule, *lines]
    )


def latex(page: Page) -> str:
    """Returns a page as LaTeX, each table with the heading above it as its caption."""
    title = " ".join(page.title.split())
    parts = [
        "% Needs the packages booktabs and amssymb.",
        rf"\section*{{{latex_text(title)}}}",
    ]
    caption = title
    for block in page.blocks:
        if isinstance(block, Heading):
            caption = block.text
        elif isinstance(block, Table):
            parts.append(_latex_table(block, caption))
        elif isinstance(block, Items) and block.texts:
            lines = [rf"  \item {latex_text(text)}" for text in block.texts]
            parts.append("\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"]))
        elif isinstance(block, str):
            parts.append(latex_text(block))
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"## {block.text}"
    if isinstance(block, Table):
        return markdown_table(block.grid, block.left)
    if isinstance(block, Items):
        return "\n".join(f"- {text}" for text in block.texts)
    return block


def _latex_table(table: Table, caption: str) -> str:
    head, *lines = [[latex_text(cell) for cell in line] for line in table.grid]
    columns = "".join("l" if n < table.left else "r" for n in range(len(head)))
    rows = [f"    {' & '.join(line)} \\\\" for line in lines]
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{latex_text(caption)}}}",
            rf"  \begin{{tabular}}{{{columns}}}",
            r"    \toprule",
            f"    {' & '.join(head)} \\\\",
            r"    \midrule",
            *rows,
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
        ]
    )
