"""The exception that is raised for data, and the words of others in it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


class DataError(ValueError):
    """Data, or a request for data, that cannot be used as it is.

    Raised for a data set, option or client that does not exist, for missing,
    truncated or corrupt files, and for arrays that do not fit together. The
    message is one line and names the file, the option or the array.
    """


def one_line(error: BaseException) -> str:
    """Returns what an exception says, for the line of a `DataError`.

    What is damaged can be quoted in it: ends of lines become spaces, other control
    characters are escaped, and 200 characters are enough.
    """
    words = " ".join(str(error).split())[:200] or type(error).__name__
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
