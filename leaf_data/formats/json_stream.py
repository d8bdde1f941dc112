"""Reading a large JSON file piece by piece, in bounded memory.

The standard library parses whole texts only. `Reader` keeps a window on the file,
lets the library's parser take one value at a time out of it, and widens it while
the value at its start is not complete.
"""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from leaf_data.errors import DataError, reading
from leaf_data.formats import regular

_BLOCK = 1 << 24
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
# Longer than any token, strings and numbers aside, that the window's end may cut: the
# parser then complains about its start.
_TOKEN = len("-Infinity") + 1


class Reader:
    """One pass over a JSON file; a context manager.

    Memory is the largest value asked for, as text and as Python objects, and a block
    of 16 MB. All errors of reading and parsing become a `DataError` that names the
    file and the place.

    Example:
        with Reader(path) as stream:
            for key in stream.keys():
                print(key, stream.value())
            print(stream.finish())
    """

    def __init__(
        self, path: str, progress: Callable[[int], Any] = lambda count: None
    ) -> None:
        """Opens the file."""
        self._path = path
        self._progress = progress
        self._digest = hashlib.sha256()
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._before, self._ended = "", 0, 0, False
        with reading(path):
            self._file = regular.open_file(path)

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def keys(self) -> Iterator[str]:
        """Yields the keys of the object that comes next.

        After each the caller has to take its value, by `value` or by `keys`.
        """
        self._take("{")
        if self._peek() == "}":
            self._take("}")
            return
        while True:
            if self._peek() != '"':
                raise self._fault("a name in quotes should be here")
            key = self.value()
            self._take(":")
            yield key
            if self._take(",}") == "}":
                return

    def value(self, of: str = "") -> Any:
        """Returns the value that comes next, as `json.loads` would return it."""
        self._peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated")
                if self._ended or error.pos < len(self._text) - _TOKEN and not cut:
                    raise self._fault(error.msg, error.pos, of) from error
            except (ValueError, RecursionError) as error:
                # A number of thousands of digits, or thousands of brackets.
                raise self._fault(str(error), of=of) from error
            else:
                # A number near the window's end may go on behind it: 1 and "." or "e-".
                if self._ended or end <= len(self._text) - _TOKEN:
                    self._at = end
                    return value
            self._more()

    def finish(self) -> str:
        """Makes sure that nothing follows; returns the file's sha256.

        Only then is everything read, and the value known to be whole.
        """
        if self._peek():
            raise self._fault("nothing more should follow")
        return self._digest.hexdigest()

    def _peek(self) -> str:
        """Returns the next character that is no space, "" at the end; stays there."""
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text) or self._ended:
                return self._text[self._at : self._at + 1]
            self._more()

    def _take(self, expected: str) -> str:
        found = self._peek()
        if not found or found not in expected:
            raise self._fault(f"{' or '.join(expected)} should be here")
        self._at += 1
        return found

    def _more(self) -> None:
        """Widens the window, by at least what it holds: a long value costs O(n)."""
        left = self._text[self._at :]
        with reading(self._path, "cannot be read", UnicodeDecodeError):
            block = self._file.read(max(_BLOCK, len(left)))
            text = self._decode.decode(block, final=not block)
        self._digest.update(block)
        self._progress(len(block))
        self._before += self._at
        self._text, self._at, self._ended = left + text, 0, not block

    def _fault(self, what: str, at: int | None = None, of: str = "") -> DataError:
        at = self._at if at is None else at
        cut = at >= len(self._text) - 1 or what.startswith("Unterminated")
        if self._ended and cut and "nothing more" not in what:
            what = f"it ends too early; {what}"
        what += f", character {self._before + at + 1}"
        where = f"{self._path}: {of}: " if of else f"{self._path}: "
        return DataError(f"{where}truncated or not JSON ({what})")
