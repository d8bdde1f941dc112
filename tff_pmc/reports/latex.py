r"""Pages as LaTeX that `\input` takes into a paper.

Its tables are in the style of booktabs, have a caption that says what they show and of
which data, and a label, and are no wider than a line: a wider one is scaled down.
"""

from __future__ import annotations

import re

from tff_pmc.reports.escape import latex_text
from tff_pmc.reports.pages import Heading, Items, Page, Table

_MOST_LINES = 40  # Of a table, whose rest is another: a float does not break.
_MOST_LETTERS = 135  # Of a line; smaller letters could not be read.
_LETTERS = 30  # Of a cell, from which on it is broken into lines.
_BROKEN = r">{\raggedright\arraybackslash}p{14em}"
_SCALED = r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"


def latex(page: Page, name: str, about: str = "") -> str:
    """Returns the page NAME as LaTeX; `about` says what data and runs it is of.

    A caption is the page's title, the heading above the table, the paragraph right
    before it, and `about`. The labels are `tab:ABOUT-NAME-1` and so on, of which ABOUT
    is what `about` has before its first colon.
    """
    parts = ["% Needs the packages amssymb, array, booktabs and graphicx."]
    heading, number, before = "", 0, ""
    start = [about.partition(":")[0]] if ":" in about else []
    if start and start[0] in page.title:  # Said once.
        about = about.partition(":")[2].strip()
    stem = re.sub(r"[^A-Za-z0-9]+", "-", "-".join([*start, name]))
    for block in page.blocks:
        if before and not isinstance(block, Table):
            parts.append(latex_text(before))
        if isinstance(block, Heading):
            heading = block.text
        elif isinstance(block, Table):
            number += 1
            caption = _sentences(page.title, _upper(heading), _upper(before), about)
            parts += _tables(block, caption, f"tab:{stem}-{number}")
        elif isinstance(block, Items) and block.texts:
            lines = [rf"  \item {latex_text(text)}" for text in block.texts]
            parts.append(
                "\n".join([r"\begin{itemize}\sloppy", *lines, r"\end{itemize}"])
            )
        before = block if isinstance(block, str) else ""
    if before:
        parts.append(latex_text(before))
    return "\n\n".join(parts) + "\n"


def _sentences(*texts: str) -> str:
    """Returns the lines of texts one after another, each ended by a mark."""
    lines = [line.rstrip(": ") for text in texts for line in text.splitlines()]
    return " ".join(line if line[-1] in ".?!" else f"{line}." for line in lines if line)


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tables(table: Table, caption: str, label: str) -> list[str]:
    """Returns a table, in parts that a page has room for."""
    head, *lines = table.grid
    made: list[str] = []
    for places, broken in _columns(table):
        kinds = ["l" if place < table.left else "r" for place in places]
        columns = "".join(_BROKEN if b else kind for b, kind in zip(broken, kinds))
        for first in range(0, max(len(lines), 1), _MOST_LINES):
            named, *rows = [
                f"    {' & '.join(latex_text(line[place]) for place in places)} \\\\"
                for line in [head, *lines[first:][:_MOST_LINES]]
            ]
            words = f"{caption} Continued." if made else caption
            made.append(
                "\n".join(
                    [
                        r"\begin{table}",
                        r"  \centering",
                        rf"  \caption{{{latex_text(words)}}}",
                        *([] if made else [rf"  \label{{{label}}}"]),
                        _SCALED,
                        rf"  \begin{{tabular}}{{{columns}}}",
                        r"    \toprule",
                        named,
                        r"    \midrule",
                        *rows,
                        r"    \bottomrule",
                        r"  \end{tabular}}",
                        r"\end{table}",
                    ]
                )
            )
    return made


def _columns(table: Table) -> list[tuple[list[int], list[bool]]]:
    """Returns the columns of parts that a line has room for, and which are broken."""
    widths = [max(map(len, column)) for column in zip(*table.grid)]
    first = list(range(table.left))  # They name the lines, and are in each part.
    parts = [[*first]]
    for place in range(table.left, len(widths)):
        taken = sum(min(widths[p], _LETTERS) + 2 for p in [*parts[-1], place])
        if taken > _MOST_LETTERS and len(parts[-1]) > len(first):
            parts.append([*first])
        parts[-1].append(place)
    return [(part, [widths[p] > _LETTERS for p in part]) for part in parts]
