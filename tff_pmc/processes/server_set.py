"""What the server measures of its own model on examples of its own."""

from __future__ import annotations

import collections
from typing import Any, Callable

import numpy as np
import tensorflow as tf
import tensorflow_federated as tff

from tff_pmc import models
from tff_pmc.clients.packed import weighted_type

BATCH_SIZE = 500
"""Examples in a forward pass."""

F1_OFFSET = 0.1
"""AdaFed: the class weights are `1 / (F1_c + 0.1)`, between 0.9 and 10."""


def build_confusion(
    model: tff.learning.models.FunctionalModel, x: Any, y: Any, num_classes: int
) -> Callable[[Any], tf.Tensor]:
    """Builds `weights -> int32 [classes, classes]`: examples by label and answer."""

    @tf.function
    def confusion(weights):
        inputs, labels = tf.constant(x), tf.constant(y, tf.int32)
        counts = tf.zeros([num_classes, num_classes], tf.int32)
        parameters = (weights.trainable, weights.non_trainable)
        for start in tf.range(0, len(x), BATCH_SIZE):
            rows = slice(start, start + BATCH_SIZE)
            output = model.predict_on_batch(parameters, inputs[rows], False)
            answers = tf.argmax(output, axis=-1, output_type=tf.int32)
            counts += tf.math.confusion_matrix(labels[rows], answers, num_classes)
        return counts

    return confusion


def build_server_judge(
    model: tff.learning.models.FunctionalModel, x: Any, y: Any, num_classes: int
) -> Callable[[Any, Any], np.ndarray]:
    """Builds a judge for `build_online_adjusted_fed_avg` that asks no client.

    Its result is how many of the server's examples the model gets right; what the
    judge is given of the clients it leaves aside.
    """
    confusion = build_confusion(model, x, y, num_classes)

    def judge(weights, unused_clients):
        return np.trace(np.asarray(confusion(weights)))

    return judge


def f1_of_classes(confusion: tf.Tensor) -> tf.Tensor:
    """F1 of each class, `2 TP / (2 TP + FP + FN)`; 0 for a class that is not there.

    Args:
        confusion: examples by label (rows) and answer (columns).
    """
    counts = tf.cast(confusion, tf.float32)
    there_and_answered = tf.reduce_sum(counts, 0) + tf.reduce_sum(counts, 1)
    return tf.math.divide_no_nan(2 * tf.linalg.diag_part(counts), there_and_answered)


def build_class_weight_distributor(
    model: tff.learning.models.FunctionalModel, x: Any, y: Any, num_classes: int
) -> tff.learning.templates.DistributionProcess:
    """Builds the broadcast of AdaFed: the model, and its loss's class weights.

    In every round the server measures the model it is about to send, and sends
    `1 / (F1_c + 0.1)` with it, so that clients work on the classes it is bad at:

        (<state=<>@SERVER, W@SERVER>
         -> <state, result=<weights=W, class_weights=float32[classes]>@CLIENTS,
             measurements=<f1=float32[classes]>@SERVER>)
    """
    weights_type = models.weights_type(model)
    confusion = build_confusion(model, x, y, num_classes)

    @tff.tensorflow.computation(weights_type)
    def with_class_weights(weights):
        f1 = f1_of_classes(confusion(weights))
        sent = collections.OrderedDict(
            weights=weights, class_weights=1.0 / (f1 + F1_OFFSET)
        )
        return sent, f1

    @tff.federated_computation
    def initialize():
        return tff.federated_value((), tff.SERVER)

    @tff.federated_computation(
        initialize.type_signature.result, tff.FederatedType(weights_type, tff.SERVER)
    )
    def next_fn(state, weights):
        sent = tff.federated_map(with_class_weights, weights)
        return tff.templates.MeasuredProcessOutput(
            state,
            tff.federated_broadcast(sent[0]),
            tff.federated_zip(collections.OrderedDict(f1=sent[1])),
        )

    process = tff.learning.templates.DistributionProcess(initialize, next_fn)
    expected = weighted_type(weights_type, num_classes)
    process.next.type_signature.result.result.member.check_assignable_from(expected)
    return process
