"""The server's step: its optimizer takes the mean update as the gradient."""

from __future__ import annotations

import collections
from typing import Any

import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc.aggregation.contributions import update_type
from tff_pmc.models.functional import cast_to_common_float


def apply_update(
    optimizer: tff.learning.optimizers.Optimizer, state: Any, weights: Any, update: Any
) -> tuple[Any, Any, tf.Tensor]:
    """Takes one server step: `w - server_rate * update` (PMC eq. 2) for SGD.

    An update is received minus trained weights, as in all of TFF, and the gradient of
    the trainable weights to the optimizer. Non-trainable weights (such as batch
    normalization's statistics) are averages and not directions: with any optimizer they
    become the clients' weighted mean. Those that are not floats stay unchanged (see
    `aggregated_weights`).

    The step is rejected, and model and optimizer stay unchanged, if the update is all
    zero (no client included, or every score 0), or if the update or the new model is
    not finite. The last result is 1 for a rejected step, else 0.
    """
    next_state, trainable = optimizer.next(state, weights.trainable, update.trainable)
    means = iter(tf.nest.flatten(update.non_trainable))
    non_trainable = tf.nest.map_structure(
        lambda w: w - next(means) if w.dtype.is_floating else w, weights.non_trainable
    )
    norm = tf.linalg.global_norm(cast_to_common_float(tf.nest.flatten(update)))
    finite = [
        tf.reduce_all(tf.math.is_finite(part))
        for part in (norm, *tf.nest.flatten((trainable, non_trainable)))
        if part.dtype.is_floating
    ]
    rejected = tf.logical_not(tf.reduce_all(finite)) | tf.equal(norm, 0.0)

    def unless_rejected(old, new):
        return tf.nest.map_structure(lambda o, n: tf.where(rejected, o, n), old, new)

    new_weights = tff.learning.models.ModelWeights(
        unless_rejected(weights.trainable, trainable),
        unless_rejected(weights.non_trainable, non_trainable),
    )
    return unless_rejected(state, next_state), new_weights, tf.cast(rejected, tf.int32)


def build_optimizer_initializer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: tff.Type
) -> tff.Computation:
    """Builds the computation of the server optimizer's initial state."""

    @tff.tensorflow.computation
    def initial_state():
        return optimizer.initialize(
            tff.types.type_to_tf_tensor_specs(weights_type.trainable)
        )

    return initial_state


def build_finalizer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: tff.Type
) -> tff.learning.templates.FinalizerProcess:
    """Builds the finalizer of a learning process, which runs `apply_update`."""
    initial_state = build_optimizer_initializer(optimizer, weights_type)
    state_type = initial_state.type_signature.result

    @tff.tensorflow.computation(state_type, weights_type, update_type(weights_type))
    def step(state, weights, update):
        state, weights, rejected = apply_update(optimizer, state, weights, update)
        measurements = collections.OrderedDict(update_rejected=rejected)
        return tff.templates.MeasuredProcessOutput(state, weights, measurements)

    @tff.tensorflow.computation(state_type)
    def get_hparams(state):
        return optimizer.get_hparams(state)

    @tff.tensorflow.computation(state_type, get_hparams.type_signature.result)
    def set_hparams(state, hparams):
        return optimizer.set_hparams(state, hparams)

    @tff.federated_computation
    def initialize():
        return tff.federated_eval(initial_state, tff.SERVER)

    @tff.federated_computation(
        *(
            tff.FederatedType(part, tff.SERVER)
            for part in (state_type, weights_type, update_type(weights_type))
        )
    )
    def next_fn(state, weights, update):
        output = tff.federated_map(step, (state, weights, update))
        return tff.templates.MeasuredProcessOutput(
            output.state, output.result, output.measurements
        )

    return tff.learning.templates.FinalizerProcess(
        initialize, next_fn, get_hparams_fn=get_hparams, set_hparams_fn=set_hparams
    )
