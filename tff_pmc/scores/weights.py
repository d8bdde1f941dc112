"""The weight of each participant, from raw criteria."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from declared_settings import require_sequence
from tff_pmc.scores.score import FloatArray, Score, ma, read_criteria, unaliased

METHODS = ("sum", "max", "range")


@dataclasses.dataclass(frozen=True)
class Normalization:
    """How raw criteria are normalized before they are scored: one of three methods.

    - `sum` (the papers'): divided by the sum over the cohort. With K clients a
      value is about 1/K, so each further priority counts about 1/K of the
      previous one.
    - `max`: divided by the largest value in the cohort, so that lower
      priorities count however large the cohort is.
    - `range`: `(r - low) / (high - low)`, cut to [0, 1], with a range declared
      for each criterion. It does not depend on the other clients and bounds
      each client's weight, which differential privacy requires.

    Attributes:
        method: `sum`, `max` or `range`.
        ranges: (low, high) of each criterion, in the order of the columns; for
            `range` only.
        criteria: the code of each of the ranges; empty where they were not declared by
            code.

    Raises:
        ValueError: (constructor) the method is unknown, ranges are missing for `range`
            or given for another method, or a range is invalid.
    """

    method: str = "sum"
    ranges: tuple[tuple[float, float], ...] = ()
    criteria: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"normalization must be one of {', '.join(METHODS)}; "
                f"got {self.method!r}"
            )
        object.__setattr__(self, "ranges", require_sequence("ranges", self.ranges))
        if bool(self.ranges) != (self.method == "range"):
            raise ValueError(
                f"normalization={self.method!r} with {len(self.ranges)} ranges: "
                "'range' needs one for each criterion, and no other method takes ranges"
            )
        for low, high in self.ranges:
            if not (math.isfinite(high) and 0 <= low < high):
                raise ValueError(
                    f"the range of a criterion must have 0 <= low < high, got ({low}, "
                    f"{high})"
                )

    @classmethod
    def from_codes(
        cls,
        method: str,
        codes: Sequence[str],
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Normalization:
        """Builds a normalization from ranges by code.

        Args:
            method: see the class.
            codes: the criteria, in the order of the columns.
            ranges: (low, high) of each criterion, by code; for `range` only.

        Raises:
            ValueError: a criterion has no range, or a range has no criterion.
        """
        codes = require_sequence("criteria", codes)
        ranges = ranges or {}
        for code in ranges:
            if code not in codes:
                raise ValueError(
                    f"a range is declared for {code}, which is not one of the criteria "
                    f"{', '.join(codes)}: remove it"
                )
        if method != "range":
            return cls(method, tuple(ranges.values()))
        for code in codes:
            if code not in ranges:
                raise ValueError(
                    f"the normalization 'range' needs a range for {code}: declare one"
                )
        return cls(method, tuple(ranges[code] for code in codes), codes)

    declared = from_codes  # Its earlier name.

    def over(self, criteria: Sequence[str]) -> Normalization:
        """Returns the same normalization for columns with these codes.

        Ranges that were not declared by code stay in their order.

        Raises:
            ValueError: a criterion has no range.
        """
        if not self.criteria:
            return self
        ranges = dict(zip(map(unaliased, self.criteria), self.ranges))
        codes = tuple(map(unaliased, criteria))
        ranges_by_code = {code: ranges[code] for code in codes if code in ranges}
        return self.from_codes(self.method, codes, ranges_by_code)

    def apply(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Normalizes raw criteria [clients, m] that are finite and not negative."""
        if self.method == "range":
            low, high = np.array(self.ranges).T
            return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0))
        scale = values.sum(axis=0) if self.method == "sum" else values.max(axis=0)
        return np.asarray(values / np.where(scale > 0, scale, 1.0))


SUM = Normalization()


def normalize(raw: npt.ArrayLike, normalization: Normalization = SUM) -> FloatArray:
    """Normalizes raw criteria, by default by their sums (DA section 3, PMC 4.1).

    Args:
        raw: raw criteria, float array [clients, m], none negative. A client
            with a value that is not finite, or masked, is excluded: its row is 0. A
            data frame's columns may have the criteria's codes.
        normalization: how; the papers divide by the sum over the cohort. Ranges
            declared by code apply to a data frame's columns with these codes.

    Returns:
        Array [clients, m], in the order of the columns. With the papers' normalization
        its columns sum to 1, or to 0 where the total is 0.

    Raises:
        ValueError: a value is negative, the array is not two-dimensional, or names of
            columns are not codes or have no range.

    Examples:
        >>> normalize([[30, 2], [10, 6]]).tolist()
        [[0.75, 0.25], [0.25, 0.75]]
    """
    values, codes = read_criteria(raw)
    if codes:
        normalization = normalization.over(codes)
    if values.ndim != 2:
        raise ValueError(f"raw criteria must be [clients, m], got {values.shape}")
    finite = np.isfinite(values).all(axis=1)
    values[~finite] = 0.0
    if (values < 0).any():
        client, column = np.argwhere(values < 0)[0]
        raise ValueError(
            f"criterion {codes[column] if codes else column} of client {client} is "
            f"negative: {values[client, column]}"
        )
    return np.asarray(normalization.apply(values) * finite[:, np.newaxis])


def participant_weights(
    raw: npt.ArrayLike,
    score: Callable[[FloatArray], npt.ArrayLike],
    normalization: Normalization = SUM,
) -> FloatArray:
    """Computes each client's weight, `p_k = s_k / sum_k s_k` (DA eq. 3, PMC eq. 5).

    Args:
        raw: raw criteria, float array [clients, m]; see `normalize`. A score by codes
            takes these columns of a data frame whose columns have codes.
        score: a function of normalized criteria [clients, m] to scores [clients], for
            example `prioritized(("DS", "LD", "MD"))`.
        normalization: how the criteria are normalized.

    Returns:
        Weights [clients], not negative, summing to 1; all 0 when every score is
        0 (then the round does not change the model).

    Raises:
        ValueError: `normalize` raises it for `raw`, a criterion of the score is not
            among its columns, or the score returns a negative or non-finite value, or
            values of the wrong shape.

    Examples:
        Two clients with 30 and 10 examples of 2 and 6 labels, the labels first:

        >>> from tff_pmc.scores import prioritized
        >>> score = prioritized(("LD", "DS"), criteria=("DS", "LD"))
        >>> participant_weights([[30, 2], [10, 6]], score).tolist()
        [0.3181818181818182, 0.6818181818181818]
    """
    criteria, (_, codes) = normalize(raw, normalization), read_criteria(raw)
    if codes and isinstance(score, Score):
        score = score.over(codes)
    scores = np.asarray(score(criteria), float)
    if scores.shape != (len(criteria),):
        raise ValueError(
            f"the score must return one value per client, [{len(criteria)}], but "
            f"returned the shape {scores.shape}"
        )
    if not np.isfinite(scores).all() or (scores < 0).any():
        raise ValueError("the score returned a value that is negative or not finite")
    total = scores.sum()
    return np.asarray(scores / total) if total > 0 else np.zeros_like(scores)


def coefficient_of_variation(weights: npt.ArrayLike) -> float:
    """Computes the weights' standard deviation over their mean; 0 if all are equal.

    Args:
        weights: participant weights [clients], summing to 1 (or all 0, which
            gives 0). Masked clients are excluded.

    Examples:
        >>> coefficient_of_variation([0.75, 0.25])
        0.5
    """
    p = _drop_masked(weights)
    return float(p.std() / p.mean()) if p.sum() > 0 else 0.0


def effective_clients(weights: npt.ArrayLike) -> float:
    """Computes the effective number of clients, `1 / sum p^2`.

    Args:
        weights: participant weights [clients], summing to 1, or all 0. Masked
            clients are excluded.

    Returns:
        A number from 1 (one client has all the weight) to the number of clients; 0 if
        no client has weight.

    Examples:
        >>> effective_clients([0.5, 0.5, 0.0])
        2.0
    """
    p = _drop_masked(weights)
    return float(1.0 / np.square(p).sum()) if p.sum() > 0 else 0.0


def total_variation(p: npt.ArrayLike, q: npt.ArrayLike) -> float:
    """Computes half the sum of absolute differences: the share of weight that shifts.

    Args:
        p: participant weights [clients].
        q: other weights of the same clients, in the same order; two Series of pandas
            are compared by their indices. A client that is masked in either is
            excluded.

    Returns:
        A number from 0 (equal weights) to 1.

    Raises:
        ValueError: the indices do not have the same clients.

    Examples:
        >>> total_variation([0.75, 0.25], [0.5, 0.5])
        0.25
    """
    pandas = sys.modules.get("pandas")
    if pandas and isinstance(p, pandas.Series) and isinstance(q, pandas.Series):
        if len(p) != len(q) or not p.index.is_unique or not q.index.isin(p.index).all():
            raise ValueError(
                "p and q have different clients, by their indices: give both the same"
            )
        q = q.reindex(p.index)
    return float(0.5 * _drop_masked(abs(_to_masked(p) - _to_masked(q))).sum())


def _to_masked(weights: npt.ArrayLike) -> Any:
    return ma.array(weights, dtype=float)


def _drop_masked(weights: npt.ArrayLike) -> FloatArray:
    """Returns the weights [clients] without those that are masked."""
    if ma.isMaskedArray(weights):
        weights = ma.compressed(weights)
    return np.asarray(weights, float)
