"""The sums over clients from which every candidate's model follows.

A monomial S stands for `r_S[k] = prod_{i in S} r[k, i]`. Because
`sum_k s[k] d_k = sum_S coef_S * (sum_k r_S[k] d_k)` for every polynomial score,
one aggregation of the monomial-weighted updates and of the monomials themselves
serves all scores over the basis (`docs/architecture.md`).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tff_pmc.scores.polynomial import Monomial, PolynomialScore


@dataclasses.dataclass(frozen=True)
class Basis:
    """The monomials a process sums, fixed when the process is built.

    Attributes:
        num_criteria: m, the number of columns of the raw criteria.
        summed: the monomials whose weighted updates are summed, each of which
            costs one model of memory and traffic. (The m totals `T_i` are
            scalars and are always summed.)
    """

    num_criteria: int
    summed: tuple[Monomial, ...]

    def __post_init__(self) -> None:
        columns = {i for monomial in self.summed for i in monomial}
        if not self.summed or columns - set(range(self.num_criteria)):
            raise ValueError(
                f"a basis over {self.num_criteria} criteria cannot sum {self.summed}"
            )

    @classmethod
    def of(cls, num_criteria: int, scores: Sequence[PolynomialScore]) -> Basis:
        """The smallest basis for these scores."""
        found = {monomial for score in scores for monomial in score.monomials}
        return cls(num_criteria, tuple(sorted(found, key=_size_then_columns)))

    @classmethod
    def all_subsets(cls, num_criteria: int) -> Basis:
        """The basis of every ordering of m criteria: 2^m - 1 sums."""
        sets = (
            subset
            for size in range(1, num_criteria + 1)
            for subset in itertools.combinations(range(num_criteria), size)
        )
        return cls(num_criteria, tuple(sets))

    def __len__(self) -> int:
        return len(self.summed)

    def covers(self, score: PolynomialScore) -> bool:
        """Whether the score's model follows from the sums of this basis."""
        return set(score.monomials) <= set(self.summed)

    def vector(self, score: PolynomialScore) -> npt.NDArray[np.float32]:
        """The score as a candidate: `a_S` for each summed monomial, float32 [B].

        Raises:
            ValueError: the score needs a monomial that is not summed.
        """
        if not self.covers(score):
            missing = sorted(set(score.monomials) - set(self.summed))
            raise ValueError(
                f"the score {score.label!r} needs the sums {missing}, which this "
                "process does not make: build it with a basis that covers the score"
            )
        values = [score.terms.get(monomial, 0.0) for monomial in self.summed]
        return np.array(values, np.float32)

    def membership(self) -> npt.NDArray[np.bool_]:
        """Which criteria each summed monomial multiplies, bool [B, m]."""
        rows = [
            [i in monomial for i in range(self.num_criteria)]
            for monomial in self.summed
        ]
        return np.array(rows)


def _size_then_columns(monomial: Monomial) -> tuple[int, Monomial]:
    return len(monomial), monomial
