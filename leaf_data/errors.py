"""The exception that is raised for data, and how it quotes others and names of data."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Iterator

_LONGEST = 256  # Characters of a name.
# Control characters, halves of characters that no file can hold, ends of lines.
_REFUSED = ("Cc", "Cs", "Zl", "Zp")


class DataError(ValueError):
    """Data, or a request for data, that cannot be used as it is.

    Raised for a data set, option or client that does not exist, for missing,
    truncated or corrupt files, and for arrays that do not fit together. The
    message is one line and names the file, the option or the array.
    """


def one_line(error: object, most: int = 200) -> str:
    """Returns an exception's message, for one line of another error.

    What is damaged can be quoted in it: ends of lines become spaces, other control
    characters are escaped, and 200 characters, or `most`, are enough.
    """
    # Megabytes of text would be as many words, each with a separate allocation.
    words = " ".join(str(error)[: 10 * most].split())[:most] or type(error).__name__
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in words)


@contextlib.contextmanager
def reading(
    path: str, words: str = "cannot be read", *kinds: type[Exception]
) -> Iterator[None]:
    """Makes an `OSError`, or one of other kinds, a `DataError` that names the file."""
    caught: tuple[type[Exception], ...] = (OSError, *kinds)
    try:
        yield
    except DataError:
        raise
    except caught as error:
        reason = getattr(error, "strerror", None) or one_line(error)
        raise DataError(f"{path}: {words} ({reason})") from error


def check_name(name: str, what: str = "the name") -> str:
    """Returns a name that can stand in records, tables and messages.

    A name with an end of a line or another control character in it would break a
    record that is cut by lines, numpy drops a NUL at its end, and one name of
    megabytes makes an array of names as wide for all.

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
