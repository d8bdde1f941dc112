"""The options of a round's sums, and the plan that a process computes from them."""

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
    """A wrapper that declares a user's aggregation factory to compute a sum.

    The result must be the sum of the packs' values, up to rounding or noise. It must
    not be their mean, and the factory must not clip or rescale the value of a pack,
    which is the sum over many clients.

        >>> SumOptions(model_sum_factory=DeclaredSumFactory(MySumFactory()))
    """

    def __init__(self, inner: SumFactory) -> None:
        """Raises a `ValueError` for a factory that is known not to sum."""
        not_sums = (
            tff.aggregators.DifferentiallyPrivateFactory,
            tff.aggregators.UnweightedMeanFactory,
        )
        if not isinstance(inner, SumFactory) or isinstance(inner, not_sums):
            raise ValueError(
                f"a {type(inner).__name__} does not sum: declare a factory whose "
                "result is the sum of the packs' values"
            )
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
"""The factories whose result is known to be the sum of the packs' values."""


def check_sum_factories(options: SumPlan | SumOptions) -> None:
    """Raises a `ValueError` for a factory not known to sum; None means a plain sum.

    A mean depends on how clients are packed. TFF's differentially private factory
    clips a pack's value as if it were one client's update, and its guarantee does not
    hold for updates weighted by data. Wrappers such as TFF's clipping and zeroing
    factories are rejected because they do not show their inner factory.
    """
    for name in ("model_sum_factory", "scalar_sum_factory"):
        factory = getattr(options, name)
        if factory is None or isinstance(factory, SUMS):
            continue
        allowed = ", ".join(sum_.__name__ for sum_ in SUMS[:-1])
        raise ValueError(
            f"{name} cannot be a {type(factory).__name__}, which is not known to sum: "
            f"use one of {allowed}, or wrap your own factory, if it sums, in "
            "aggregation.DeclaredSumFactory(...); for differential privacy use "
            "privacy=GaussianSums(...), with declared ranges and clip_norm"
        )


@dataclasses.dataclass(frozen=True)
class SumPlan:
    """The sums of a round over its clients: the basis, and checked `SumOptions`.

    Attributes:
        basis: the monomials and minima by which the summed updates are weighted.
        normalization: the normalization of the criteria; clients apply `range`.

    Raises:
        ValueError: (constructor) there is not one range per criterion, or a factory is
            not known to sum.
    """

    basis: Basis
    normalization: Normalization = SUM
    clip_norm: Optional[float] = None
    max_update_norm: float = SumSettings.max_update_norm
    model_sum_factory: Optional[SumFactory] = None
    scalar_sum_factory: Optional[SumFactory] = None

    def __post_init__(self) -> None:
        ranges, num_criteria = self.normalization.ranges, self.basis.num_criteria
        if ranges and len(ranges) != num_criteria:
            raise ValueError(
                f"{len(ranges)} ranges are declared for {num_criteria} criteria"
            )
        check_sum_factories(self)

    @property
    def two_stage(self) -> bool:
        """Whether clients need the totals before they weight their updates."""
        return self.basis.needs_totals(self.normalization.method)

    @property
    def counts_only(self) -> bool:
        """Whether client counts are the only measurement.

        They are with a `scalar_sum_factory`, because measurements are summed in the
        clear.
        """
        return self.scalar_sum_factory is not None

    def first_stage(self) -> SumPlan:
        """Returns the plan of the first of two stages, whose updates are unweighted."""
        return dataclasses.replace(self, basis=Basis.singles(self.basis.num_criteria))

    @property
    def only_counts(self) -> bool:
        """The earlier name of `counts_only`, for one more release."""
        return self.counts_only

    def unweighted(self) -> SumPlan:
        """Returns `first_stage()`: its earlier name, for one more release."""
        return self.first_stage()


@dataclasses.dataclass(frozen=True)
class SumOptions(SumSettings):
    """The options of the sums, the same for every process.

    `normalization`, `criteria_ranges`, `clip_norm` and `max_update_norm` are declared
    once, as flags of the command: see `SumSettings`. In Python `criteria_ranges` maps
    the code of a criterion to (low, high); the flag takes text.

    Attributes:
        model_sum_factory: sums the weighted updates over the packs, for example
            `tff.aggregators.SecureSumFactory`; by default a plain sum. Wrap a factory
            of your own in `DeclaredSumFactory`.
        scalar_sum_factory: sums criteria and monomials; by default a plain sum. With
            any other, the client count is the only measurement, because measurements
            are summed in the clear. The bound of a `SecureSumFactory` applies to the
            sum over a pack's clients: larger values are clipped, and the metric
            `secure_upper_clipped_count` counts them.
        privacy: the noise for differential privacy; it needs the normalization
            `range` and `clip_norm`.

    Raises:
        ValueError: (constructor) a number is out of range, a factory is not known to
            sum, or options exclude each other; the message names them.
    """

    errors_name_fields = True

    model_sum_factory: Optional[SumFactory] = None
    scalar_sum_factory: Optional[SumFactory] = None
    privacy: Optional[GaussianSums] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_sum_factories(self)
        sum_factories = (self.model_sum_factory, self.scalar_sum_factory)
        if self.privacy is not None and any(
            factory is not None for factory in sum_factories
        ):
            raise ValueError(
                "privacy replaces the sum factories: remove model_sum_factory and "
                "scalar_sum_factory"
            )
        if self.scalar_sum_factory is not None and self.normalization == "max":
            raise ValueError(
                "scalar_sum_factory cannot be combined with normalization='max', "
                "whose maxima are sent in the clear: use 'sum' or 'range'"
            )

    @property
    def hiding_options(self) -> dict[str, Any]:
        """The options set that hide what clients send, by name."""
        options = {
            "privacy": self.privacy,
            "scalar_sum_factory": self.scalar_sum_factory,
        }
        return {name: option for name, option in options.items() if option is not None}

    @property
    def hiding(self) -> dict[str, Any]:
        """The earlier name of `hiding_options`, for one more release."""
        return self.hiding_options

    def plan(self, basis: Basis, codes: Sequence[str]) -> SumPlan:
        """Returns the plan of the sums over a basis of the criteria with these codes.

        Raises:
            ValueError: ranges do not fit the criteria, privacy has no bounds, or the
                sums need two stages and options hide what clients send.
        """
        normalization = Normalization.from_codes(self.normalization, codes, self.ranges)
        clip_norm = self.clip_norm or None
        models, scalars = self.model_sum_factory, self.scalar_sum_factory
        if self.privacy is not None:
            models, scalars = self.privacy.factories(basis, normalization, clip_norm)
        plan = SumPlan(
            basis, normalization, clip_norm, self.max_update_norm, models, scalars
        )
        if plan.two_stage and self.hiding_options:
            name = next(iter(self.hiding_options))
            raise ValueError(
                f"{name} cannot be combined with the normalization "
                f"{self.normalization!r} of OWA and Choquet: they take two stages, and "
                "the first sends the totals in the clear; with normalization='range' "
                "one stage is enough"
            )
        return plan


PLAIN_SUMS = SumOptions()
"""The papers' normalization, summed in the clear."""
