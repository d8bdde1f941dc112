"""`DataError`, and helpers that put names and errors into its one-line message."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Iterator

_LONGEST = 256  # Characters of a name.
# Control characters, halves of characters that no file can hold, ends of lines.
_REFUSED = ("Cc", "Cs", "Zl", "Zp")


class DataError(ValueError):
    """Data, or a request for data, that cannot be used as it is.

    Raised for an unknown data set, option or client, for missing, truncated or corrupt
    files, and for arrays that do not fit together. The message is one line and names
    the file, the option or the array.
    """


def shorten(text: object, most: int = 200) -> str:
    """Returns the beginning of a text, or of an object's, for one line of a message.

    Damaged data can be quoted in it: ends of lines become spaces, other control
    characters are escaped, and `most` characters are kept.
    """
    # Megabytes of text would be as many words, each with a separate allocation.
    line = " ".join(str(text)[: 10 * most].split())[:most]
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in line)


def error_summary(error: object, most: int = 200) -> str:
    """Returns an exception's message as `shorten` does, or its type if it has none."""
    return shorten(error, most) or type(error).__name__


@contextlib.contextmanager
def raising_data_error(
    path: str, problem: str = "cannot be read", *kinds: type[Exception]
) -> Iterator[None]:
    """Turns an `OSError`, or one of these kinds, into a `DataError` with the path."""
    caught: tuple[type[Exception], ...] = (OSError, *kinds)
    try:
        yield
    except DataError:
        raise
    except caught as error:
        reason = getattr(error, "strerror", None) or error_summary(error)
        raise DataError(f"{path}: {problem} ({reason})") from error


def check_name(name: str, what: str = "the name") -> str:
    """Returns a name that can stand in records, tables and messages.

    A name with a line break or another control character would break a record of lines,
    numpy drops a NUL at its end, and one name of megabytes makes an array of names as
    wide for all.

    Raises:
        DataError: it has more than 256 characters, a control character, half of a
            surrogate pair or an end of a line; the message shows its start, escaped.
    """
    if len(name) > _LONGEST:
        raise DataError(
            f"{what} {_start(name)} has {len(name):,} characters, more than {_LONGEST}"
        )
    if name.isascii() and name.isprintable():
        return name
    for character in name:
        if unicodedata.category(character) in _REFUSED:
            raise DataError(
                f"{what} {_start(name)} has the control character "
                f"U+{ord(character):04X}"
            )
    return name


def _start(name: str) -> str:
    return ascii(name[:40]) + ("..." if len(name) > 40 else "")
