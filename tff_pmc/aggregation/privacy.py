"""Differential privacy by Gaussian noise on sums of bounded contributions.

A client's whole contribution to a round is its weighted updates (B of them), its
monomials (B) and its criteria (m). With declared ranges every normalized
criterion, and so every monomial, lies in [0, 1], and with clipping every update
has at most the norm C; then the weighted updates' L2 norm is at most `C sqrt(B)`
and the scalars' at most `sqrt(B + m)`, whatever the client's data. The papers'
normalization gives no such bound, because it divides a client's criteria by totals
over all clients.
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

    The server, a trusted aggregator, adds noise to updates and scalars separately, each
    with the standard deviation `sqrt(2) * noise_multiplier * bound` of its own bound;
    together they are one Gaussian mechanism with this noise multiplier. It protects one
    client's data in one round, under the zero-out relation: neighboring rounds differ
    in one client's contribution, which is replaced by zero. The number of clients is
    released exactly. `dp_accounting` composes the rounds. Its amplification by sampling
    applies only if cohorts are Poisson-sampled and secret, which those of
    `tff_pmc.experiments` (fixed size, from a recorded seed) are not.

    Attributes:
        noise_multiplier: the standard deviation over the sensitivity.
        seed: the seed of the noise, for reproducible experiments; it is kept in the
            server state, and whoever knows it can remove the noise. With None every
            round draws fresh noise from the system and stores no seed; use this to
            protect clients.
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
        """Returns a client's L2 bounds: updates `C sqrt(B)`, scalars `sqrt(B + m)`."""
        if normalization.method != "range":
            raise ValueError(
                "differential privacy needs a declared range for every criterion "
                "(normalization='range'): with the normalization "
                f"{normalization.method!r} a client's weight is not bounded"
            )
        if clip_norm is None:
            raise ValueError(
                "differential privacy needs clip_norm: without clipping an update is "
                "not bounded"
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
    """Sums values and adds Gaussian noise once, at the server."""

    stddev: float
    seed: Optional[int]
    stream: int = 0

    def create(self, value_type: tff.Type) -> tff.templates.AggregationProcess:
        """Creates the aggregation; its state is (seed of the noise, round).

        Without a seed it is (0, round), and the noise comes from TensorFlow's
        generator, which the system seeds in every call.
        """
        seed = 0 if self.seed is None else self.seed * 2 + self.stream

        def noise(key, value):
            normal_args = tf.shape(value), 0.0, self.stddev, value.dtype
            if self.seed is None:
                return tf.random.normal(*normal_args)
            return tf.random.stateless_normal(normal_args[0], key, *normal_args[1:])

        return with_server_step(
            tff.aggregators.SumFactory().create(value_type),
            lambda: tf.constant([seed, 0], tf.int64),
            lambda state, sums: add_noise(noise, state, sums),
        )


def add_noise(
    noise: Callable[[tf.Tensor, tf.Tensor], tf.Tensor], state: tf.Tensor, values: Any
) -> tuple[tf.Tensor, Any]:
    """Adds `noise(key, tensor)` to each tensor; returns the next state, then the sums.

    The state is (seed of the noise, round).
    """
    fold_in = tf.random.experimental.stateless_fold_in
    flat = tf.nest.flatten(values)
    noisy = [v + noise(fold_in(state, index), v) for index, v in enumerate(flat)]
    return state + [0, 1], tf.nest.pack_sequence_as(values, noisy)
