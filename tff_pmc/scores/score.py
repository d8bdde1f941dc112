"""The form of every score: a linear combination of products and minima of criteria."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

Subset = tuple[int, ...]
"""A set of criteria, as ascending column indices."""

DEFAULT_CRITERIA = ("DS", "LD", "MD")
"""The columns a code refers to when none are named: the order of both papers."""


@dataclasses.dataclass(frozen=True)
class Score:
    """A score `s = sum_S a_S * prod_{i in S} c_i + sum_S b_S * min_{i in S} c_i`.

    `PolynomialScore` has products alone, `ChoquetScore` minima alone. The minimum of
    one criterion is its product: single criteria are always among the products.

    Attributes:
        label: its name in tables and records, for example `LD,DS,MD`.
        terms: the coefficient of every set S of criteria that occurs.
        columns: the criteria's indices in order of priority (for a score
            without priorities, ascending).
        step: for a method that is no mean alone, the power of each criterion's total T
            in the length of its step, by index: the model takes the weighted mean of
            the updates times `prod_i T_i^step[i]`. By default the mean as it is.
    """

    label: str
    terms: Mapping[Subset, float]
    columns: tuple[int, ...]
    step: Mapping[int, float] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.terms:
            raise ValueError(f"the score {self.label!r} has no terms")
        for subset, value in self.terms.items():
            if not subset or list(subset) != sorted(set(subset)):
                raise ValueError(
                    f"the score {self.label!r} has the monomial {subset}: each "
                    "must be a non-empty set of ascending column indices"
                )
            if not math.isfinite(value):
                raise ValueError(
                    f"the score {self.label!r} has the coefficient {value} for "
                    f"{subset}: coefficients must be finite"
                )

    def length(self, totals: Sequence[float]) -> float:
        """Returns the step's length, from the totals [m] of raw criteria; 1 for a mean.

        It is 0 where one of these totals is: no client counts.
        """
        if not all(totals[i] > 0 for i in self.step):
            return 0.0
        powers = self.step.items()
        return float(math.prod(float(totals[i]) ** power for i, power in powers))

    @property
    def products(self) -> Mapping[Subset, float]:
        """`a_S`, for each set of criteria that the score multiplies."""
        return self.terms

    @property
    def minima(self) -> Mapping[Subset, float]:
        """`b_S`, for each set of two criteria or more whose minimum it takes."""
        return {}

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
        result = np.zeros(values.shape[:-1])
        for subset, factor in self.products.items():
            result = result + factor * np.prod(values[..., list(subset)], axis=-1)
        for subset, factor in self.minima.items():
            result = result + factor * np.min(values[..., list(subset)], axis=-1)
        # Terms of either sign may leave what should be 0 just below it.
        result = np.maximum(result, 0.0)
        return float(result) if values.ndim == 1 else np.asarray(result)


def columns_of(
    members: Sequence[int | str] | None, criteria: Sequence[str]
) -> tuple[int, ...]:
    """Returns the columns of criteria named by column or code, in order; None: all."""
    if members is None:
        members = range(len(criteria))
    if isinstance(members, str):
        raise ValueError(f"criteria must be a sequence of codes, got {members!r}")
    columns = tuple(column_of(item, tuple(criteria)) for item in members)
    label = ",".join(str(item) for item in members)
    if not columns:
        raise ValueError("the ordering is empty: name at least one criterion")
    if len(set(columns)) != len(columns):
        raise ValueError(f"the ordering {label} names a criterion twice")
    return columns


def column_of(item: int | str, criteria: tuple[str, ...]) -> int:
    """Returns the column of one criterion, named by column or code."""
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


def labeled(name: str, columns: Sequence[int], criteria: Sequence[str]) -> str:
    """Makes the label of a score without priorities: `OWA[most]:DS,LD,MD`."""
    return f"{name}:{','.join(named(columns, criteria))}"


def named(columns: Iterable[int], criteria: Sequence[str]) -> list[str]:
    """Returns the codes of columns; one without a code goes by its number."""
    return [criteria[i] if i < len(criteria) else str(i) for i in columns]


def digits(values: Sequence[float]) -> str:
    """Formats numbers as labels have them: `0.5,0.3,0.2`."""
    return ",".join(f"{value:.4g}" for value in values)
