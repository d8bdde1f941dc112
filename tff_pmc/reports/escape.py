"""Texts from records and data, made harmless where people look at them.

The names of clients, labels and the sources of data can be anybody's words. On a
terminal a control character steers it; in Markdown a bar ends a cell; in a figure a
dollar sign begins a formula, which may be none and so end in an error.
"""

from __future__ import annotations

import re

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def printable(text: str) -> str:
    r"""Returns a text for a terminal or a page: control characters as `\x1b` or `\r`.

    Tabs and line breaks stay.
    """
    return _CONTROLS.sub(lambda one: one[0].encode("unicode_escape").decode(), text)


def one_line(text: str) -> str:
    """Returns a text for one line: printable, with spaces for its line breaks."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def message(error: object) -> str:
    """Returns an error in one line for a terminal; of a long one both ends."""
    line = printable(" ".join(str(error).split()))
    return line if len(line) <= 900 else f"{line[:600]} ... {line[-250:]}"


def markdown_cell(text: str) -> str:
    """Returns a text as one cell of a Markdown table."""
    return one_line(text).replace("|", r"\|")


def figure_text(text: str) -> str:
    """Returns a name as a text of matplotlib's, such as a label or part of a title.

    A name between dollar signs is not read as a formula, and one that begins with an
    underscore is not left out of the legend. Two such texts may be put together.
    """
    line = one_line(text).replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line
