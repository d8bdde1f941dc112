"""The server's step: the aggregated update applied to the model."""

from __future__ import annotations

import collections

import tensorflow as tf
import tensorflow_federated as tff


def build_finalizer(
    optimizer: tff.learning.optimizers.Optimizer, weights_type: tff.Type
) -> tff.learning.templates.FinalizerProcess:
    """Builds the finalizer: `w - server_rate * update` (PMC eq. 2) for SGD.

    An update is received minus trained weights, as everywhere in TFF: a
    gradient to the optimizer, which steps the trainable variables. Non-trainable
    ones (batch-norm statistics) are averages and not directions: they become
    the clients' mean with the same weights, whatever the optimizer. An update
    that is all zero (no client was included, or every score was 0) or not
    finite leaves model and optimizer as they are, and `update_rejected` says so.

    Args:
        optimizer: of the server.
        weights_type: the type of the model's `ModelWeights`.

    Returns:
        A finalizer whose update has the type of the whole `ModelWeights`.
    """

    def reject(unused_state, update):
        norm = tf.linalg.global_norm(tf.nest.flatten(update))
        rejected = tf.logical_not(tf.math.is_finite(norm)) | tf.equal(norm, 0.0)
        return rejected, collections.OrderedDict(
            update_rejected=tf.cast(rejected, tf.int32)
        )

    step = tff.learning.templates.build_apply_optimizer_finalizer(
        optimizer, weights_type, reject
    )

    @tff.tensorflow.computation(
        weights_type, weights_type.non_trainable, _measurements_type(step)
    )
    def average_non_trainable(weights, update, measured):
        accepted = tf.equal(measured["update_rejected"], 0)
        return tff.learning.models.ModelWeights(
            weights.trainable,
            tf.nest.map_structure(
                lambda w, d: tf.where(accepted, w - d, w), weights.non_trainable, update
            ),
        )

    @tff.federated_computation(
        step.initialize.type_signature.result,
        tff.FederatedType(weights_type, tff.SERVER),
        tff.FederatedType(weights_type, tff.SERVER),
    )
    def next_fn(state, weights, update):
        output = step.next(state, weights, update.trainable)
        result = tff.federated_map(
            average_non_trainable,
            (output.result, update.non_trainable, output.measurements),
        )
        return tff.templates.MeasuredProcessOutput(
            output.state, result, output.measurements
        )

    return tff.learning.templates.FinalizerProcess(
        step.initialize,
        next_fn,
        get_hparams_fn=step.get_hparams,
        set_hparams_fn=step.set_hparams,
    )


def _measurements_type(process: tff.templates.MeasuredProcess) -> tff.Type:
    """The (unplaced) type of a measured process's measurements."""
    return process.next.type_signature.result.measurements.member
