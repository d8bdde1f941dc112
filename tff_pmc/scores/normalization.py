"""How raw criteria are brought to a common scale before they are multiplied."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

METHODS = ("sum", "max", "range")


@dataclasses.dataclass(frozen=True)
class Normalization:
    """One of three normalizations.

    - `sum` (the papers'): divided by the sum over the cohort. With K clients a
      value is about 1/K, so each further priority counts about 1/K of the one
      before it.
    - `max`: divided by the largest value in the cohort, so that lower
      priorities count however large the cohort is.
    - `range`: `(r - low) / (high - low)`, cut to [0, 1], with a range declared
      for each criterion. It needs nothing of the other clients and bounds each
      client's weight, which differential privacy requires.

    Attributes:
        method: `sum`, `max` or `range`.
        ranges: (low, high) of each criterion, in the order of the columns; for
            `range` only.

    Raises:
        ValueError: (constructor) the method is unknown, or the ranges do not
            belong to it or are not ranges.
    """

    method: str = "sum"
    ranges: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(
                f"normalization must be one of {', '.join(METHODS)}; "
                f"got {self.method!r}"
            )
        if bool(self.ranges) != (self.method == "range"):
            raise ValueError(
                "ranges are declared with the normalization 'range', and with no other"
            )
        for low, high in self.ranges:
            if not (math.isfinite(high) and 0 <= low < high):
                raise ValueError(
                    f"({low}, {high}) is not a range of a criterion: 0 <= low < high"
                )

    @classmethod
    def declared(
        cls,
        method: str,
        codes: Sequence[str],
        ranges: Mapping[str, tuple[float, float]] | None = None,
    ) -> Normalization:
        """A normalization from ranges by code.

        Args:
            method: see the class.
            codes: the criteria, in the order of the columns.
            ranges: (low, high) of each criterion, by code; for `range` only.

        Raises:
            ValueError: a criterion has no range, or a range no criterion.
        """
        ranges = ranges or {}
        for code in ranges:
            if code not in codes:
                raise ValueError(f"a range is declared for {code}, which is not there")
        if method != "range":
            return cls(method, tuple(ranges.values()))
        for code in codes:
            if code not in ranges:
                raise ValueError(f"the normalization 'range' needs a range for {code}")
        return cls(method, tuple(ranges[code] for code in codes))

    def apply(self, values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Normalizes raw criteria [clients, m] that are finite and not negative."""
        if self.method == "range":
            low, high = np.array(self.ranges).T
            return np.asarray(np.clip((values - low) / (high - low), 0.0, 1.0))
        scale = values.sum(axis=0) if self.method == "sum" else values.max(axis=0)
        return np.asarray(values / np.where(scale > 0, scale, 1.0))


SUM = Normalization()
