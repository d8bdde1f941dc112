"""Texts from records and data, made harmless where people look at them.

The names of clients, labels and the sources of data can be anybody's words. On a
terminal a control character steers it; in a spreadsheet a cell that begins with `=` is
a formula, which can start programs; in Markdown a bar ends a cell; in a figure a dollar
sign begins a formula, which may be none and so end in an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
_FORMULA = re.compile(r"[=+\-@\t].", re.DOTALL)
# An underscore within a word, and "<" before no tag, are themselves.
_MARKUP = re.compile(
    r"[\\|`*\[\]$]|<(?=[a-zA-Z/!?])|&(?=[#a-zA-Z])|(?<![^\W_])_|_(?![^\W_])"
)
_HTML_OR_LINK = re.compile(r"<(?=[a-zA-Z/!?])|\](?=\()")
# Before these a backslash would not do: there may be another one before it.
_ENTITIES = {"<": "&lt;", "]": "&#93;"}
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    # Or they could be an option, and the star, of the line break before them.
    "[": "{[}",
    "*": "{*}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "≻": r"$\succ$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "±": r"$\pm$",
    "✓": r"$\checkmark$",
    "†": r"$\dagger$",
    "—": r"\textemdash{}",
    "–": r"\textendash{}",
    "−": "$-$",
    "…": r"\ldots{}",
}
_MINUS = re.compile(r"(?<![\w)\]-])-(?=\.?\d)")
_CODE = re.compile(r"`([^`]*)`")


def printable(text: str) -> str:
    r"""Returns a text for a terminal or a page: control characters as `\x1b` or `\r`.

    Tabs and line breaks stay.
    """
    return _CONTROLS.sub(lambda one: one[0].encode("unicode_escape").decode(), text)


def message(error: object) -> str:
    """Returns an error in one line for a terminal; of a long one both ends."""
    line = printable(" ".join(str(error).split()))
    return line if len(line) <= 900 else f"{line[:600]} ... {line[-250:]}"


def markdown_cell(text: str) -> str:
    """Returns a text as one cell of a Markdown table, without any markup."""
    shown = {"<": "&lt;"}  # Not every Markdown takes a backslash before it.
    return _MARKUP.sub(lambda match: shown.get(match[0], f"\\{match[0]}"), _line(text))


def markdown_text(text: str) -> str:
    """Returns a text as one line of Markdown, with its markup but HTML and links."""
    return _HTML_OR_LINK.sub(lambda match: _ENTITIES[match[0]], _line(text))


def figure_text(text: str) -> str:
    """Returns a name as a text of matplotlib's, such as a label or part of a title.

    A name between dollar signs is not read as a formula, and one that begins with an
    underscore is not left out of the legend. Two such texts may be put together.
    """
    line = _line(text).replace("$", r"\$")
    return f" {line}" if line.startswith("_") else line


def latex_text(text: str) -> str:
    r"""Returns a text as LaTeX: no character of it is a command.

    What is between backticks is set as code. The signs that our pages have need the
    package amssymb. A minus sign is one, and a hyphen alone, a missing number, a dash.
    """
    line = "–" if text == "-" else _MINUS.sub("−", _line(text))
    escaped = "".join(_LATEX.get(character, character) for character in line)
    escaped = escaped.replace("--", "-{}-")  # Of a flag: no dash.
    return _CODE.sub(r"\\texttt{\1}", escaped)


def spreadsheet_cell(value: Any) -> Any:
    """Returns a value for a CSV that people open; a text is never a formula.

    As spreadsheets have it, a quote before it makes a formula a text. Numbers, and
    texts that are numbers, stay as they are.
    """
    if not isinstance(value, str):
        return value
    text = printable(value).replace("\n", "\\n")
    return f"'{text}" if _FORMULA.match(text) and not _is_number(text) else text


def write_csv(table: pd.DataFrame, path: str, **options: Any) -> None:
    """Writes a table as a CSV that people open, with options of pandas' `to_csv`.

    Texts in its cells, columns and index are escaped.
    """
    import pandas as pd  # The command line's words need the rest without it.

    safe = table.copy()
    for place, dtype in enumerate(table.dtypes):
        if dtype.kind == "O":
            cells = [spreadsheet_cell(value) for value in table.iloc[:, place]]
            safe.isetitem(place, pd.Series(cells, table.index, dtype=object))
    safe.columns = table.columns.map(spreadsheet_cell)
    if table.index.dtype.kind == "O":
        safe.index = table.index.map(spreadsheet_cell)
    # Of a name pandas would make a home, an address or a compression.
    with open(path, "w", encoding="utf-8", newline="") as file:
        safe.to_csv(file, **options)


def write_page(path: str, page: str) -> None:
    """Writes a page for people, such as a Markdown file, in UTF-8."""
    with open(path, "w", encoding="utf-8") as file:
        file.write(printable(page))


def _line(text: str) -> str:
    return printable(text).replace("\n", " ").replace("\t", " ")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
