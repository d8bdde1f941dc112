"""`run.json`: read, and held to one schema, that of the settings where it has these.

What is there has the type that its declaration says. Whatever else is in the file is
kept and not looked at.
"""

from __future__ import annotations

import functools
import json
import math
import os
import typing
from collections.abc import Mapping
from typing import Any, Optional

from leaf_data.declare import Range
from leaf_data.errors import parse_int
from tff_pmc.record.plain_files import open_plain
from tff_pmc.record.record_error import RecordError, RecordMissingError
from tff_pmc.settings.run_settings import CHOSEN, GROUPS

FORMAT = 2
"""The form of the file: the settings are in groups, each by the name of its flag."""

LARGEST = 4 << 20
"""The largest file that is read, bytes; real ones have some thousand."""

_DEEPEST = 16
_LONGEST = 4096  # Texts and lists: their tables have to fit into memory, too.


def _list_of(kind: Range) -> Range:
    return Range(
        lambda value: (
            isinstance(value, list)
            and len(value) <= _LONGEST
            and all(map(kind.holds, value))
        ),
        f"a list, each {kind.words}",
    )


def _within(kind: Range, allowed: Range) -> Range:
    return Range(
        lambda value: kind.holds(value) and bool(allowed.holds(value)),
        f"{kind.words}, {allowed.words}",
    )


def _table_of_texts(*none: None) -> Range:
    return Range(
        lambda value: (
            isinstance(value, dict)
            and all(v in none or _TEXT.holds(v) for v in value.values())
        ),
        "a table of texts",
    )


# A bool is a number to Python and to nobody else.
_TEXT = Range(
    lambda value: isinstance(value, str) and len(value) <= _LONGEST,
    f"text of at most {_LONGEST:,} characters",
)
_WHOLE = Range(lambda value: type(value) is int, "a whole number")
_NUMBER = Range(
    lambda value: type(value) in (int, float) and math.isfinite(value), "a number"
)
_TABLE = Range(lambda value: isinstance(value, dict), "a table")
_KINDS = {int: _WHOLE, float: _NUMBER, str: _TEXT}
_STATUSES = ("running", "interrupted", "finished")

_TOP = {
    "format": _WHOLE,
    **dict.fromkeys(("label", "system", "note", "started", "ended"), _TEXT),
    **dict.fromkeys(("settings", "data", "machine"), _TABLE),
    "versions": _table_of_texts(None),
    "resumed": _list_of(_TABLE),
    "files": _table_of_texts(),
    "status": Range(lambda v: v in _STATUSES, "one of " + ", ".join(_STATUSES)),
}
_DATA = {
    "name": _TEXT,
    "clients": _within(_WHOLE, Range(lambda n: n >= 1, "from 1")),
    **dict.fromkeys(("origin", "options"), _TABLE),
    "client_table": _TEXT,
}
_ORIGIN = {"source": _TEXT, "sha256": _table_of_texts()}
_PERCENTAGE = _within(_WHOLE, Range(lambda n: 1 <= n <= 100, "from 1 to 100"))


@functools.cache
def _settings() -> Mapping[str, Range]:
    """The kinds of the settings by flag, as the groups of every run declare them."""
    found = {
        **dict.fromkeys(("experiment", "protocol", "held_out", *CHOSEN), _TEXT),
        "orderings": _list_of(_TEXT),
        "seeds": _list_of(_WHOLE),
        "learning_rates": _list_of(_NUMBER),
    }
    for group in GROUPS.values():
        hints = typing.get_type_hints(group)
        for declared in group.declared():
            kind = _kind(hints[declared.name])
            if kind is not None:
                within = declared.within
                found[declared.flag] = _within(kind, within) if within else kind
    some = Range(lambda value: value != [], "not empty")
    found["priority"] = _within(found["priority"], some)
    return {**found, "targets": _list_of(_PERCENTAGE)}


def _kind(hint: Any) -> Optional[Range]:
    """The kind of what is declared by a type; tuples are lists in the file."""
    if typing.get_origin(hint) is not tuple:
        return _KINDS.get(hint)
    first, *others = typing.get_args(hint)
    if others == [...]:
        inner = _kind(first)
        return inner and _list_of(inner)
    parts = [_kind(part) for part in (first, *others)]
    return Range(
        lambda value: (
            isinstance(value, list)
            and len(value) == len(parts)
            and all(part.holds(one) for part, one in zip(parts, value) if part)
        ),
        f"a list of {len(parts)}",
    )


def read(folder: str) -> dict[str, Any]:
    """Reads the `run.json` of a folder; what it cannot be is a `RecordError`."""
    name = os.path.join(folder, "run.json")
    try:
        with open_plain(name, at_most=LARGEST) as file:
            content = file.read()
    except RecordMissingError as error:
        raise RecordMissingError(
            f"{folder} is no run of ours: it has no run.json"
        ) from error
    return parse(name, content)


def parse(name: str, content: bytes) -> dict[str, Any]:
    """What a file of this name and content says, or a `RecordError` as of `read`."""
    if len(content) > LARGEST:
        raise RecordError(f"{name} has more than {LARGEST:,} bytes")
    try:
        info = json.loads(content, parse_int=parse_int)
        _check_nesting(info, 0)
    except RecursionError as error:
        raise RecordError(f"{name} is nested too deeply") from error
    except ValueError as error:
        raise RecordError(f"{name} is not JSON: {error}") from error
    if not isinstance(info, dict):
        raise RecordError(f"{name} must be a table of settings, versions and data")
    _check(name, "", info, _TOP)
    settings = info.get("settings", {})
    groups = {k: values for k, values in settings.items() if isinstance(values, dict)}
    alone = {k: value for k, value in settings.items() if k not in groups}
    _check(name, "settings.", alone, _settings())
    for group, values in groups.items():
        # Its name is the file's own: anything, of any length.
        _check(name, f"settings.{ascii(group[:40])[1:-1]}.", values, _settings())
    data = info.get("data", {})
    _check(name, "data.", data, _DATA)
    _check(name, "data.origin.", data.get("origin", {}), _ORIGIN)
    return info


def by_flag(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of all groups in one table."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        found.update(value if isinstance(value, Mapping) else {name: value})
    return found


def require(folder: str, info: Mapping[str, Any], *keys: str) -> None:
    """Refuses a `run.json` without some keys; the `RecordError` names it."""
    for key in keys:
        if key not in info:
            raise RecordError(f"{os.path.join(folder, 'run.json')} lacks {key!r}")


class Recorded(dict[str, Any]):
    """A part of a `run.json`; what it lacks is a `RecordError`, not a `KeyError`."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        """Takes the values, and words on where they are from."""
        super().__init__(values)
        self._where = where

    def __missing__(self, key: str) -> Any:
        raise RecordError(f"{self._where} lacks {key!r}")


def _check(
    name: str, place: str, values: Mapping[str, Any], schema: Mapping[str, Range]
) -> None:
    for key, kind in schema.items():
        if key in values and not kind.holds(values[key]):
            raise RecordError(f"{name}: {place}{key} must be {kind.words}")


def _check_nesting(value: Any, depth: int) -> None:
    """Raises a `ValueError` for what could not be shown or written again."""
    if depth > _DEEPEST:
        raise RecursionError
    if isinstance(value, str):
        value.encode()  # Half a surrogate pair is no text.
    elif isinstance(value, dict):
        for key, item in value.items():
            key.encode()
            _check_nesting(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            _check_nesting(item, depth + 1)
