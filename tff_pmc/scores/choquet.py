"""Choquet integrals: scores that sort the criteria; OWA is the symmetric one.

A capacity is the worth of each set of criteria. With the Moebius transform m of a
capacity v the Choquet integral is a linear combination of minima,
`s = sum_S m(S) * min_{i in S} c_i`: what the monomials are to the prioritized score,
the minima are to every capacity.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from declared_settings import require_sequence
from tff_pmc.scores.polynomial import check_weights
from tff_pmc.scores.score import (
    DEFAULT_CRITERIA,
    Score,
    Subset,
    column_codes,
    find_columns,
    format_numbers,
    make_label,
    member_codes,
    renamed_fields,
)

TOLERANCE = 1e-6
"""The largest deviation from 0, 1 or monotone: users type values as decimals."""

Item = TypeVar("Item", bound=Hashable)

QUANTIFIERS = {
    "any": (0.0, 0.0),
    "at_least_half": (0.0, 0.5),
    "most": (0.3, 0.8),
    "as_many_as_possible": (0.5, 1.0),
    "all": (1.0, 1.0),
}
"""Where `Q(r)` begins to rise and where it is 1 (Zadeh 1983; the ends: Yager 1988)."""


def join_names(subset: Iterable[Hashable]) -> str:
    """Joins a set for messages: `DS+LD`; the empty one is `nothing`."""
    return "+".join(sorted(map(str, subset))) or "nothing"


def moebius(capacity: Mapping[frozenset[Item], float]) -> dict[frozenset[Item], float]:
    """Computes the Moebius transform, `m(S) = sum_{R in S} (-1)^|S - R| v(R)`.

    Args:
        capacity: v of every non-empty set of the criteria; v of the empty one is 0.

    Returns:
        m of every set; its sum over the subsets of S is v(S) (Rota 1964).

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
    """Computes the capacity of a Moebius transform, `v(S) = sum_{R in S} m(R)`.

    Args:
        transform: m; a missing set has 0.

    Returns:
        v of every non-empty set of the criteria that occur.
    """
    full_set = frozenset(itertools.chain.from_iterable(transform))
    return {
        s: sum(transform.get(r, 0.0) for r in subsets(s)) for s in subsets(full_set)
    }


def check_capacity(
    capacity: Mapping[frozenset[Item], float],
    name: Callable[[Iterable[Item]], str] = join_names,
) -> None:
    """Raises a `ValueError` if a capacity is not monotone from 0 to 1 (Choquet 1954).

    The message calls sets by `name`.
    """
    check_complete(capacity, name)
    empty_set: frozenset[Item] = frozenset()
    value = {empty_set: 0.0, **capacity}
    full_set = max(value, key=len)
    if abs(value[empty_set]) > TOLERANCE:
        raise ValueError("the capacity of the empty set must be 0")
    if abs(value[full_set] - 1) > TOLERANCE:
        raise ValueError(
            f"the capacity of all criteria, {name(full_set)}, must be 1, got "
            f"{value[full_set]:g}"
        )
    for larger in subsets(full_set):
        for item in sorted(larger, key=str):
            smaller = larger - {item}
            # Written so that a value that is not a number is also refused.
            if not value[smaller] <= value[larger] + TOLERANCE:
                raise ValueError(
                    f"the capacity is not monotone: {name(larger)} has "
                    f"{value[larger]:g} and its part {name(smaller)} "
                    f"{value[smaller]:g}"
                )


def check_complete(
    capacity: Collection[frozenset[Item]],
    name: Callable[[Iterable[Item]], str] = join_names,
) -> None:
    """Raises a `ValueError` that names a set that the capacity lacks."""
    full_set = frozenset(itertools.chain.from_iterable(capacity))
    if not full_set:
        raise ValueError("the capacity names no criteria")
    for subset in subsets(full_set):
        if subset not in capacity:
            raise ValueError(f"the capacity has no value for {name(subset)}")


def subsets(items: Iterable[Item]) -> list[frozenset[Item]]:
    """Returns the non-empty subsets, the smaller first."""
    by_name = sorted(items, key=str)
    return [
        frozenset(subset)
        for size in range(1, len(by_name) + 1)
        for subset in itertools.combinations(by_name, size)
    ]


@renamed_fields
@dataclasses.dataclass(frozen=True)
class ChoquetScore(Score):
    """A score `s = sum_S m(S) * min_{i in S} c_i`, built by `choquet` or `owa`.

    Its `terms` are m(S), the Moebius transform of a capacity; a missing set has 0. A
    term may be negative, the score never is.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        terms = {frozenset(subset): value for subset, value in self.terms.items()}
        try:
            check_capacity(from_moebius(terms))
        except ValueError as error:
            raise ValueError(f"the score {self.label!r}: {error}") from error

    @property
    def products(self) -> Mapping[Subset, float]:
        """The terms of single criteria."""
        return {subset: m for subset, m in self.terms.items() if len(subset) == 1}

    @property
    def minima(self) -> Mapping[Subset, float]:
        """The terms of two criteria or more."""
        return {subset: m for subset, m in self.terms.items() if len(subset) > 1}


def choquet(
    capacity: Mapping[Any, float], criteria: Sequence[str] = DEFAULT_CRITERIA
) -> ChoquetScore:
    """Builds the Choquet integral of the criteria (Choquet 1954; Grabisch 1996).

    With `c_(1) <= ... <= c_(m)`, `s = sum_j (c_(j) - c_(j-1)) * v({(j), ..., (m)})`:
    each increase is weighted by the worth of the set of criteria that reach it. A pair
    worth more than its members' sum rewards clients that satisfy both; a pair worth
    less treats the two as nearly the same. An additive capacity gives the weighted
    average, one that depends on the set's size alone gives OWA.

    Args:
        capacity: v by set (tuple or frozenset) of codes or columns, for every set of
            those it names but the empty one (0); the full set may be missing (1).
            Monotone: a set is worth at least as much as any part of it.
        criteria: the code of each column.

    Raises:
        ValueError: a set is missing or named twice, or v is not monotone from 0 to 1;
            the message names the sets.

    Examples:
        >>> v = {("DS",): 0.4, ("LD",): 0.3, ("DS", "LD"): 1.0}
        >>> round(choquet(v)((0.5, 0.8)), 2)  # 0.5 + (0.8 - 0.5) * 0.3
        0.59
    """
    criteria = require_sequence("criteria", criteria)
    value: dict[frozenset[int], float] = {}
    named_by: dict[int | str, None] = {}
    for members, worth in capacity.items():
        items = [members] if isinstance(members, str) else list(members)
        named_by.update(dict.fromkeys(items))
        key = frozenset(find_columns(items, criteria) if items else ())
        if key in value:
            raise ValueError(f"the capacity names {_name(criteria)(key)} twice")
        value[key] = float(worth)
    value.setdefault(frozenset().union(*value), 1.0)
    check_capacity(value, _name(criteria))
    return _from_capacity(None, value, criteria, member_codes(named_by, criteria))


def owa(
    weights: str | Sequence[float],
    criteria: Sequence[str] = DEFAULT_CRITERIA,
    *,
    members: Sequence[int | str] | None = None,
) -> ChoquetScore:
    """Builds ordered weighted averaging (Yager 1988), `s = sum_j w_j * c_(j)`.

    The weights belong to ranks, not to criteria: `w_1` to the client's largest
    criterion, `w_m` to its smallest. (1, 0, ...) is the maximum, (0, ..., 1) the
    minimum, equal weights the mean. It is the Choquet integral of the capacity
    `v(S) = w_1 + ... + w_|S|`.

    Args:
        weights: `w_j`, not negative, sum 1; or the name of a quantifier, see
            `owa_weights`.
        criteria: the code of each column.
        members: the criteria that take part; by default all.

    Raises:
        ValueError: the weights are not one for each member, in [0, 1], with the sum 1;
            or the quantifier or a member is unknown.

    Examples:
        >>> round(owa((0.5, 0.3, 0.2))((0.1, 0.4, 0.2)), 2)
        0.28
    """
    members = members if members is None else require_sequence("members", members)
    criteria = require_sequence("criteria", criteria)
    columns = find_columns(members, criteria)
    if not isinstance(weights, str):
        weights = require_sequence("the weights of the OWA", weights)
    shown = weights if isinstance(weights, str) else format_numbers(weights)
    if isinstance(weights, str):
        weights = owa_weights(weights, len(columns))
    check_weights(weights, len(columns), "OWA")
    value = {s: float(sum(weights[: len(s)])) for s in subsets(columns)}
    codes = member_codes(members, criteria)
    return _from_capacity(f"OWA[{shown}]", value, criteria, codes)


def owa_weights(quantifier: str, size: int) -> tuple[float, ...]:
    """Computes OWA's weights of a quantifier, `w_j = Q(j/m) - Q((j-1)/m)` (Yager 1988).

    `Q(r)` is 0 up to a, 1 from b on and a line between: the share of the criteria that
    have to be satisfied. `any` is the maximum, `all` the minimum; `at_least_half` has
    (a, b) = (0, 0.5), `most` (0.3, 0.8), `as_many_as_possible` (0.5, 1).

    Args:
        quantifier: one of `QUANTIFIERS`.
        size: the number of criteria, m.

    Raises:
        ValueError: the quantifier is unknown.
    """
    if quantifier not in QUANTIFIERS:
        raise ValueError(
            f"the quantifier must be one of {', '.join(QUANTIFIERS)}, got "
            f"{quantifier!r}"
        )
    low, high = QUANTIFIERS[quantifier]

    def quantify(share: float) -> float:
        if low == high:  # A step: behind 0 for `any`, at 1 for `all`.
            return float(share > 0 if high == 0 else share >= high)
        return min(max((share - low) / (high - low), 0.0), 1.0)

    values = [quantify(j / size) for j in range(size + 1)]
    return tuple(after - before for before, after in zip(values, values[1:]))


def _from_capacity(
    name: str | None,
    capacity: Mapping[frozenset[int], float],
    criteria: Sequence[str],
    codes: tuple[str | None, ...],
) -> ChoquetScore:
    """Builds the score of a capacity by columns; without a name its values name it."""
    transform = moebius(capacity)
    subsets_by_size = sorted(
        (tuple(sorted(s)) for s in transform), key=lambda s: (len(s), s)
    )
    if name is None:
        values = [capacity[frozenset(s)] for s in subsets_by_size[:-1]]
        name = f"Choquet[{format_numbers(values)}]"
    terms = {s: transform[frozenset(s)] for s in subsets_by_size}
    # Drops rounding errors.
    used = {s: m for s, m in terms.items() if abs(m) > 1e-12}
    label = make_label(name, subsets_by_size[-1], criteria)
    return ChoquetScore(label, used, subsets_by_size[-1], criteria=codes)


def _name(criteria: Sequence[str]) -> Callable[[Iterable[int]], str]:
    """Returns the function that names a set of columns in messages: `DS+LD`."""
    return lambda subset: join_names(column_codes(sorted(subset), criteria))
