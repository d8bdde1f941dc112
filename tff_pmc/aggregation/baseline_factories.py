"""The factories and server steps that `aggregation.baselines` composes."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any, Callable

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import check_not_negative
from tff_pmc.aggregation.privacy import add_noise
from tff_pmc.aggregation.tff_utils import (
    build_aggregation_process,
    federated_struct,
    with_server_step,
)

WEIGHT_TYPE = tff.TensorType(np.float32)
"""The type of a client's weight, the number of its examples."""


@dataclasses.dataclass(frozen=True)
class ExcludingFactory(tff.aggregators.WeightedAggregationFactory):
    """Wraps a weighted factory; replaces an excluded client's update and weight by 0.

    `inner` must ignore values of weight 0. With `equal_weights` every included client
    has the weight 1.
    """

    inner: tff.aggregators.WeightedAggregationFactory
    equal_weights: bool = False

    def create(
        self, value_type: tff.Type, weight_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the aggregation; see the module `aggregation.baselines`."""
        if not WEIGHT_TYPE.is_equivalent_to(weight_type):
            raise TypeError(
                "the weight must be the client's number of examples, a float32 scalar; "
                f"got {weight_type}"
            )
        process = self.inner.create(value_type, weight_type)

        @tff.tensorflow.computation(value_type, weight_type)
        def prepare(value, weight):
            weight = check_not_negative("DS", weight)
            finite = [
                tf.reduce_all(tf.math.is_finite(part))
                for part in [weight, *tf.nest.flatten(value)]
            ]
            included = tf.logical_and(tf.reduce_all(finite), weight > 0)
            if self.equal_weights:
                weight = tf.ones_like(weight)
            value, weight = tf.nest.map_structure(
                lambda part: tf.where(included, part, tf.zeros_like(part)),
                (value, weight),
            )
            return value, weight, tf.cast(tf.logical_not(included), tf.int32)

        def next_fn(state, values, weights):
            prepared = tff.federated_map(prepare, (values, weights))
            output = process.next(state, prepared[0], prepared[1])
            excluded = tff.federated_sum(prepared[2])
            # Also under the earlier name, for one more release.
            measurements = federated_struct(excluded=excluded, left_out=excluded)
            return tff.templates.MeasuredProcessOutput(
                output.state, output.result, measurements
            )

        return build_aggregation_process(
            process.initialize, next_fn, value_type, weight_type
        )


class MedianFactory(tff.aggregators.WeightedAggregationFactory):
    """The median of each coordinate, over the values whose weight is above 0."""

    def create(
        self, value_type: tff.Type, weight_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the aggregation; it has no state."""
        pair = collections.OrderedDict(value=value_type, weight=weight_type)
        reservoir = tff.aggregators.UnweightedReservoirSamplingFactory(
            sample_size=np.iinfo(np.int32).max  # All clients: nothing is sampled.
        ).create(tff.to_type(pair))
        sample_type = reservoir.next.type_signature.result.result.member

        @tff.tensorflow.computation(sample_type)
        def middle(sample):
            included = sample["weight"] > 0
            return tf.nest.map_structure(
                lambda rows: masked_median(rows, included), sample["value"]
            )

        def next_fn(state, values, weights):
            pairs = collections.OrderedDict(value=values, weight=weights)
            sampled = reservoir.next(state, tff.federated_zip(pairs))
            result = tff.federated_map(middle, sampled.result)
            no_measurements = tff.federated_value((), tff.SERVER)
            return tff.templates.MeasuredProcessOutput(
                sampled.state, result, no_measurements
            )

        return build_aggregation_process(
            reservoir.initialize, next_fn, value_type, weight_type
        )


def masked_median(values: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
    """Returns the median over the first axis of `values` [K, ...], of some rows.

    They are the rows where `mask`, bool [K], is True. The median of an even number is
    the mean of the middle two, and that of no rows is 0.
    """
    shape = tf.concat([tf.shape(mask), tf.ones([len(values.shape) - 1], tf.int32)], 0)
    # Masked rows take the largest value: they sort last and do not change the median.
    present = tf.where(tf.reshape(mask, shape), values, values.dtype.max)
    ordered = tf.sort(present, axis=0)
    num_included = tf.math.count_nonzero(mask, dtype=tf.int32)
    low, high = tf.maximum(num_included - 1, 0) // 2, num_included // 2
    median = 0.5 * ordered[low] + 0.5 * ordered[high]
    return tf.where(num_included > 0, median, tf.zeros_like(median))


ServerStep = tuple[Callable[[Any], Any], Callable[[Any, Any], tuple[Any, Any]]]
"""A server-side transform of the aggregate, as two TensorFlow functions:
`init(specs) -> state`, of an update's `TensorSpec`s, and
`step(state, update) -> (state, update)`."""


def optimizer_step(optimizer: tff.learning.optimizers.Optimizer) -> ServerStep:
    """Builds the server step that passes the update through a TFF optimizer.

    The update is the gradient; the result is what the optimizer subtracts for it.
    """

    def next_step(state, update):
        flat = tf.nest.flatten(update)
        state, stepped = optimizer.next(state, [tf.zeros_like(t) for t in flat], flat)
        return state, tf.nest.pack_sequence_as(update, [-t for t in stepped])

    return lambda specs: optimizer.initialize(tf.nest.flatten(specs)), next_step


def laplace_noise_step(scale: float, seed: int) -> ServerStep:
    """Builds the server step that adds Laplace noise of this scale to every entry.

    The scale is the mean absolute value of the noise.
    """

    def noise(key, value):
        # By the inverse of the distribution function, which is infinite at -1.
        uniform = tf.random.stateless_uniform(
            tf.shape(value), key, np.nextafter(np.float32(-1), np.float32(0)), 1.0
        )
        drawn = -scale * tf.sign(uniform) * tf.math.log1p(-tf.abs(uniform))
        return tf.cast(drawn, value.dtype)

    return (
        lambda specs: tf.constant([seed, 0], tf.int64),
        lambda state, update: add_noise(noise, state, update),
    )


@dataclasses.dataclass(frozen=True)
class ServerStepFactory(tff.aggregators.WeightedAggregationFactory):
    """Wraps a factory and applies a server step to its aggregate."""

    inner: tff.aggregators.WeightedAggregationFactory
    step: ServerStep

    def create(
        self, value_type: tff.Type, weight_type: tff.Type
    ) -> tff.templates.AggregationProcess:
        """Creates the aggregation; its state is `<inner=..., step=...>`."""
        specs, (initial_state, step) = (
            tff.types.type_to_tf_tensor_specs(value_type),
            self.step,
        )
        inner = self.inner.create(value_type, weight_type)
        return with_server_step(inner, lambda: initial_state(specs), step)
