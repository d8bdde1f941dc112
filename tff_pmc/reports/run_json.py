"""`run.json`: read, and held to one schema.

Files from earlier versions lack some of the keys; what is there has the type that its
name says. Whatever else is in the file is kept and not looked at.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple

from tff_pmc.reports.plain_files import open_plain
from tff_pmc.reports.record_error import RecordError

LARGEST = 4 << 20
"""The largest file that is read, bytes; real ones have some thousand."""

_DEEPEST = 16
_MOST_DIGITS = 20
_LONGEST = 4096  # Texts and lists: their tables have to fit into memory, too.


class Kind(NamedTuple):
    """What a value may be.

    Attributes:
        words: the kind in words, after "must be".
        holds: whether a value is of it.
    """

    words: str
    holds: Callable[[Any], bool]


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST


def _list_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: (
        isinstance(value, list) and len(value) <= _LONGEST and all(map(holds, value))
    )


def _table_of(holds: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(holds, value.values()))


_TEXT = Kind(f"text of at most {_LONGEST:,} characters", _is_text)
_TEXTS = Kind("a list of texts", _list_of(_is_text))
_WHOLE = Kind("a whole number", _is_whole)
_COUNT = Kind("a whole number from 0", lambda v: _is_whole(v) and v >= 0)
_SOME = Kind("a whole number from 1", lambda v: _is_whole(v) and v >= 1)
_NUMBER = Kind("a number", _is_number)
_NUMBERS = Kind("a list of numbers", _list_of(_is_number))
_PERCENTAGES = Kind(
    "a list of whole numbers from 1 to 100",
    _list_of(lambda v: _is_whole(v) and 1 <= v <= 100),
)
_LISTS = Kind("a list of lists", _list_of(lambda v: isinstance(v, list)))
_TABLE = Kind("a table", lambda v: isinstance(v, dict))
_TABLES = Kind("a list of tables", _list_of(lambda v: isinstance(v, dict)))
_TABLE_OF_TEXTS = Kind("a table of texts", _table_of(_is_text))
_STATUSES = ("running", "interrupted", "finished")

_TOP = {
    "format": _WHOLE,
    "label": _TEXT,
    "system": _TEXT,
    "note": _TEXT,
    "settings": _TABLE,
    "data": _TABLE,
    "versions": Kind("a table of texts", _table_of(lambda v: v is None or _is_text(v))),
    "machine": _TABLE,
    "started": _TEXT,
    "ended": _TEXT,
    "resumed": _TABLES,
    "status": Kind("one of " + ", ".join(_STATUSES), lambda v: v in _STATUSES),
}
_DATA = {
    "name": _TEXT,
    "clients": _SOME,
    "origin": _TABLE,
    "options": _TABLE,
    "client_table": _TEXT,
}
_ORIGIN = {"source": _TEXT, "sha256": _TABLE_OF_TEXTS}
# By flag, those that anything reads from a record; of old files, too.
_SETTINGS: dict[str, Kind] = {
    **dict.fromkeys(
        (
            *("experiment", "protocol", "dataset", "model", "partition", "score"),
            *("client_optimizer", "adjustment", "judge_on", "normalization", "reach"),
            *("aggregator", "model_divergence", "owa_quantifier", "quantifier"),
            "personalized_form",
        ),
        _TEXT,
    ),
    **dict.fromkeys(("criteria", "orderings"), _TEXTS),
    "priority": Kind("a list of some texts", lambda v: bool(v) and _TEXTS.holds(v)),
    **dict.fromkeys(("rounds", "local_epochs"), _SOME),
    **dict.fromkeys(("batch_size", "batch_seed"), _COUNT),
    **dict.fromkeys(
        (
            *("learning_rate", "clients_per_round", "server_learning_rate"),
            *("clip_norm", "validation_fraction"),
        ),
        _NUMBER,
    ),
    **dict.fromkeys(
        ("average_weights", "owa_weights", "score_weights", "learning_rates"), _NUMBERS
    ),
    "targets": _PERCENTAGES,
    "seeds": Kind("a list of whole numbers", _list_of(_is_whole)),
    "criteria_ranges": _LISTS,
    "choquet_capacity": Kind(
        "a list of pairs of a text and a number",
        _list_of(
            lambda v: (
                isinstance(v, list)
                and len(v) == 2
                and _is_text(v[0])
                and _is_number(v[1])
            )
        ),
    ),
}
_SETTINGS_OR_SYSTEM = {
    **_SETTINGS,
    # A group, or in old files its title.
    "system": Kind("a table or text", lambda v: isinstance(v, (dict, str))),
}


def read(folder: str) -> dict[str, Any]:
    """Reads the `run.json` of a folder.

    Raises:
        RecordError: it is missing (then a `RecordMissingError`), no JSON, too large, or
            not as the schema has it; the message is one line and names the file.
    """
    name = os.path.join(folder, "run.json")
    with open_plain(name, at_most=LARGEST) as file:
        content = file.read()
    try:
        info = json.loads(content, parse_int=_parse_int)
        _check_nesting(info, 0)
    except RecursionError as error:
        raise RecordError(f"{name} is nested too deeply") from error
    except ValueError as error:
        raise RecordError(f"{name} is not JSON: {error}") from error
    if not isinstance(info, dict):
        raise RecordError(f"{name} must be a table of settings, versions and data")
    _check(name, "", info, _TOP)
    settings = info.get("settings", {})
    # Either all in one table, or in groups.
    tops = {k: v for k, v in settings.items() if not isinstance(v, dict)}
    _check(name, "settings.", tops, _SETTINGS_OR_SYSTEM)
    for group, values in settings.items():
        if isinstance(values, dict):
            in_group = {**_SETTINGS, "system": _TEXT}
            # Its name is the file's own: anything, of any length.
            shown = ascii(group[:40])[1:-1]
            _check(name, f"settings.{shown}.", values, in_group)
    data = info.get("data", {})
    _check(name, "data.", data, _DATA)
    _check(name, "data.origin.", data.get("origin", {}), _ORIGIN)
    return info


def require(folder: str, info: Mapping[str, Any], *keys: str) -> None:
    """Refuses a `run.json` without some keys.

    Raises:
        RecordError: one is missing; the message names it.
    """
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
    name: str, place: str, values: Mapping[str, Any], schema: Mapping[str, Kind]
) -> None:
    for key, kind in schema.items():
        if key in values and not kind.holds(values[key]):
            raise RecordError(f"{name}: {place}{key} must be {kind.words}")


def _parse_int(text: str) -> int:
    # Python takes long over very many digits, and some versions refuse them.
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


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
