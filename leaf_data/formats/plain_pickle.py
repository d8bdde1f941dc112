"""The plain values of a pickle, read without the machine that runs pickles.

A pickle is a program for a machine with a stack. Python's machine imports what a
program names and calls it, and numpy believes what a program says of an array's memory.
This one knows the instructions that write plain values: whatever a program does here,
it makes texts, numbers, lists, tuples, dicts and arrays of bytes, in bounded memory.

A name of a module is a word here, and those that numpy's arrays of unsigned bytes need
are the only ones known: see `pickled_bytes`.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Any, Union

from leaf_data.formats import pickled_bytes

_MARK = object()
_LINE = 1 << 10  # The longest name or number, where one ends with its line.


def load(content: bytes, max_steps: int) -> Any:
    """Returns what a pickle of plain values holds.

    Text of Python 2 is bytes here, as `pickle.load(encoding="bytes")` has it.

    Args:
        content: the pickle, of any protocol.
        max_steps: the number of its instructions that are followed.

    Returns:
        The value: None, a bool, int, str, bytes, list, tuple or dict of such values,
        or `pickled_bytes.UnsignedBytes`.

    Raises:
        pickled_bytes.ForbiddenName: the pickle names something that no array needs.
        ValueError: it is truncated or corrupt, holds anything else or has more
            instructions.
    """
    try:
        return _Machine(content).run(max_steps)
    except (IndexError, KeyError, TypeError) as error:
        raise ValueError(f"{type(error).__name__} {error}".strip()) from error


class _Machine:
    """One run over a pickle."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        # Bytes that calls may make: a text that is encoded again and again would
        # otherwise fill memory from a few instructions.
        self._left = len(content)

    def run(self, max_steps: int) -> Any:
        for _ in range(max_steps):
            code = self._take(1)
            if code == b".":
                return self._stack.pop()
            step = _STEPS.get(code)
            if step is None:
                raise ValueError(f"instruction {code!r} at byte {self._at - 1}")
            step(self)
        raise ValueError(f"more than {max_steps:,} instructions")

    # Reading the arguments of instructions.

    def _take(self, size: int) -> bytes:
        taken = self._content[self._at : self._at + size]
        if size < 0 or len(taken) != size:
            raise ValueError(f"it ends too early, at byte {len(self._content)}")
        self._at += size
        return taken

    def _number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "little", signed=signed)

    def _line(self, longest: Union[int, None] = _LINE) -> bytes:
        stop = None if longest is None else self._at + longest
        end = self._content.find(b"\n", self._at, stop)
        if end < 0:
            raise ValueError(f"a line at byte {self._at} has no end")
        return self._take(end + 1 - self._at)[:-1]

    def _decimal(self) -> int:
        text = self._line()
        if len(text) > 20:
            raise ValueError(f"a number of {len(text)} digits")
        return int(text)

    # Steps.

    def _push(self, value: Any) -> None:
        self._stack.append(value)

    def _since_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise ValueError("a mark is missing")
        values = self._stack[at + 1 :]
        del self._stack[at:]
        return values

    def _pop(self, count: int) -> list[Any]:
        if count > len(self._stack):
            raise ValueError("a value is missing")
        values = self._stack[-count:]
        del self._stack[-count:]
        return values

    def _skip(self, size: int) -> None:
        self._take(size)  # The protocol's number, or a frame's length.

    def _int(self) -> None:
        text = self._line()
        booleans = {b"00": False, b"01": True}
        if len(text) > 20:
            raise ValueError(f"a number of {len(text)} digits")
        self._push(booleans[text] if text in booleans else int(text))

    def _long(self) -> None:
        text = self._line()
        if len(text) > 20:
            raise ValueError(f"a number of {len(text)} digits")
        self._push(int(text.rstrip(b"L")))

    def _short_long(self) -> None:
        size = self._number(1)
        if size > 8:
            raise ValueError(f"a number of {size} bytes")
        self._push(self._number(size, signed=True))

    def _quoted(self) -> None:
        text = self._line(None)
        if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in b"'\"":
            raise ValueError("a text without quotes")
        self._push(codecs.escape_decode(text[1:-1])[0])

    def _append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not list:
            raise ValueError("a value is added to what is no list")
        target.extend(values)

    def _set(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise ValueError("a pair is set in what is no dict")
        target.update(_pairs(values))

    def _remember(self, place: int) -> None:
        self._memo[place] = self._stack[-1]

    def _global(self) -> None:
        module, name = (self._line().decode() for _ in range(2))
        self._push(pickled_bytes.known(module, name))

    def _stack_global(self) -> None:
        module, name = self._pop(2)
        if type(module) is not str or type(name) is not str:
            raise ValueError("a name that is no text")
        self._push(pickled_bytes.known(module, name))

    def _reduce(self) -> None:
        function, arguments = self._pop(2)
        made = pickled_bytes.call(function, arguments)
        if type(made) is bytes:
            self._left -= len(made)
            if self._left < 0:
                raise ValueError("more bytes than the file has")
        self._push(made)

    def _build(self) -> None:
        (state,) = self._pop(1)
        pickled_bytes.set_state(self._stack[-1], state)


def _pairs(values: list[Any]) -> dict[Any, Any]:
    # Other keys could be nested deeper than hashing them goes.
    if not set(map(type, values[::2])) <= {str, bytes, int}:
        raise ValueError("a key that is neither text nor number")
    return dict(zip(values[::2], values[1::2]))


_STEPS: dict[bytes, Callable[[_Machine], None]] = {
    b"\x80": lambda m: m._skip(1),
    b"\x95": lambda m: m._skip(8),
    b"(": lambda m: m._push(_MARK),
    b"N": lambda m: m._push(None),
    b"\x88": lambda m: m._push(True),
    b"\x89": lambda m: m._push(False),
    b"I": lambda m: m._int(),
    b"L": lambda m: m._long(),
    b"J": lambda m: m._push(m._number(4, signed=True)),
    b"K": lambda m: m._push(m._number(1)),
    b"M": lambda m: m._push(m._number(2)),
    b"\x8a": lambda m: m._short_long(),
    b"S": lambda m: m._quoted(),
    b"T": lambda m: m._push(m._take(m._number(4, signed=True))),
    b"U": lambda m: m._push(m._take(m._number(1))),
    b"B": lambda m: m._push(m._take(m._number(4))),
    b"C": lambda m: m._push(m._take(m._number(1))),
    b"V": lambda m: m._push(m._line(None).decode("raw-unicode-escape")),
    b"X": lambda m: m._push(m._take(m._number(4)).decode("utf-8", "surrogatepass")),
    b"\x8c": lambda m: m._push(m._take(m._number(1)).decode("utf-8", "surrogatepass")),
    b"]": lambda m: m._push([]),
    b"l": lambda m: m._push(m._since_mark()),
    b"a": lambda m: m._append(m._pop(1)),
    b"e": lambda m: m._append(m._since_mark()),
    b")": lambda m: m._push(()),
    b"t": lambda m: m._push(tuple(m._since_mark())),
    b"\x85": lambda m: m._push(tuple(m._pop(1))),
    b"\x86": lambda m: m._push(tuple(m._pop(2))),
    b"\x87": lambda m: m._push(tuple(m._pop(3))),
    b"}": lambda m: m._push({}),
    b"d": lambda m: m._push(_pairs(m._since_mark())),
    b"s": lambda m: m._set(m._pop(2)),
    b"u": lambda m: m._set(m._since_mark()),
    b"g": lambda m: m._push(m._memo[m._decimal()]),
    b"h": lambda m: m._push(m._memo[m._number(1)]),
    b"j": lambda m: m._push(m._memo[m._number(4)]),
    b"p": lambda m: m._remember(m._decimal()),
    b"q": lambda m: m._remember(m._number(1)),
    b"r": lambda m: m._remember(m._number(4)),
    b"\x94": lambda m: m._remember(len(m._memo)),
    b"c": lambda m: m._global(),
    b"\x93": lambda m: m._stack_global(),
    b"R": lambda m: m._reduce(),
    b"b": lambda m: m._build(),
}
