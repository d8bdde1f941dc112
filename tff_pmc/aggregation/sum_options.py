"""The options for a round's sums, as a user gives them and as they are computed."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Optional

import tensorflow_federated as tff

from tff_pmc.aggregation.privacy import GaussianSumFactory, GaussianSums
from tff_pmc.scores import SUM, Basis, Normalization
from tff_pmc.settings.aggregation_settings import SumSettings

SumFactory = tff.aggregators.UnweightedAggregationFactory


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


def check_sum_factories(options: SumPlan | SumOptions) -> None:
    """Refuses factories that are not known to sum; None is the plain sum.

    A mean depends on how clients are packed. TFF's differentially private factory
    clips what a pack sends as if it were one client's update, and its guarantee does
    not hold for updates weighted by data. What wraps a factory, as TFF's clipping and
    zeroing do, does not show what it wraps.
    """
    for name in ("model_sum_factory", "scalar_sum_factory"):
        factory = getattr(options, name)
        if factory is None or isinstance(factory, SUMS):
            continue
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
    max_update_norm: float = SumSettings.max_update_norm
    model_sum_factory: Optional[SumFactory] = None
    scalar_sum_factory: Optional[SumFactory] = None

    def __post_init__(self) -> None:
        ranges, columns = self.normalization.ranges, self.basis.num_criteria
        if ranges and len(ranges) != columns:
            raise ValueError(
                f"{len(ranges)} ranges are declared for {columns} criteria"
            )
        check_sum_factories(self)

    @property
    def two_stage(self) -> bool:
        """Whether the totals go to the clients before they weight their updates."""
        return self.basis.needs_totals(self.normalization.method)

    @property
    def counts_only(self) -> bool:
        """Whether nothing but a count may be measured: the rest is not hidden."""
        return self.scalar_sum_factory is not None

    def first_stage(self) -> SumPlan:
        """Returns the same plan for updates that criteria do not weight yet."""
        return dataclasses.replace(self, basis=Basis.singles(self.basis.num_criteria))


@dataclasses.dataclass(frozen=True)
class SumOptions(SumSettings):
    """The choices that a user has of the sums, the same for every process.

    `normalization`, `criteria_ranges`, `clip_norm` and `max_update_norm` are declared
    once, as flags of the command: see `SumSettings`. In the place of the flag's text
    `criteria_ranges` takes (low, high) by code.

    Attributes:
        model_sum_factory: sums the weighted updates over the packs, for example
            `tff.aggregators.SecureSumFactory`; plain sums by default. Your factory
            is declared by `DeclaredSumFactory`.
        scalar_sum_factory: sums criteria and monomials; plain sums by default. With
            one given, the metrics count the clients and measure nothing else, because
            measurements are summed in the clear. The bound of a `SecureSumFactory`
            has to hold the sum over a pack's clients: what exceeds it is cut, and
            `secure_upper_clipped_count` of the metrics reports it.
        privacy: the noise for differential privacy; it needs the normalization
            `range` and `clip_norm`.

    Raises:
        ValueError: (constructor) a number is out of range, a factory is not one of
            sums, or options exclude each other; the message names them.
    """

    errors_name_fields = True

    model_sum_factory: Optional[SumFactory] = None
    scalar_sum_factory: Optional[SumFactory] = None
    privacy: Optional[GaussianSums] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sum_factories(self)
        given = (self.model_sum_factory, self.scalar_sum_factory)
        if self.privacy is not None and any(factory is not None for factory in given):
            raise ValueError(
                "privacy replaces the sum factories: leave model_sum_factory and "
                "scalar_sum_factory out"
            )
        if self.scalar_sum_factory is not None and self.normalization == "max":
            raise ValueError(
                "the normalization 'max' sends maxima with the sums, in the clear: "
                "it excludes scalar_sum_factory; use 'sum' or 'range'"
            )

    @property
    def hiding_options(self) -> dict[str, Any]:
        """The names of those options given that hide what clients send."""
        options = {
            "privacy": self.privacy,
            "scalar_sum_factory": self.scalar_sum_factory,
        }
        return {name: option for name, option in options.items() if option is not None}

    def plan(self, basis: Basis, codes: Sequence[str]) -> SumPlan:
        """Returns the plan of the sums over a basis, whose columns have these codes.

        Raises:
            ValueError: ranges do not fit the criteria, privacy has no bounds, or the
                sums need two stages and hide what clients send.
        """
        normalization = Normalization.from_codes(self.normalization, codes, self.ranges)
        clip_norm = self.clip_norm or None
        models, scalars = self.model_sum_factory, self.scalar_sum_factory
        if self.privacy is not None:
            models, scalars = self.privacy.factories(basis, normalization, clip_norm)
        plan = SumPlan(
            basis, normalization, clip_norm, self.max_update_norm, models, scalars
        )
        for name in self.hiding_options if plan.two_stage else ():
            raise ValueError(
                "OWA and Choquet need two stages with the normalization "
                f"{self.normalization!r}, which send the totals in the clear: this "
                f"excludes {name}; with normalization='range' one stage is enough"
            )
        return plan


PLAIN_SUMS = SumOptions()
"""The papers' normalization, summed in the clear."""
