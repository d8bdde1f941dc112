"""The sums over clients from which the model of every score follows.

A monomial S stands for `r_S[k] = prod_{i in S} r[k, i]`. Because
`sum_k s[k] d_k = sum_S coef_S * (sum_k r_S[k] d_k)` for every polynomial score,
one aggregation of the monomial-weighted updates and of the monomials themselves
serves all scores over the basis (`docs/architecture.md`). The same holds of minima,
`min_{i in S} c[k, i]`, and every Choquet integral (`docs/operators.md`), except that
the minimum is over *normalized* criteria: their scales cannot be factored out of it.
"""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Union

import numpy as np
import numpy.typing as npt

from declared_settings import require_sequence
from tff_pmc.scores.earlier_names import keep_earlier_names
from tff_pmc.scores.score import Score, Subset, column_codes, unaliased
from tff_pmc.scores.weights import Normalization

Criteria = Union[int, Sequence[str]]
"""The codes of the criteria in the order of the columns, or their number alone."""


@keep_earlier_names(summed="products", steps="scales_step")
@dataclasses.dataclass(frozen=True)
class Basis:
    """The monomials and minima a process sums, fixed when the process is built.

    Attributes:
        num_criteria: m, the number of columns of the raw criteria.
        products: the monomials whose weighted updates are summed, each of which
            costs one model of memory and traffic. (The m totals `T_i` are
            scalars and are always summed.)
        minima: the sets of criteria whose minima also weigh updates that are summed;
            they come after the monomials, and cost the same.
        scales_step: whether scores may set the step's length, which follows from
            the totals.
        criteria: the code of each column, by which scores are understood; empty if
            the basis was built for a number of criteria.
    """

    num_criteria: int
    products: tuple[Subset, ...]
    minima: tuple[Subset, ...] = ()
    scales_step: bool = False
    criteria: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        columns = {i for subset in self._entries for i in subset}
        if not self._entries or columns - set(range(self.num_criteria)):
            raise ValueError(
                f"a basis over {self.num_criteria} criteria cannot sum {self._entries}"
            )
        if self.criteria and len({*self.criteria}) != self.num_criteria:
            raise ValueError(
                f"a basis over {self.num_criteria} criteria needs as many codes, each "
                f"once, got {', '.join(self.criteria)}"
            )

    @property
    def _entries(self) -> tuple[Subset, ...]:
        return self.products + self.minima

    @classmethod
    def of(cls, criteria: Criteria, scores: Sequence[Score]) -> Basis:
        """Builds the smallest basis for these scores.

        Raises:
            ValueError: a score has a code that is not among the criteria.
        """
        num_criteria, codes = _number_and_codes(criteria)
        over = [score.over(codes) if codes else score for score in scores]
        products = {subset for score in over for subset in score.products}
        minima = {subset for score in over for subset in score.minima}
        return cls(
            num_criteria,
            tuple(sorted(products, key=_size_then_columns)),
            tuple(sorted(minima, key=_size_then_columns)),
            any(score.step_powers for score in over),
            codes,
        )

    @classmethod
    def singles(cls, criteria: Criteria) -> Basis:
        """Builds the basis of single criteria, without products."""
        num_criteria, codes = _number_and_codes(criteria)
        columns = tuple((column,) for column in range(num_criteria))
        return cls(num_criteria, columns, criteria=codes)

    @classmethod
    def all_subsets(cls, criteria: Criteria, *, minima: bool = False) -> Basis:
        """Builds the basis of every ordering of m criteria: 2^m - 1 sums.

        With `minima` it is the basis of every capacity and OWA: as many sums, with
        minima instead of the products of two criteria or more.
        """
        num_criteria, codes = _number_and_codes(criteria)
        sets = tuple(
            subset
            for size in range(1, num_criteria + 1)
            for subset in itertools.combinations(range(num_criteria), size)
        )
        if minima:
            singles, larger = sets[:num_criteria], sets[num_criteria:]
            return cls(num_criteria, singles, larger, criteria=codes)
        return cls(num_criteria, sets, criteria=codes)

    def over(self, criteria: Sequence[str]) -> Basis:
        """Returns the basis with these codes, if it has none.

        Raises:
            ValueError: the basis is over another number of criteria, over others, or
                over these in another order: scores would combine the wrong sums.
        """
        codes = require_sequence("criteria", criteria)
        if self.num_criteria != len(codes):
            raise ValueError(
                f"the basis is over {self.num_criteria} criteria, but there are "
                f"{len(codes)}"
            )
        if not self.criteria:
            return dataclasses.replace(self, criteria=codes)
        if [*map(unaliased, self.criteria)] != [*map(unaliased, codes)]:
            raise ValueError(
                f"the basis is over the criteria {', '.join(self.criteria)}, and those "
                f"of the process are {', '.join(codes)}: build it over these"
            )
        return self

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The names of the sums by kind, `products` and `minima`: `DS`, `DS.LD`."""
        codes = [
            encode_name(code)
            for code in column_codes(range(self.num_criteria), self.criteria)
        ]
        return {
            kind: tuple(".".join(codes[i] for i in subset) for subset in subsets)
            for kind, subsets in (("products", self.products), ("minima", self.minima))
            if subsets
        }

    @classmethod
    def of_names(
        cls, criteria: Sequence[str], names: Mapping[str, Iterable[str]]
    ) -> Basis:
        """Builds the basis over these criteria that has these `names`."""
        column = {encode_name(code): i for i, code in enumerate(criteria)}
        products, minima = (
            tuple(
                tuple(column[n] for n in name.split(".")) for name in names.get(k, ())
            )
            for k in ("products", "minima")
        )
        return cls(len(criteria), products, minima, criteria=tuple(criteria))

    def combined(
        self, c: npt.NDArray[np.float64], coefficients: npt.ArrayLike
    ) -> npt.NDArray[np.float64]:
        """Scores criteria [clients, m] by the coefficient of each sum, [B]."""
        parts = [np.prod(c[:, list(s)], axis=1) for s in self.products]
        parts += [np.min(c[:, list(s)], axis=1) for s in self.minima]
        total = np.asarray(coefficients, float) @ np.stack(parts)
        # As in `Score`: terms of either sign may leave what should be 0 below it.
        return np.asarray(np.maximum(total, 0.0))

    def __len__(self) -> int:
        return len(self._entries)

    def covers(self, score: Score) -> bool:
        """Returns whether the score's model follows from the sums of this basis."""
        score = self._in_columns(score)
        return not self._missing(score) and (self.scales_step or not score.step_powers)

    def coefficients(self, score: Score) -> npt.NDArray[np.float32]:
        """Returns the score's coefficient of each sum of the basis, float32 [B].

        With `scales_step` the score's `step_powers` follow, [B + m].

        Raises:
            ValueError: the score needs a monomial or minimum that is not summed, a
                step that the basis does not have, or a criterion whose code it lacks.
        """
        score = self._in_columns(score)
        if score.step_powers and not self.scales_step:
            raise ValueError(
                f"the score {score.label!r} sets the length of its step: build the "
                "process with a basis of this score"
            )
        if not self.covers(score):
            raise ValueError(
                f"the score {score.label!r} needs the sums {self._missing(score)}, "
                "which this process does not compute: build it with a basis that "
                "covers the score"
            )
        products = [score.products.get(subset, 0.0) for subset in self.products]
        minima = [score.minima.get(subset, 0.0) for subset in self.minima]
        powers = [score.step_powers.get(i, 0.0) for i in range(self.num_criteria)]
        return np.array(products + minima + powers * self.scales_step, np.float32)

    def membership(self) -> npt.NDArray[np.bool_]:
        """Returns which criteria each sum multiplies or compares, bool [B, m]."""
        rows = [
            [i in subset for i in range(self.num_criteria)] for subset in self._entries
        ]
        return np.array(rows)

    def needs_totals(self, method: str) -> bool:
        """Returns whether clients need the cohort's totals to weight their updates.

        Minima compare normalized criteria, which a client can compute by itself only
        where their ranges are declared. So the method decides with the score whether a
        round has one stage or two.
        """
        return method != "range" and bool(self.minima)

    def check_computable(self, normalization: Normalization) -> None:
        """Raises a `ValueError` if one stage cannot compute the basis, so normalized.

        Minima need declared ranges. Step lengths need `sum`, because they follow from
        the totals of raw criteria.
        """
        if self.scales_step and normalization.method != "sum":
            raise ValueError(
                "the length of a step follows from the totals of raw criteria: it "
                f"needs one stage, and the normalization 'sum', not "
                f"{normalization.method!r}"
            )
        if self.needs_totals(normalization.method):
            raise ValueError(
                "OWA and Choquet compare a client's normalized criteria, which it does "
                "not know before the totals with the normalization "
                f"{normalization.method!r}: declare ranges (normalization='range'), or "
                "sum in two stages (aggregation.build_two_stage_sums)"
            )

    def _in_columns(self, score: Score) -> Score:
        return score.over(self.criteria) if self.criteria else score

    def _missing(self, score: Score) -> list[Subset]:
        products = set(score.products) - set(self.products)
        return sorted(products | (set(score.minima) - set(self.minima)))


def encode_name(code: str) -> str:
    """Encodes a code such as `DS^0.5` as a name for TFF's structures: `DS-5e-0-2e-5`.

    TensorFlow allows no other characters where a structure is a parameter.
    """
    return re.sub(r"[^A-Za-z0-9_]", lambda match: f"-{ord(match[0]):x}-", code)


def decode_name(name: str) -> str:
    """Decodes a name from `encode_name`."""
    return re.sub("-([0-9a-f]+)-", lambda match: chr(int(match[1], 16)), name)


def _number_and_codes(criteria: Criteria) -> tuple[int, tuple[str, ...]]:
    if isinstance(criteria, (int, np.integer)):
        return int(criteria), ()
    codes = require_sequence("criteria", criteria)
    return len(codes), codes


def _size_then_columns(subset: Subset) -> tuple[int, Subset]:
    return len(subset), subset
