"""The form of every score: a linear combination of products and minima of criteria."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Optional, TypeVar

import numpy as np
import numpy.typing as npt

from declared_settings import require_sequence
from tff_pmc.scores.earlier_names import keep_earlier_names

ma: Any = np.ma  # Masked arrays, whose functions have no types.
FloatArray = npt.NDArray[np.float64]
AnyScore = TypeVar("AnyScore", bound="Score")

Subset = tuple[int, ...]
"""A set of criteria, as ascending column indices."""

DEFAULT_CRITERIA = ("DS", "LD", "MD")
"""The columns a code refers to when none are named: the order of both papers."""

ALIASES = {"MW": "MD"}
"""Other names in use: PMC's tables print the model divergence as MW."""


def unaliased(code: str) -> str:
    """Returns a code, or a power's, with the registered name: `MD^2` for `MW^2`."""
    base, *exponent = code.split("^", 1)
    return "^".join([ALIASES.get(base, base), *exponent])


renamed_fields = keep_earlier_names(step="step_powers", length="step_length")


@renamed_fields
@dataclasses.dataclass(frozen=True)
class Score:
    """A score `s = sum_S a_S * prod_{i in S} c_i + sum_S b_S * min_{i in S} c_i`.

    `PolynomialScore` has products alone, `ChoquetScore` minima alone. The minimum of
    one criterion is its product: single criteria are always among the products.

    Attributes:
        label: its name in tables and records, for example `LD,DS,MD`.
        terms: the coefficient of every set S of criteria that occurs.
        columns: the criteria's indices in order of priority (for a score
            without priorities, in any order).
        step_powers: the exponents of the step length, by column: the model moves by
            the weighted mean update times `prod_i T_i^step_powers[i]`, with T the
            totals. Empty, the default, for a plain weighted mean.
        criteria: the code of each column, None for one that was named by its number;
            empty if all were. Whoever takes a score by codes finds these criteria in
            any order of columns; see `over`.
    """

    label: str
    terms: Mapping[Subset, float]
    # Scores with equal terms are equal: the terms express the order of priority.
    columns: tuple[int, ...] = dataclasses.field(compare=False)
    step_powers: Mapping[int, float] = dataclasses.field(default_factory=dict)
    criteria: tuple[Optional[str], ...] = ()

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

    def over(self: AnyScore, criteria: Sequence[str]) -> AnyScore:
        """Returns the equal score over columns with these codes, under its label.

        A column that was named by its number keeps it.

        Args:
            criteria: the code of each column.

        Raises:
            ValueError: one of the score's criteria is not among them, or a column is
                named both by its code and by its number.

        Examples:
            >>> single("LD", ("DS", "LD")).over(("LD", "DS"))((0.75, 0.25))
            0.75
        """
        codes = tuple(map(unaliased, require_sequence("criteria", criteria)))
        current_codes = [
            None if code is None else unaliased(code) for code in self.criteria
        ]
        if not any(current_codes) or current_codes == list(codes):
            return self
        new_column, by_number = {}, set()
        for i in {*self.columns, *sum(self.terms, ()), *self.step_powers}:
            code = current_codes[i] if i < len(current_codes) else None
            if code is None:
                new_column[i] = i
                by_number.add(i)
                continue
            if code not in codes:
                raise ValueError(
                    f"the score {self.label!r} weighs by the criterion {code}, and the "
                    f"criteria here are {', '.join(codes)}: measure {code}, or build "
                    "the score over these"
                )
            new_column[i] = codes.index(code)
        if len(set(new_column.values())) < len(new_column):
            raise ValueError(
                f"the score {self.label!r} names a criterion by its code and another "
                f"by its number, which are the same column of {', '.join(codes)}"
            )
        return dataclasses.replace(
            self,
            terms={
                tuple(sorted(new_column[i] for i in subset)): value
                for subset, value in self.terms.items()
            },
            columns=tuple(new_column[i] for i in self.columns),
            step_powers={new_column[i]: power for i, power in self.step_powers.items()},
            criteria=tuple(
                None if i in by_number else code for i, code in enumerate(codes)
            ),
        )

    def step_length(self, totals: Sequence[float]) -> float:
        """Returns the step's length, from the totals [m] of raw criteria; 1 for a mean.

        It is 0 if one of these totals is 0: then every client is excluded.
        """
        if not all(totals[i] > 0 for i in self.step_powers):
            return 0.0
        powers = self.step_powers.items()
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
            c: criteria, a tuple [m] or an array [clients, m]; or a data frame, or a
                Series of one client, whose columns have the score's codes. Masked
                values become NaN.

        Returns:
            A float, or an array [clients].

        Raises:
            ValueError: `c` has fewer columns than the score uses, or lacks a code.
        """
        values, codes = read_criteria(c)
        if codes:
            return self.over(codes)(values)
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


def read_criteria(values: Any) -> tuple[FloatArray, tuple[str, ...]]:
    """Reads criteria [clients, m] or [m] as numbers, and the codes of their columns.

    A data frame, a mapping of columns, a structured array, a Series, and a list of rows
    that are mappings, Series or named tuples name columns; numbers from 0 on, which
    pandas uses by default, are not names. Masked and missing values become NaN.

    Raises:
        ValueError: names are not codes, one appears twice, rows differ in their names,
            or a column contains other values than numbers.
    """
    pandas = sys.modules.get("pandas")  # Its data exist only after its import.
    names: Collection[Any] = ()
    rows = _named_rows(values)
    if rows:
        names = [*rows[0]]
        if any({*row} != {*names} for row in rows):
            raise ValueError(
                "the clients' rows have different names: use the same codes"
            )
        columns = [[row[name] for row in rows] for name in names]
    elif isinstance(values, Mapping):
        names, columns = [*values], [*values.values()]
    elif pandas and isinstance(values, pandas.DataFrame):
        names, columns = [*values], [values.iloc[:, i] for i in range(values.shape[1])]
    elif pandas and isinstance(values, pandas.Series):
        names, columns = [*values.index], [*to_numbers(values)]
    elif getattr(getattr(values, "dtype", None), "names", None):
        names, columns = values.dtype.names, [values[n] for n in values.dtype.names]
    if not names:
        return to_numbers(values), ()
    by_code = all(isinstance(name, str) for name in names)
    if not by_code and [*names] != [*range(len(names))]:
        raise ValueError(f"columns must be named by codes of criteria, got {[*names]}")
    if len({*names}) < len(names):
        raise ValueError(f"a column appears twice: {', '.join(map(str, names))}")
    arrays = []
    for name, column in zip(names, columns):
        try:
            arrays.append(to_numbers(column))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"the column {name!r} must contain numbers: {error}"
            ) from error
    return np.stack(arrays, axis=-1), tuple(map(str, names)) if by_code else ()


def _named_rows(values: Any) -> list[dict[Any, Any]]:
    """Returns the rows of a list as dicts, or [] if they do not name their values."""
    if not isinstance(values, (list, tuple)):
        return []
    pandas = sys.modules.get("pandas")
    kinds = (Mapping, pandas.Series) if pandas else (Mapping,)
    rows = [row._asdict() if hasattr(row, "_asdict") else row for row in values]
    if not all(isinstance(row, kinds) for row in rows):
        return []
    return [dict(row.items()) for row in rows]


def to_numbers(values: Any) -> FloatArray:
    """Copies numbers; masked values, and missing ones of pandas, become NaN."""
    pandas = sys.modules.get("pandas")
    if pandas and isinstance(values, pandas.Series):
        if values.dtype.kind in "mM":
            raise ValueError("they are times")
        if values.dtype.kind not in "biuf":
            texts = [value for value in values if isinstance(value, str)]
            if texts:
                raise ValueError(f"{texts[0]!r} is text")
        values = values.to_numpy(float, na_value=np.nan)
    filled = ma.filled(ma.array(values, dtype=float, copy=True), np.nan)
    return np.asarray(filled, float)


def find_columns(
    members: Sequence[int | str] | None, criteria: Sequence[str]
) -> tuple[int, ...]:
    """Returns the columns of members given by code or column; None stands for all."""
    if len({*criteria}) < len(criteria):
        raise ValueError(f"criteria names a code twice: {', '.join(criteria)}")
    if members is None:
        members = range(len(criteria))
    columns = tuple(find_column(item, tuple(criteria)) for item in members)
    label = ",".join(str(item) for item in members)
    if not columns:
        raise ValueError("the ordering is empty: name at least one criterion")
    if len(set(columns)) != len(columns):
        raise ValueError(f"the ordering {label} names a criterion twice: name it once")
    return columns


def find_column(item: int | str, criteria: tuple[str, ...]) -> int:
    """Returns the column of a criterion given by code or column."""
    if isinstance(item, str):
        codes = [unaliased(code) for code in criteria]
        if unaliased(item) not in codes:
            raise ValueError(
                f"unknown criterion {item!r} in the ordering; the declared criteria "
                f"are {', '.join(criteria)}"
            )
        return codes.index(unaliased(item))
    if isinstance(item, bool) or int(item) != item or item < 0:
        raise ValueError(f"{item!r} is neither a criterion's code nor its column")
    return int(item)


def member_codes(
    members: Iterable[int | str] | None, criteria: Sequence[str]
) -> tuple[Optional[str], ...]:
    """Returns `Score.criteria` for these members; None stands for all, by code."""
    items: list[int | str] = [*(criteria if members is None else members)]
    by_number = {int(item) for item in items if not isinstance(item, str)}
    if len(by_number) == len(items):
        return ()
    return tuple(None if i in by_number else code for i, code in enumerate(criteria))


def make_label(name: str, columns: Sequence[int], criteria: Sequence[str]) -> str:
    """Returns the label of a score without priorities: `OWA[most]:DS,LD,MD`."""
    return f"{name}:{','.join(column_codes(columns, criteria))}"


def column_codes(columns: Iterable[int], criteria: Sequence[str]) -> list[str]:
    """Returns the codes of columns, or their numbers if they have no code."""
    return [criteria[i] if i < len(criteria) else str(i) for i in columns]


def format_numbers(values: Sequence[float]) -> str:
    """Formats numbers for labels: `0.5,0.3,0.2`."""
    return ",".join(f"{value:.4g}" for value in values)
