"""From the words of flags to orderings, codes and ranges (no TensorFlow)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tff_pmc import criteria as criteria_lib
from tff_pmc import scores
from tff_pmc.experiments.config import ConfigError


def all_orderings(criteria: Sequence[str]) -> list[tuple[str, ...]]:
    """The rows of PMC's tables: each criterion alone, then every ordering.

    Args:
        criteria: the codes, in the order of the columns.

    Returns:
        m singles and, for m > 1, the m! orderings of all of them: nine for m = 3.
    """
    singles: list[tuple[str, ...]] = [(code,) for code in criteria]
    if len(singles) == 1:
        return singles
    return singles + list(itertools.permutations(criteria))


def parse_priorities(
    values: Sequence[str], criteria: Sequence[str], attributes: Sequence[str] = ()
) -> list[tuple[str, ...]]:
    """Orderings from `--priority` flags: `DS`, `LD,DS,MD` or `all`.

    Raises:
        ConfigError: a code is unknown, or an ordering is named twice.
    """
    found: list[tuple[str, ...]] = []
    for value in values:
        if value == "all":
            found += all_orderings(criteria)
        else:
            found.append(parse_codes("priority", value, attributes))
    for order in found:
        if found.count(order) > 1:
            raise ConfigError(f"--priority names {','.join(order)} twice")
    return found


def parse_codes(
    flag: str, value: str, attributes: Sequence[str] = ()
) -> tuple[str, ...]:
    """Criteria's codes from a comma-separated flag; aliases are resolved.

    Args:
        flag: its name, for the error.
        value: the codes.
        attributes: names of client attributes, which are codes too.

    Raises:
        ConfigError: a code is unknown.
    """
    try:
        codes = [code.strip() for code in value.split(",")]
        return tuple(
            code if code in attributes else criteria_lib.canonical(code)
            for code in codes
        )
    except ValueError as error:
        raise ConfigError(f"--{flag}={value}: {error}") from error


def parse_rates(values: Sequence[str]) -> list[float]:
    """Learning rates from a comma-separated flag.

    Raises:
        ConfigError: one is no number or named twice, or there is none.
    """
    flag = f"--learning_rates={','.join(values)}"
    try:
        rates = [float(value) for value in values]
    except ValueError as error:
        raise ConfigError(f"{flag}: {error}") from error
    if not rates or len(set(rates)) < len(rates):
        raise ConfigError(f"{flag}: name one or more rates, each once")
    return rates


def parse_seeds(values: Sequence[str]) -> list[int]:
    """Seeds from a comma-separated flag.

    Raises:
        ConfigError: one is no seed or named twice, or there are fewer than two.
    """
    flag = f"--seeds={','.join(values)}"
    if not all(value.strip().isdigit() for value in values):
        raise ConfigError(f"{flag}: seeds are integers from 0")
    seeds = [int(value) for value in values]
    if len(seeds) < 2 or len(set(seeds)) < len(seeds):
        raise ConfigError(f"{flag}: name two or more seeds, each once")
    return seeds


def parse_weights(values: Sequence[str]) -> tuple[float, ...]:
    """Weights from a comma-separated flag.

    Raises:
        ConfigError: one is no number.
    """
    try:
        return tuple(float(value) for value in values)
    except ValueError as error:
        flag = f"--score_weights={','.join(values)}"
        raise ConfigError(f"{flag}: {error}") from error


def parse_capacity(
    value: str, attributes: Sequence[str] = ()
) -> tuple[tuple[str, float], ...]:
    """A capacity from a flag such as `DS:0.4,LD:0.3`, pairs as `DS+LD:0.8`.

    Raises:
        ConfigError: it does not parse, or a code is unknown.
    """
    flag = f"--capacity={value}"
    found = []
    for item in value.split(","):
        subset, _, number = item.rpartition(":")
        try:
            worth = float(number)
        except ValueError as error:
            raise ConfigError(f"{flag}: {item!r} is not CODE+CODE:VALUE") from error
        codes = parse_codes("capacity", subset.replace("+", ","), attributes)
        found.append(("+".join(codes), worth))
    return tuple(found)


def parse_ranges(
    value: str, criteria: Sequence[str]
) -> tuple[tuple[float, float], ...]:
    """Declared ranges from a flag such as `DS=0:600,LD=0:10,MD=0:1`.

    Raises:
        ConfigError: it does not parse, or does not name every criterion once.
    """
    flag = f"--criteria_ranges={value}"
    found: dict[str, tuple[float, float]] = {}
    for item in value.split(","):
        code, _, numbers = item.partition("=")
        low, _, high = numbers.partition(":")
        try:
            found[code.strip()] = (float(low), float(high))
        except ValueError as error:
            raise ConfigError(f"{flag}: {item!r} is not CODE=LOW:HIGH") from error
    try:
        return scores.Normalization.declared("range", criteria, found).ranges
    except ValueError as error:
        raise ConfigError(f"{flag}: {error}") from error
