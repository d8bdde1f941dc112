r"""Pages as LaTeX that `\input` takes into a paper; its tables are those of pandas.

They are in the style of booktabs, and have a label and a caption that names what they
show and of which data.
"""

from __future__ import annotations

import re

from tff_pmc.reports.escape import one_line
from tff_pmc.reports.pages import Heading, Items, Page, Table

# What LaTeX obeys, and the signs of our pages that it does not have.
_ESCAPED = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "[": "{[}",  # Or it could be an option of the line break before it.
    "≻": r"$\succ$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "±": r"$\pm$",
    "–": r"\textendash{}",
    "—": r"\textemdash{}",
    "✓": r"$\checkmark$",
    "−": "$-$",
}
_MINUS = re.compile(r"(?<![\w)\]-])-(?=\.?\d)")


def latex(page: Page, name: str, about: str = "") -> str:
    """Returns the page NAME as LaTeX; `about` names the data and runs that it is of.

    A caption is the page's title, the heading above the table, the paragraph right
    before it, and `about`. The labels are `tab:ABOUT-NAME-1` and so on, of which ABOUT
    is what `about` has before its first colon.
    """
    start = [about.partition(":")[0]] if ":" in about else []
    if start and start[0] in page.title:
        about = about.partition(":")[2].strip()  # Once is enough.
    stem = re.sub(r"[^A-Za-z0-9]+", "-", "-".join([*start, name]))
    parts = ["% Needs the packages amssymb and booktabs."]
    heading, before, number = "", "", 0
    for block in page.blocks:
        if before and not isinstance(block, Table):
            parts.append(escaped(before))
        if isinstance(block, Heading):
            heading = block.text
        elif isinstance(block, Table):
            number += 1
            caption = _sentences(page.title, heading, before, about)
            parts.append(_table(block, caption, f"tab:{stem}-{number}"))
        elif isinstance(block, Items) and block.texts:
            lines = [rf"  \item {escaped(text)}" for text in block.texts]
            parts.append("\n".join([r"\begin{itemize}", *lines, r"\end{itemize}"]))
        before = block if isinstance(block, str) else ""
    return "\n\n".join([*parts, escaped(before)]).rstrip() + "\n"


def escaped(text: str) -> str:
    """Returns a text as LaTeX: no character of it is a command, and a minus is one."""
    line = _MINUS.sub("−", one_line(text))
    return "".join(_ESCAPED.get(character, character) for character in line)


def _table(table: Table, caption: str, label: str) -> str:
    head, *lines = [[escaped(cell) for cell in line] for line in table.grid]
    left = min(table.left, len(head))
    import pandas as pd  # Only here: --help is quick without it.

    made: str = pd.DataFrame(lines, columns=head).to_latex(
        index=False,
        escape=False,
        column_format="l" * left + "r" * (len(head) - left),
        caption=escaped(caption),
        label=label,
    )
    return made.rstrip()


def _sentences(*texts: str) -> str:
    """Returns the lines of texts one after another, each ended by a mark."""
    lines = [line.rstrip(": ") for text in texts for line in text.splitlines()]
    full = [line[0].upper() + line[1:] for line in lines if line]
    return " ".join(line if line[-1] in ".?!" else f"{line}." for line in full)
