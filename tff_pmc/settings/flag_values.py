"""Parsers of flags whose values are not a single word or number.

Each function takes the text and returns the value; a `ValueError` names what is wrong,
and `prefix_errors` puts the flag's name before it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from leaf_data.formats.data_files import sha256
from leaf_data.settings import A_SEED, SettingError
from tff_pmc import criteria as criteria_lib
from tff_pmc import search

_Value = TypeVar("_Value")


def prefix_errors(flag: str, call: Callable[..., _Value], *arguments: Any) -> _Value:
    """Calls a function; its `ValueError` becomes a `SettingError` with the flag."""
    try:
        return call(*arguments)
    except SettingError:
        raise
    except ValueError as error:
        raise SettingError(f"{flag}: {error}") from error


def codes(text: str) -> tuple[str, ...]:
    """Parses criteria's codes, `LD,DS,MD^2`; aliases are resolved.

    An unknown code stays as it is: it may be an attribute of the clients.
    """
    return tuple(criteria_lib.unaliased(code.strip()) for code in text.split(","))


def ranges(text: str) -> tuple[tuple[str, float, float], ...]:
    """Parses ranges, `DS=0:600,LD=0:10,MD=0:1`, as (code, low, high) of each."""
    found = []
    for item in text.split(","):
        code, _, numbers = item.partition("=")
        low, _, high = numbers.partition(":")
        try:
            found.append((codes(code)[0], float(low), float(high)))
        except ValueError as error:
            raise ValueError(f"{item!r} is not CODE=LOW:HIGH") from error
    return tuple(found)


def capacity(text: str) -> tuple[tuple[str, float], ...]:
    """Parses a capacity, `DS:0.4,LD:0.3,DS+LD:0.8`, as (set, value) of each."""
    found = []
    for item in text.split(","):
        subset, _, number = item.rpartition(":")
        try:
            worth = float(number)
        except ValueError as error:
            raise ValueError(f"{item!r} is not CODE+CODE:VALUE") from error
        found.append(("+".join(codes(subset.replace("+", ","))), worth))
    return tuple(found)


def numbers(text: str) -> tuple[float, ...]:
    """Parses numbers, `0.5,0.3,0.2`."""
    return tuple(float(item) for item in text.split(","))


def percentages(text: str) -> tuple[int, ...]:
    """Parses whole percentages, `70,80,90`."""
    found = tuple(int(item) for item in text.split(","))
    if len(set(found)) < len(found) or not all(0 < item <= 100 for item in found):
        raise ValueError("percentages are whole numbers from 1 to 100, each once")
    return found


def seeds(text: str) -> tuple[int, ...]:
    """Parses seeds, `0,1,2`."""
    items = text.split(",")
    if not all(item.strip().isdigit() for item in items):
        raise ValueError("seeds are integers from 0, as 0,1,2")
    found = tuple(int(item) for item in items)
    if len(found) < 2 or len(set(found)) < len(found):
        raise ValueError("name two or more seeds, each once")
    if not all(map(A_SEED.holds, found)):
        raise ValueError(f"seeds must be {A_SEED.words}")
    return found


def rates(text: str) -> tuple[float, ...]:
    """Parses learning rates, `0.5,0.1`."""
    found = numbers(text)
    if len(set(found)) < len(found):
        raise ValueError("name one or more rates, each once")
    return found


def words(text: str) -> tuple[str, ...]:
    """Parses words, `fedavg,adafed`."""
    found = tuple(filter(None, (item.strip() for item in text.split(","))))
    if not found:
        raise ValueError("it is empty: name one or more")
    return found


def place(text: str) -> str:
    """Parses a path of this machine; also in `=~/a`, `~` is the home."""
    if "://" in text:
        raise ValueError("it is an address: name a place of this machine")
    return os.path.expanduser(text)


def places(text: str) -> tuple[str, ...]:
    """Parses paths of this machine, `runs/a,~/runs/b`."""
    return tuple(place(word) for word in words(text))


def file_and_sha256(text: str) -> tuple[str, str]:
    """Parses the path of a file, as the absolute path and the SHA-256 of the file."""
    path = os.path.abspath(place(text))
    return path, sha256(path)


def all_orderings(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the rows of PMC's tables: single codes, then all orderings.

    Of more than `search.MAX_CRITERIA` there are too many: a `ValueError`.
    """
    singles: list[tuple[str, ...]] = [(code,) for code in criteria]
    if len(singles) == 1:
        return singles
    return singles + search.orderings(criteria)
