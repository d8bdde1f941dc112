"""FedDyn's server: a mean of updates, corrected by what the updates were so far."""

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
    """Builds the aggregation whose step is that of FedDyn's server.

    `inner` computes the plain mean D of the updates `w - w_k` of the sampled clients P,
    whose number is its first measured monomial. Acar et al. 2021, Algorithm 1, has

        h <- h - alpha / m sum_{k in P} (w_k - w)
        w <- mean_{k in P} w_k - h / alpha

    of m clients, so that the result is `D + h / alpha`, of the trainable weights. The
    state is that of `inner` with `h` before it. In a round without included clients the
    result is 0, which leaves the model as it is.

    Args:
        inner: an aggregation of `PrioritizedMeanFactory.create_for_packs`, of a score
            that weighs all clients by 1.
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
