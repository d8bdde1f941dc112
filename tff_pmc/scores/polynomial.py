"""Scores that are polynomials in the normalized criteria."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

Monomial = tuple[int, ...]
"""A set of criteria, as ascending column indices; stands for their product."""

DEFAULT_CRITERIA = ("DS", "LD", "MD")
"""The columns a code refers to when none are named: the order of both papers."""


@dataclasses.dataclass(frozen=True)
class PolynomialScore:
    """A score `s = sum_S a_S * prod_{i in S} c_i` over sets S of criteria.

    Attributes:
        label: what tables and records call it, for example `LD,DS,MD`.
        terms: `a_S` for every monomial S that occurs, all of them `>= 0`.
        columns: the criteria's indices in order of priority (for a score
            without priorities, ascending).
    """

    label: str
    terms: Mapping[Monomial, float]
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.terms:
            raise ValueError(f"the score {self.label!r} has no terms")
        for monomial, value in self.terms.items():
            if not monomial or list(monomial) != sorted(set(monomial)):
                raise ValueError(
                    f"the score {self.label!r} has the monomial {monomial}: each "
                    "must be a non-empty set of ascending column indices"
                )
            if not math.isfinite(value) or value < 0:
                raise ValueError(
                    f"the score {self.label!r} has the coefficient {value} for "
                    f"{monomial}: coefficients must be finite and not negative"
                )

    @property
    def monomials(self) -> tuple[Monomial, ...]:
        """The sets of criteria whose products the score adds up."""
        return tuple(self.terms)

    def coefficients(self, totals: npt.ArrayLike) -> dict[Monomial, float]:
        """Returns `a_S / prod_{i in S} T_i`, the factors of the *raw* monomials.

        Args:
            totals: `T_i`, float array [m], each criterion's sum over the cohort.

        Returns:
            The factor of each monomial, 0 where a total is 0.
        """
        total = np.asarray(totals, float)
        products = {s: float(np.prod(total[list(s)])) for s in self.terms}
        return {
            s: self.terms[s] / product if product else 0.0
            for s, product in products.items()
        }

    def __call__(self, c: npt.ArrayLike) -> float | npt.NDArray[np.float64]:
        """Scores criteria as given, without normalizing them.

        Args:
            c: criteria, a tuple [m] or an array [clients, m].

        Returns:
            A float, or an array [clients].

        Raises:
            ValueError: `c` has fewer columns than the score uses.
        """
        values = np.asarray(c, float)
        if values.ndim not in (1, 2) or values.shape[-1] <= max(self.columns):
            raise ValueError(
                f"the score {self.label!r} needs criteria [m] or [clients, m] with "
                f"m > {max(self.columns)}, got the shape {values.shape}"
            )
        result = sum(
            factor * np.prod(values[..., list(monomial)], axis=-1)
            for monomial, factor in self.terms.items()
        )
        return float(result) if values.ndim == 1 else np.asarray(result)


def prioritized(
    order: Sequence[int | str],
    criteria: Sequence[str] = DEFAULT_CRITERIA,
) -> PolynomialScore:
    """The prioritized score of DA (eq. 4) and PMC (eq. 6).

    `s = sum_j prod_{l <= j} c_{o(l)}`: the first criterion counts whole, each
    further one only as far as those before it are satisfied. One criterion
    alone is the single-criterion baseline; `("DS",)` is federated averaging.

    Args:
        order: the ordering o, most important first: column indices or codes.
        criteria: the code of each column, which codes in `order` refer to.

    Returns:
        A `PolynomialScore` whose monomials are the prefixes of the ordering.

    Raises:
        ValueError: the ordering is empty, names a criterion twice, or names one
            that is not there.

    Example:
        >>> prioritized((1, 0))((0.5, 0.4))
        0.6000000000000001
    """
    if isinstance(order, str):
        raise ValueError(f"order must be a sequence of criteria, got {order!r}")
    columns = tuple(_column(item, tuple(criteria)) for item in order)
    label = ",".join(str(item) for item in order)
    if not columns:
        raise ValueError("the ordering is empty: name at least one criterion")
    if len(set(columns)) != len(columns):
        raise ValueError(f"the ordering {label} names a criterion twice")
    prefixes = [tuple(sorted(columns[: j + 1])) for j in range(len(columns))]
    return PolynomialScore(label, dict.fromkeys(prefixes, 1.0), columns)


def single(
    criterion: int | str, criteria: Sequence[str] = DEFAULT_CRITERIA
) -> PolynomialScore:
    """The score that is one criterion; `prioritized` of that one alone."""
    return prioritized((criterion,), criteria)


def _column(item: int | str, criteria: tuple[str, ...]) -> int:
    if isinstance(item, str):
        if item not in criteria:
            raise ValueError(
                f"unknown criterion {item!r} in the ordering; the declared criteria "
                f"are {', '.join(criteria)}"
            )
        return criteria.index(item)
    if isinstance(item, bool) or int(item) != item or item < 0:
        raise ValueError(f"{item!r} is neither a criterion's code nor its column")
    return int(item)
