"""Capacities: how much a set of criteria is worth; and their Moebius transform."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TypeVar

TOLERANCE = 1e-6
"""How far values may be from what they should be: numbers are typed in decimals."""

Item = TypeVar("Item", bound=Hashable)


def joined(subset: Iterable[Hashable]) -> str:
    """A set as messages have it: `DS+LD`; the empty one `nothing`."""
    return "+".join(sorted(map(str, subset))) or "nothing"


def moebius(capacity: Mapping[frozenset[Item], float]) -> dict[frozenset[Item], float]:
    """The Moebius transform `m(S) = sum_{R in S} (-1)^|S - R| v(R)` (Rota 1964).

    Args:
        capacity: v of every non-empty set of the criteria; v of the empty one is 0.

    Returns:
        m of every set that is there; its sum over the subsets of S is v(S).

    Raises:
        ValueError: a set is missing.
    """
    check_complete(capacity)
    return {
        s: sum((-1) ** (len(s) - len(r)) * capacity[r] for r in subsets(s))
        for s in capacity
        if s
    }


def from_moebius(
    transform: Mapping[frozenset[Item], float],
) -> dict[frozenset[Item], float]:
    """The capacity of a Moebius transform, `v(S) = sum_{R in S} m(R)`.

    Args:
        transform: m; a set that is not there has 0.

    Returns:
        v of every non-empty set of the criteria named.
    """
    everything = frozenset(itertools.chain.from_iterable(transform))
    return {
        s: sum(transform.get(r, 0.0) for r in subsets(s)) for s in subsets(everything)
    }


def check_capacity(
    capacity: Mapping[frozenset[Item], float],
    name: Callable[[Iterable[Item]], str] = joined,
) -> None:
    """Refuses what is no capacity (Choquet 1954): monotone, from 0 to 1.

    Raises:
        ValueError: a set is missing or worth less than a part of it, or the whole is
            not worth 1; the message has the sets in the words of `name`.
    """
    check_complete(capacity, name)
    nothing: frozenset[Item] = frozenset()
    value = {nothing: 0.0, **capacity}
    everything = max(value, key=len)
    if abs(value[nothing]) > TOLERANCE:
        raise ValueError("the capacity of no criteria must be 0")
    if abs(value[everything] - 1) > TOLERANCE:
        raise ValueError(
            f"the capacity of all criteria, {name(everything)}, must be 1, got "
            f"{value[everything]:g}"
        )
    for larger in subsets(everything):
        for item in sorted(larger, key=str):
            smaller = larger - {item}
            # Written so that a value that is not a number is refused, too.
            if not value[smaller] <= value[larger] + TOLERANCE:
                raise ValueError(
                    f"the capacity is not monotone: {name(larger)} has "
                    f"{value[larger]:g} and its part {name(smaller)} "
                    f"{value[smaller]:g}"
                )


def check_complete(
    capacity: Collection[frozenset[Item]],
    name: Callable[[Iterable[Item]], str] = joined,
) -> None:
    """Raises a `ValueError` that names a set that the capacity lacks."""
    everything = frozenset(itertools.chain.from_iterable(capacity))
    if not everything:
        raise ValueError("the capacity names no criteria")
    for subset in subsets(everything):
        if subset not in capacity:
            raise ValueError(f"the capacity has no value for {name(subset)}")


def subsets(items: Iterable[Item]) -> list[frozenset[Item]]:
    """The non-empty subsets, the smaller first."""
    ordered = sorted(items, key=str)
    return [
        frozenset(subset)
        for size in range(1, len(ordered) + 1)
        for subset in itertools.combinations(ordered, size)
    ]
