"""Differential privacy where it is correct: noise on sums of bounded parts.

A client's whole contribution to a round is its weighted updates (B of them), its
monomials (B) and its criteria (m). With declared ranges every normalized
criterion, and so every monomial, lies in [0, 1], and with clipping every update
has at most the norm C; then the contribution's L2 norm is at most
`sqrt(B C^2 + B + m)` whatever the client's data. The papers' normalization gives
no such bound, because a client's weight depends on the others'.
"""

from __future__ import annotations

import collections
import dataclasses
import math
from typing import Optional

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.scores import Basis, Normalization


@dataclasses.dataclass(frozen=True)
class GaussianSums:
    """The Gaussian mechanism on everything a round releases.

    Noise of the standard deviation `noise_multiplier * sensitivity` is added to
    every sum at the server (a trusted aggregator). With the cohort drawn at
    random, the round is a sampled Gaussian mechanism with this noise multiplier
    under adding or removing one client; `dp_accounting` turns noise multiplier,
    sampling rate and rounds into (epsilon, delta).

    Attributes:
        noise_multiplier: standard deviation over sensitivity.
        seed: of the noise, for reproducible experiments. None draws one that
            nobody knows, which is what protects clients.
    """

    noise_multiplier: float
    seed: Optional[int] = None

    def __post_init__(self) -> None:
        if not self.noise_multiplier > 0 or math.isinf(self.noise_multiplier):
            raise ValueError(
                f"noise_multiplier must be above 0, got {self.noise_multiplier}"
            )

    def sensitivity(
        self, basis: Basis, normalization: Normalization, clip_norm: Optional[float]
    ) -> float:
        """The L2 bound of one client's contribution, `sqrt(B C^2 + B + m)`.

        Raises:
            ValueError: there is no such bound; the message says what is missing.
        """
        if normalization.method != "range":
            raise ValueError(
                "differential privacy needs a declared range for every criterion: "
                f"with the normalization {normalization.method!r} a client's weight "
                "has no bound of its own"
            )
        if clip_norm is None:
            raise ValueError(
                "differential privacy needs clip_norm: an update that is not clipped "
                "has no bound"
            )
        size = len(basis)
        return math.sqrt(size * clip_norm**2 + size + basis.num_criteria)

    def factory(self, sensitivity: float, stream: int) -> GaussianSumFactory:
        """A factory of noisy sums; `stream` separates their noise."""
        return GaussianSumFactory(
            self.noise_multiplier * sensitivity, self.seed, stream
        )


class GaussianSumFactory(tff.aggregators.UnweightedAggregationFactory):
    """Sums with Gaussian noise added once, at the server."""

    def __init__(self, stddev: float, seed: Optional[int], stream: int = 0) -> None:
        """Takes the noise's standard deviation, its seed and its stream."""
        self._stddev, self._seed, self._stream = stddev, seed, stream

    def create(self, value_type: tff.Type) -> tff.templates.AggregationProcess:
        """Creates the aggregation; its state is the noise's seed and round."""
        state_type = tff.TensorType(np.int64, [2])

        @tff.tensorflow.computation
        def first_state():
            if self._seed is not None:
                seed = tf.constant(self._seed * 2 + self._stream, tf.int64)
            else:
                seed = tf.random.uniform([], maxval=2**62, dtype=tf.int64)
            return tf.stack([seed, tf.constant(0, tf.int64)])

        @tff.tensorflow.computation(state_type, value_type)
        def add_noise(state, sums):
            flat = tf.nest.flatten(sums)
            noisy = [
                value
                + tf.random.stateless_normal(
                    tf.shape(value),
                    tf.random.experimental.stateless_fold_in(state, place),
                    stddev=self._stddev,
                    dtype=value.dtype,
                )
                for place, value in enumerate(flat)
            ]
            return state + [0, 1], tf.nest.pack_sequence_as(sums, noisy)

        @tff.federated_computation
        def initialize():
            return tff.federated_eval(first_state, tff.SERVER)

        @tff.federated_computation(
            tff.FederatedType(state_type, tff.SERVER),
            tff.FederatedType(value_type, tff.CLIENTS),
        )
        def next_fn(state, values):
            new_state, noisy = tff.federated_map(
                add_noise, (state, tff.federated_sum(values))
            )
            nothing = tff.federated_value(collections.OrderedDict(), tff.SERVER)
            return tff.templates.MeasuredProcessOutput(new_state, noisy, nothing)

        return tff.templates.AggregationProcess(initialize, next_fn)
