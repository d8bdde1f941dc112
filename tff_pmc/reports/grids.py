"""A grid of cells, for a terminal and for a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tff_pmc.reports import pages

Grid = pages.Grid


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


def write(
    path: str, title: str, notes: Sequence[str], parts: Mapping[str, Grid]
) -> str:
    """Writes grids and notes as a page; returns them as text for a terminal.

    Args:
        path: the file; see `pages.write`.
        title: the title of the whole.
        notes: sentences.
        parts: heading -> grid, whose first two columns are set flush left.
    """
    blocks: list[pages.Block] = [pages.Items(notes)]
    for head, grid in parts.items():
        blocks += [pages.Heading(head), pages.Table(grid, left=2)]
    pages.write(path, pages.Page(title, blocks))
    texts = [f"{head}\n{text(grid, 2)}" for head, grid in parts.items()]
    return "\n\n".join([title, *texts, "\n".join(notes)])
