"""The names that data may give its clients, photos and columns."""

from __future__ import annotations

import unicodedata

from leaf_data.errors import DataError

LONGEST = 256
"""The number of characters that a name may have."""

# Control characters, halves of characters that no file can hold, ends of lines.
_REFUSED = ("Cc", "Cs", "Zl", "Zp")


def check(name: str, what: str = "the name") -> str:
    """Returns a name that can stand in records, tables and messages.

    A name with an end of a line or another control character in it would break a
    record that is cut by lines, numpy drops a NUL at its end, and one name of
    megabytes makes an array of names as wide for all.

    Args:
        name: the name.
        what: words for it, for the message.

    Returns:
        The name itself.

    Raises:
        DataError: it has more than 256 characters, a control character, half of a
            surrogate pair or an end of a line; the message shows its start, escaped.
    """
    if len(name) > LONGEST:
        raise DataError(
            f"{what} {_start(name)} has {len(name):,} characters, more than {LONGEST}"
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
