"""Parsers of flags whose values are not a single word or number.

Each function takes the text and returns the value; a `ValueError` names what is wrong,
and `call_naming_flag` puts the flag's name before it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from declared_settings import SEED, Range, SettingError
from leaf_data.formats.data_files import expand_path, sha256
from tff_pmc import criteria as criteria_lib
from tff_pmc import search

_Value = TypeVar("_Value")

PERCENTAGES = "percentages are whole numbers from 1 to 100, each once"
"""The rule for `--targets`."""

# TensorFlow counts in 32 bits.
NON_NEGATIVE_INT = Range(lambda n: 0 <= n < 2**31, "0 or more, below 2^31")
POSITIVE_INT = Range(lambda n: 1 <= n < 2**31, "at least 1, below 2^31")

_DIGITS = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def call_naming_flag(flag: str, call: Callable[..., _Value], *arguments: Any) -> _Value:
    """Calls a function; its `ValueError` becomes a `SettingError` with the flag."""
    try:
        return call(*arguments)
    except SettingError:
        raise
    except ValueError as error:
        raise SettingError(f"{flag}: {error}") from error


def parse_codes(text: str) -> tuple[str, ...]:
    """Parses criteria's codes, `LD,DS,MD^2`; aliases are resolved.

    An unknown code stays as it is: it may be an attribute of the clients.
    """
    return tuple(criteria_lib.unaliased(code.strip()) for code in text.split(","))


def parse_ranges(text: str) -> tuple[tuple[str, float, float], ...]:
    """Parses ranges, `DS=0:600,LD=0:10,MD=0:1`, as (code, low, high) of each."""
    ranges = []
    for item in text.split(","):
        code, _, numbers = item.partition("=")
        low, _, high = numbers.partition(":")
        try:
            ranges.append((parse_codes(code)[0], parse_number(low), parse_number(high)))
        except ValueError as error:
            raise ValueError(f"{item!r} is not CODE=LOW:HIGH") from error
    return tuple(ranges)


def parse_capacity(text: str) -> tuple[tuple[str, float], ...]:
    """Parses a capacity, `DS:0.4,LD:0.3,DS+LD:0.8`, as (set, value) of each."""
    capacity = []
    for item in text.split(","):
        subset, _, value = item.rpartition(":")
        try:
            worth = parse_number(value)
        except ValueError as error:
            raise ValueError(f"{item!r} is not CODE+CODE:VALUE") from error
        capacity.append(("+".join(parse_codes(subset.replace("+", ","))), worth))
    return tuple(capacity)


def parse_numbers(text: str) -> tuple[float, ...]:
    """Parses numbers, `0.5,0.3,0.2`."""
    return tuple(map(parse_number, text.split(",")))


def check_digits(text: str) -> str:
    """Returns a number's text; a `ValueError` if only Python reads it: `1_0`, `١`."""
    if "_" in text or not text.isascii():
        raise ValueError(f"{text!r} is not a number: write digits from 0 to 9")
    return text


def parse_number(item: str) -> float:
    """Parses a number as people write it, not `1_0`, `nan` or non-ASCII digits."""
    if not _NUMBER.fullmatch(item.strip()):
        raise ValueError(f"{item.strip()!r} is not a number")
    return float(item)


def _parse_whole_number(item: str) -> int:
    """Parses a whole number from 0."""
    if not _DIGITS.fullmatch(item.strip()):
        raise ValueError(f"{item.strip()!r} is not a whole number")
    return int(item)


def parse_percentages(text: str) -> tuple[int, ...]:
    """Parses whole percentages, `70,80,90`; `RecordSettings` checks their range."""
    items = text.split(",")
    try:
        return tuple(map(_parse_whole_number, items))
    except ValueError as error:
        parsed = (float(item) for item in items if _NUMBER.fullmatch(item.strip()))
        share = next((value for value in parsed if 0 < value < 1), 0)
        hint = f" (did you mean {100 * share:g}?)" if share else ""
        raise ValueError(f"{error}: {PERCENTAGES}{hint}") from error


def parse_seeds(text: str) -> tuple[int, ...]:
    """Parses seeds, `0,1,2`."""
    try:
        seeds = tuple(map(_parse_whole_number, text.split(",")))
    except ValueError as error:
        raise ValueError("seeds must be whole numbers from 0, such as 0,1,2") from error
    if len(seeds) < 2 or len(set(seeds)) < len(seeds):
        raise ValueError("name two or more seeds, each once; one seed is --seed")
    if not all(map(SEED.holds, seeds)):
        raise ValueError(f"seeds must be {SEED.description}")
    return seeds


def parse_rates(text: str) -> tuple[float, ...]:
    """Parses learning rates, `0.5,0.1`."""
    rates = parse_numbers(text)
    if len(set(rates)) < len(rates):
        raise ValueError("a rate is given twice: list each rate once")
    return rates


def parse_words(text: str) -> tuple[str, ...]:
    """Parses words, `fedavg,adafed`."""
    words = tuple(filter(None, (item.strip() for item in text.split(","))))
    if not words:
        raise ValueError("it is empty: name one or more")
    return words


def parse_row(text: str) -> str:
    """Parses a row of `--rows`, words with one space between them."""
    words = " ".join(text.split())
    if not words:
        raise ValueError("a row is empty: name an algorithm, with ; between rows")
    return words


def parse_path(text: str) -> str:
    """Parses a path of this machine; also in `=~/a`, `~` is the home."""
    if "://" in text:
        raise ValueError("URLs are not supported: give a path on this machine")
    return expand_path(text)


def parse_paths(text: str) -> tuple[str, ...]:
    """Parses paths of this machine, `runs/a,~/runs/b`."""
    return tuple(parse_path(word) for word in parse_words(text))


def parse_file_and_sha256(text: str) -> tuple[str, str]:
    """Parses the path of a file, as the absolute path and the SHA-256 of the file."""
    path = os.path.abspath(parse_path(text))
    return path, sha256(path)


def all_orderings(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """Returns the rows of PMC's tables: single codes, then all orderings.

    Of more than `search.MAX_CRITERIA` there are too many: a `ValueError`.
    """
    singles: list[tuple[str, ...]] = [(code,) for code in criteria]
    if len(singles) == 1:
        return singles
    return singles + search.orderings(criteria)
