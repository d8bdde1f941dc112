"""Differential privacy where it is correct: noise on sums of bounded parts.

A client's whole contribution to a round is its weighted updates (B of them), its
monomials (B) and its criteria (m). With declared ranges every normalized
criterion, and so every monomial, lies in [0, 1], and with clipping every update
has at most the norm C; then the weighted updates' L2 norm is at most `C sqrt(B)`
and the scalars' at most `sqrt(B + m)`, whatever the client's data. The papers'
normalization gives no such bound, because a client's weight depends on the
others'.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Optional

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.tff_utils import with_server_step
from tff_pmc.scores import Basis, Normalization


@dataclasses.dataclass(frozen=True)
class GaussianSums:
    """The Gaussian mechanism on everything a round releases.

    Updates and scalars get separate noise, each of the standard deviation
    `sqrt(2) * noise_multiplier * bound` with their bound, at the server (a
    trusted aggregator); together they are one Gaussian mechanism with this noise
    multiplier. What it protects is one client's data in one round, against
    replacing its contribution by zero: the number of clients is released exactly.
    Rounds compose; `dp_accounting` does the sum. Its amplification by sampling
    applies only where cohorts are Poisson-sampled and secret, which the
    cohorts of `tff_pmc.experiments` (fixed size, from a recorded seed) are not.

    Attributes:
        noise_multiplier: the standard deviation over the sensitivity.
        seed: the seed of the noise, for reproducible experiments; it stands in the
            state, and whoever knows it can take the noise off. None draws new noise
            from the system in every round and keeps nothing, which protects clients.
    """

    noise_multiplier: float
    seed: Optional[int] = None

    def __post_init__(self) -> None:
        if not self.noise_multiplier > 0 or math.isinf(self.noise_multiplier):
            raise ValueError(
                f"noise_multiplier must be above 0, got {self.noise_multiplier}"
            )

    def bounds(
        self, basis: Basis, normalization: Normalization, clip_norm: Optional[float]
    ) -> tuple[float, float]:
        """Returns L2 bounds of a client: updates `C sqrt(B)`, scalars `sqrt(B + m)`."""
        if normalization.method != "range":
            raise ValueError(
                "differential privacy needs a declared range for every criterion "
                "(normalization='range'): with the normalization "
                f"{normalization.method!r} a client's weight is not bounded"
            )
        if clip_norm is None:
            raise ValueError(
                "differential privacy needs clip_norm: an update that is not clipped "
                "is not bounded"
            )
        size = len(basis)
        return clip_norm * math.sqrt(size), math.sqrt(size + basis.num_criteria)

    def factories(
        self, basis: Basis, normalization: Normalization, clip_norm: Optional[float]
    ) -> tuple[GaussianSumFactory, GaussianSumFactory]:
        """Builds the factories of the noisy sums of updates and of scalars."""
        models, scalars = (
            GaussianSumFactory(
                math.sqrt(2) * self.noise_multiplier * bound, self.seed, stream
            )
            for stream, bound in enumerate(self.bounds(basis, normalization, clip_norm))
        )
        return models, scalars


@dataclasses.dataclass(frozen=True)
class GaussianSumFactory(tff.aggregators.UnweightedAggregationFactory):
    """Sums with Gaussian noise added once, at the server."""

    stddev: float
    seed: Optional[int]
    stream: int = 0

    def create(self, value_type: tff.Type) -> tff.templates.AggregationProcess:
        """Creates the aggregation; its state has the noise's seed and round.

        Without a seed that is (0, round), and the noise comes from TensorFlow's
        generator, seeded anew by the system in every call.
        """
        seed = 0 if self.seed is None else self.seed * 2 + self.stream

        def noise(key, value):
            drawn = tf.shape(value), 0.0, self.stddev, value.dtype
            if self.seed is None:
                return tf.random.normal(*drawn)
            return tf.random.stateless_normal(drawn[0], key, *drawn[1:])

        return with_server_step(
            tff.aggregators.SumFactory().create(value_type),
            lambda: tf.constant([seed, 0], tf.int64),
            lambda state, sums: add_noise(noise, state, sums),
        )


def add_noise(
    noise: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], state: tf.Tensor, values: Any
) -> tuple[tf.Tensor, Any]:
    """Adds `noise(key, tensor)` to each tensor; also returns the next (seed, round)."""
    fold_in = tf.random.experimental.stateless_fold_in
    flat = tf.nest.flatten(values)
    noisy = [v + noise(fold_in(state, place), v) for place, v in enumerate(flat)]
    return state + [0, 1], tf.nest.pack_sequence_as(values, noisy)
