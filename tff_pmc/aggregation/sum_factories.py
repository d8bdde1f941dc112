"""The aggregation factories that may make the sums of a round, and their check."""

from __future__ import annotations

from typing import Optional

import tensorflow_federated as tff

from tff_pmc.aggregation.privacy import GaussianSumFactory

SumFactory = tff.aggregators.UnweightedAggregationFactory


class DeclaredSumFactory(tff.aggregators.UnweightedAggregationFactory):
    """A wrapper by which a user declares that an aggregation factory sums.

    The result must be the sum of what the packs send, to within rounding or noise:
    not their mean, and nothing that clips or rescales what one of them sends, because
    a pack sends the sum over many clients.

        >>> SumOptions(model_sum_factory=DeclaredSumFactory(MySumFactory()))
    """

    def __init__(self, inner: SumFactory) -> None:
        """Takes the factory.

        Raises:
            ValueError: it is no unweighted factory, or one of TFF's that is known
                not to sum.
        """
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
    """Refuses a factory that is not known to sum.

    A mean depends on how clients are packed. TFF's differentially private factory
    clips what a pack sends as if it were one client's update, and its guarantee does
    not hold for updates weighted by data; `GaussianSums` is what holds. What wraps a
    factory, as TFF's clipping and zeroing do, does not say what it wraps.

    Args:
        name: the name of the option, for the message.
        factory: the factory; None is the plain sum.

    Raises:
        ValueError: the factory is none of `SUMS`; the message names it.
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
