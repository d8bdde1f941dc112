"""FedDyn's server: the mean update, corrected by the sum of all previous updates."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.tff_utils import (
    build_aggregation_process,
    federated_struct,
    members_by_name,
)


def with_dynamic_regularizer(
    inner: tff.templates.AggregationProcess, alpha: float, num_trainable: int
) -> tff.templates.AggregationProcess:
    """Wraps an aggregation so that its result is the step of FedDyn's server.

    With P the round's clients and m all clients, Acar et al. 2021, Algorithm 1, has

        h <- h - alpha / m sum_{k in P} (w_k - w)
        w <- mean_{k in P} w_k - h / alpha

    `inner` computes D, the mean of the updates `w - w_k`, and measures the number of
    clients as its first monomial. The result is `D + h / alpha` for the trainable
    weights. The state is `h`, then the state of `inner`. If all clients are excluded,
    the result is 0, and the model does not change.

    Args:
        inner: an aggregation of `PrioritizedMeanFactory.create_for_packs`, with a score
            that gives each client the weight 1.
        alpha: the weight of the regularizer.
        num_trainable: m, the number of clients that have training examples.
    """
    signature = inner.next.type_signature
    client_types = [type_.member for type_ in signature.parameter[1:]]
    mean_type = signature.result.result.member
    monomials_type = signature.result.measurements.member.monomials

    @tff.tensorflow.computation
    def zeros():
        specs = tff.types.type_to_tf_tensor_specs(mean_type.trainable)
        return tf.nest.map_structure(lambda s: tf.zeros(s.shape, s.dtype), specs)

    h_type = zeros.type_signature.result

    @tff.federated_computation
    def initialize():
        h = tff.federated_eval(zeros, tff.SERVER)
        return federated_struct(h=h, **members_by_name(inner.initialize()))

    @tff.tensorflow.computation(h_type, mean_type, monomials_type)
    def step(h, mean, monomials):
        num_included = monomials[0]
        factor = np.float32(alpha) * num_included / np.float32(num_trainable)
        h = tf.nest.map_structure(
            lambda part, d: part + tf.cast(factor, d.dtype) * d, h, mean.trainable
        )
        trainable = tf.nest.map_structure(
            lambda d, part: tf.where(num_included > 0, d + part / alpha, 0.0 * d),
            mean.trainable,
            h,
        )
        return h, tff.learning.models.ModelWeights(trainable, mean.non_trainable)

    def next_fn(state, updates, weights):
        inner_state = members_by_name(state)
        h = inner_state.pop("h")
        output = inner.next(federated_struct(**inner_state), updates, weights)
        monomials = output.measurements["monomials"]
        h, update = tff.federated_map(step, (h, output.result, monomials))
        return tff.templates.MeasuredProcessOutput(
            federated_struct(h=h, **members_by_name(output.state)),
            update,
            output.measurements,
        )

    return build_aggregation_process(initialize, next_fn, *client_types)
