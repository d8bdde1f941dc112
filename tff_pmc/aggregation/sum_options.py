"""The options for a round's sums, as a user gives them and as they are computed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, Optional

import tensorflow_federated as tff

from leaf_data.settings import Range, check_value
from tff_pmc.aggregation.privacy import GaussianSumFactory, GaussianSums
from tff_pmc.scores import SUM, Basis, Normalization
from tff_pmc.settings.aggregation_settings import MAX_UPDATE_NORM

SumFactory = tff.aggregators.UnweightedAggregationFactory

_A_NORM = Range(lambda x: 0 < x < math.inf, "finite and above 0")


class DeclaredSumFactory(tff.aggregators.UnweightedAggregationFactory):
    """A wrapper by which a user declares that an aggregation factory sums.

    The result must be the sum of what the packs send, to within rounding or noise:
    not their mean, and nothing that clips or rescales what one of them sends, because
    a pack sends the sum over many clients.

        >>> SumOptions(model_sum_factory=DeclaredSumFactory(MySumFactory()))
    """

    def __init__(self, inner: SumFactory) -> None:
        """Takes the factory; a `ValueError` for one that is known not to sum."""
        known = (
            tff.aggregators.DifferentiallyPrivateFactory,
            tff.aggregators.UnweightedMeanFactory,
        )
        if not isinstance(inner, SumFactory) or isinstance(inner, known):
            raise ValueError(f"a {type(inner).__name__} does not sum")
        self._inner = inner

    def create(self, value_type: tff.Type) -> tff.templates.AggregationProcess:
        """Creates the aggregation of the declared factory."""
        return self._inner.create(value_type)


SUMS = (
    tff.aggregators.SumFactory,
    tff.aggregators.SecureSumFactory,
    tff.aggregators.EncodedSumFactory,
    GaussianSumFactory,
    DeclaredSumFactory,
)
"""The factories whose result is a sum of what the packs send."""


def check_is_sum(name: str, factory: Optional[SumFactory]) -> None:
    """Refuses a factory that is not known to sum; None is the plain sum.

    A mean depends on how clients are packed. TFF's differentially private factory
    clips what a pack sends as if it were one client's update, and its guarantee does
    not hold for updates weighted by data. What wraps a factory, as TFF's clipping and
    zeroing do, does not say what it wraps.
    """
    if factory is None or isinstance(factory, SUMS):
        return
    known = ", ".join(sum_.__name__ for sum_ in SUMS[:-1])
    raise ValueError(
        f"{name} cannot be a {type(factory).__name__}: the sums known are {known}. "
        "Declare a factory of your own that sums what the packs send by "
        "aggregation.DeclaredSumFactory(...); for differential privacy use "
        "privacy=GaussianSums(...), with declared ranges and clip_norm"
    )


@dataclasses.dataclass(frozen=True)
class SumPlan:
    """The plan of a round's sums over its clients, with the options of `SumOptions`.

    Attributes:
        basis: the monomials and minima whose weighted updates are summed.
        normalization: the normalization of the criteria; `range` is applied at the
            client.

    Raises:
        ValueError: (constructor) there is not one range for each criterion, or a
            factory is not one of sums.
    """

    basis: Basis
    normalization: Normalization = SUM
    clip_norm: Optional[float] = None
    max_update_norm: float = MAX_UPDATE_NORM
    model_sum_factory: Optional[SumFactory] = None
    scalar_sum_factory: Optional[SumFactory] = None

    def __post_init__(self) -> None:
        ranges, columns = self.normalization.ranges, self.basis.num_criteria
        if ranges and len(ranges) != columns:
            raise ValueError(
                f"{len(ranges)} ranges are declared for {columns} criteria"
            )
        check_is_sum("model_sum_factory", self.model_sum_factory)
        check_is_sum("scalar_sum_factory", self.scalar_sum_factory)

    def unweighted(self) -> SumPlan:
        """The same plan with updates that are not weighted by the criteria yet."""
        return dataclasses.replace(self, basis=Basis.singles(self.basis.num_criteria))


@dataclasses.dataclass(frozen=True)
class SumOptions:
    """The choices that a user has of the sums, the same for every process.

    Attributes:
        normalization: the normalization of the criteria: `sum` (the papers'), `max`
            or `range`; see `scores.Normalization`.
        criteria_ranges: (low, high) by code, for the normalization `range`.
        clip_norm: the L2 norm to which each client clips its update before it is
            weighted; None does not clip.
        max_update_norm: the L2 norm above which a client's update is left out and the
            client counted as `excluded`, like one whose update is not finite.
        model_sum_factory: sums the weighted updates over the packs, for example
            `tff.aggregators.SecureSumFactory`; plain sums by default. One of your own
            is declared by `DeclaredSumFactory`.
        scalar_sum_factory: sums criteria and monomials; plain sums by default. With
            one given, the metrics count the clients and measure nothing else, because
            measurements are summed in the clear. The bound of a `SecureSumFactory`
            has to hold the sum over a pack's clients: what exceeds it is cut, and
            `secure_upper_clipped_count` of the metrics says so.
        privacy: the noise for differential privacy; it needs the normalization
            `range` and `clip_norm`.

    Raises:
        ValueError: (constructor) a number is out of range, a factory is not one of
            sums, or options exclude each other; the message names them.
    """

    normalization: str = "sum"
    criteria_ranges: Optional[Mapping[str, tuple[float, float]]] = None
    clip_norm: Optional[float] = None
    max_update_norm: float = MAX_UPDATE_NORM
    model_sum_factory: Optional[SumFactory] = None
    scalar_sum_factory: Optional[SumFactory] = None
    privacy: Optional[GaussianSums] = None

    def __post_init__(self) -> None:
        if self.clip_norm is not None:
            check_value("clip_norm", self.clip_norm, float, _A_NORM)
        check_value("max_update_norm", self.max_update_norm, float, _A_NORM)
        check_is_sum("model_sum_factory", self.model_sum_factory)
        check_is_sum("scalar_sum_factory", self.scalar_sum_factory)
        given = (self.model_sum_factory, self.scalar_sum_factory)
        if self.privacy is not None and any(factory is not None for factory in given):
            raise ValueError("privacy makes its own sums: give no sum factory with it")
        if self.scalar_sum_factory is not None and self.normalization == "max":
            raise ValueError(
                "the normalization 'max' sends maxima beside the sums, in the clear: "
                "it excludes scalar_sum_factory; use 'sum' or 'range'"
            )

    @property
    def hiding(self) -> dict[str, Any]:
        """The names of those options given that hide what clients send."""
        options = {
            "privacy": self.privacy,
            "scalar_sum_factory": self.scalar_sum_factory,
        }
        return {name: option for name, option in options.items() if option is not None}

    def check_two_stage(self) -> None:
        """Raises a `ValueError` that names an option that two stages cannot have."""
        for name in self.hiding:
            raise ValueError(
                "the two-stage form sends the totals in the clear: it excludes "
                f"{name}; with normalization='range' one stage is enough"
            )

    def plan(self, basis: Basis, codes: Sequence[str]) -> SumPlan:
        """The plan of the sums over a basis, whose columns have these codes.

        Raises:
            ValueError: ranges do not fit the criteria, or privacy has no bounds.
        """
        normalization = Normalization.declared(
            self.normalization, codes, self.criteria_ranges
        )
        factories = (self.model_sum_factory, self.scalar_sum_factory)
        if self.privacy is not None:
            factories = self.privacy.factories(basis, normalization, self.clip_norm)
        return SumPlan(
            basis, normalization, self.clip_norm, self.max_update_norm, *factories
        )


PLAIN_SUMS = SumOptions()
"""The papers' normalization, summed in the clear."""
