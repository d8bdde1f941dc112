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

from leaf_data.errors import DataError

_BLOCK = 1 << 24
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\n\r]*")
# The longest token, other than a string, that may be cut at the window's end: the
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
        """Opens the file.

        Args:
            path: of the file, UTF-8.
            progress: called with the number of bytes of each block read.
        """
        self._path = path
        self._progress = progress
        self._digest = hashlib.sha256()
        self._decode = codecs.getincrementaldecoder("utf-8-sig")()
        self._text, self._at, self._before, self._ended = "", 0, 0, False
        try:
            self._file = open(path, "rb")  # noqa: SIM115
        except OSError as error:
            raise DataError(f"{path}: cannot be read ({error})") from error

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
        """The keys of the object that comes next.

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

    def value(self) -> Any:
        """The value that comes next, as `json.loads` would return it."""
        self._peek()
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated")
                if self._ended or error.pos < len(self._text) - _TOKEN and not cut:
                    raise self._fault(error.msg, error.pos) from error
            except (ValueError, RecursionError) as error:
                # A number of thousands of digits, or thousands of brackets.
                raise self._fault(str(error)) from error
            else:
                # A number at the window's very end may go on behind it.
                if self._ended or end < len(self._text):
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
        """The next character that is not space, "" at the end; stays there."""
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
        try:
            block = self._file.read(max(_BLOCK, len(left)))
            text = self._decode.decode(block, final=not block)
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{self._path}: cannot be read ({error})") from error
        self._digest.update(block)
        self._progress(len(block))
        self._before += self._at
        self._text, self._at, self._ended = left + text, 0, not block

    def _fault(self, what: str, at: int | None = None) -> DataError:
        at = self._at if at is None else at
        if self._ended and at >= len(self._text) - 1:
            what = f"it ends too early; {what}"
        place = f"character {self._before + at + 1}"
        return DataError(f"{self._path}: truncated or not JSON ({what}, {place})")
