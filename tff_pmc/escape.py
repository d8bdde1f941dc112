"""Escapes for texts from data, such as names of clients, in terminals and Markdown.

On a terminal a control character steers it; in Markdown a bar ends a cell.
"""


def printable(text: str) -> str:
    r"""Returns a text with its control characters as `\x1b` or `\r`, lines kept."""
    return "".join(
        c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text
    )


def single_line(text: str) -> str:
    """Returns a text for one line: printable, with spaces for its line breaks."""
    return printable(text).replace("\n", " ").replace("\t", " ")


def error_text(error: object) -> str:
    """Returns an error in one line for a terminal; of a long one both ends."""
    line = printable(" ".join(str(error).split()))
    return line if len(line) <= 900 else f"{line[:600]} ... {line[-250:]}"


def markdown_cell(text: str) -> str:
    """Returns a text as one cell of a Markdown table."""
    return single_line(text).replace("|", r"\|")
