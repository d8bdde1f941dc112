"""A grid of cells, for a terminal and for a Markdown file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tff_pmc.reports.escape import markdown_cell, write_page

Grid = Sequence[Sequence[str]]
"""Lines of equally many cells; the first line is the head."""


def text(grid: Grid, left: int = 1) -> str:
    """Returns the grid in columns that line up.

    Args:
        grid: the cells.
        left: the number of columns, from the first, that are set flush left; the
            others are set flush right.
    """
    widths = [max(map(len, column)) for column in zip(*grid)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place < left else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths))
        ).rstrip()
        for line in grid
    )


def markdown(grid: Grid, left: int = 1) -> str:
    """Returns the grid as a Markdown table; see `text`."""
    head, *lines = grid
    rule = ["---" if place < left else "---:" for place in range(len(head))]
    return "\n".join(
        f"| {' | '.join(map(markdown_cell, line))} |" for line in [head, rule, *lines]
    )


def write(
    path: str, title: str, notes: Sequence[str], parts: Mapping[str, Grid]
) -> str:
    """Writes grids and notes as Markdown; returns them as text for a terminal.

    Args:
        path: the file, which is replaced.
        title: the title of the whole.
        notes: sentences.
        parts: heading -> grid, whose first two columns are set flush left.
    """
    page = f"# {title}\n\n" + "".join(f"- {note}\n" for note in notes)
    for head, grid in parts.items():
        page += f"\n## {head}\n\n{markdown(grid, 2)}\n"
    write_page(path, page)
    texts = [f"{head}\n{text(grid, 2)}" for head, grid in parts.items()]
    return "\n\n".join([title, *texts, "\n".join(notes)])
